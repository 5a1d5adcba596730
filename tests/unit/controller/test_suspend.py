"""A suspended cluster: looked at, told of, and not written to."""

from reconciler.spec.model import FleetSpec
from tests.unit.plan.paper_clusters import QUEUE, applied_clusters, parse, plan_of

PAUSED = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, suspend: true}\n"
HUB = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n"


def test_inventory_of_a_suspended_cluster_is_not_touched() -> None:
    spec: FleetSpec = parse(QUEUE, HUB, PAUSED)
    plan = plan_of(spec, applied_clusters(spec))
    assert {cluster.name: cluster.is_complete for cluster in plan.clusters} == {"hub": True, "east": False}
