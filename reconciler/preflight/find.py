"""All obstacles of a fleet, cluster by cluster."""

from reconciler.objects import Obstacle
from reconciler.preflight.clusters import check_cluster
from reconciler.preflight.model import Facts
from reconciler.preflight.rights import check_rights
from reconciler.preflight.workers import Worker, check_worker


def find_obstacles(facts: Facts) -> tuple[Obstacle, ...]:
    """In the order of the clusters. What could not be seen is a gap, and no matter of preflight."""
    found: list[Obstacle] = []
    for cluster in facts.spec.clusters:
        view = facts.view(cluster.name)
        if view is None:
            continue
        found += check_cluster(cluster, view, facts)
        found += check_rights(cluster, view, facts)
        if facts.links and cluster in (*facts.workers, *facts.native):
            found += check_worker(Worker(cluster, view, facts.links, facts))
    return tuple(found)
