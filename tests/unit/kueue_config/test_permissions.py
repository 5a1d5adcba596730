"""What kfleet has to be allowed where it changes Kueue's Configuration."""

from reconciler.multikueue.model import Permission
from reconciler.objects import ClusterName
from reconciler.plan.rbac import needed
from reconciler.render.compute import compute_desired
from reconciler.state.applyset import SetName
from reconciler.state.model import ClusterView
from tests.builders import spec_of

PICKY = (
    "kind: Cluster\nmetadata: {name: picky}\nspec: {role: worker, kueue: {config: {clientConnection: {qps: 100}}}}\n"
)


def test_kueue_may_be_restarted_where_its_configuration_is_changed() -> None:
    spec = spec_of(PICKY)
    asked = {
        cluster.name: [one for one in needed(cluster, view(cluster.name), compute_desired(spec)) if one.group == "apps"]
        for cluster in spec.clusters
    }
    wanted = [Permission(verb, "apps", "deployments", "kueue-system") for verb in ("get", "patch")]
    assert {name: found for name, found in asked.items() if found} == {"picky": wanted}


def view(name: ClusterName) -> ClusterView:
    return ClusterView(name, SetName("test", "kueue-system"), f"uid-of-{name}", {}, {})
