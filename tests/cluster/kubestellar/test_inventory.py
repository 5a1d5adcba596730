"""KubeStellar's inventory space, which has an access of its own."""

from reconciler.kubestellar.copies import look_at_inventory
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.model import AccessSpec
from tests.cluster.kubestellar.downsynced import WORKERS
from tests.unit.kubestellar.queued_jobs import placement_spec


def test_inventory_space_is_asked_by_its_own_access(kubestellar: Sandbox) -> None:
    spec = placement_spec(f"{{its: {{access: {{context: its, kubeconfig: {kubestellar.state.kubeconfig}}}}}}}")
    assert spec.fleet.inventory == AccessSpec("its", str(kubestellar.state.kubeconfig))
    found = look_at_inventory(spec, {})
    assert found is not None and not found.problem
    assert {name: labels["name"] for name, labels in found.labels.items()} == {name: name for name in WORKERS}


def test_inventory_space_without_managed_clusters_is_a_problem_and_not_an_empty_one(kubestellar: Sandbox) -> None:
    spec = placement_spec(f"{{its: {{access: {{context: worker1, kubeconfig: {kubestellar.state.kubeconfig}}}}}}}")
    found = look_at_inventory(spec, {})
    assert found is not None and "404" in found.problem
