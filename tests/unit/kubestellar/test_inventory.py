"""KubeStellar's inventory space, which has an access of its own."""

from pathlib import Path

from reconciler.kubestellar.copies import look_at_inventory
from tests.unit.kubestellar.queued_jobs import placement_spec


def test_inventory_space_that_cannot_be_reached_is_a_problem(tmp_path: Path) -> None:
    found = look_at_inventory(placement_spec(f"{{its: {{access: {{kubeconfig: {tmp_path / 'none'}}}}}}}"), {})
    assert found is not None and "none" in found.problem
    assert look_at_inventory(placement_spec(), {}) is None
