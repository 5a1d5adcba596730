"""Roles of clusters: the home of the fleet, with its lease, ledger and Events, and the workers of a queue."""

from collections.abc import Callable

from reconciler.objects import ClusterName
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.kubestellar import check_of
from reconciler.spec.model import Cluster, Flavor, FleetSpec, Queue


def home_cluster(spec: FleetSpec) -> Cluster:
    """Return the manager; in a fleet without one, the cluster that the Fleet names, or else the first."""
    named = next((cluster for cluster in spec.clusters if cluster.name == spec.fleet.home), None)
    return spec.manager or named or spec.clusters[0]


def workers_of(spec: FleetSpec, queue: Queue) -> tuple[Cluster, ...]:
    """Return the workers of a queue in the order in which MultiKueue should try them: as named, else as in the spec."""
    chosen = [cluster for cluster in spec.selected(queue.clusters) if cluster.role is Role.WORKER]
    if queue.clusters is not None and queue.clusters.names:
        chosen.sort(key=lambda cluster: queue.clusters.names.index(cluster.name) if queue.clusters else 0)
    return tuple(chosen)


def placement_check(queue: Queue) -> str:
    return check_of(queue.name)


def downsynced_queues(spec: FleetSpec) -> tuple[Queue, ...]:
    return tuple(queue for queue in spec.queues if queue.dispatch is Dispatch.KUBESTELLAR)


def downsynced_by(spec: FleetSpec) -> tuple[tuple[Cluster, Queue], ...]:
    """Return the workers that KubeStellar dispatches jobs to, each with the first queue that uses it."""
    found: dict[ClusterName, tuple[Cluster, Queue]] = {}
    for queue in downsynced_queues(spec):
        for worker in workers_of(spec, queue):
            found.setdefault(worker.name, (worker, queue))
    return tuple(found.values())


def is_only_downsynced(spec: FleetSpec) -> Callable[[Flavor, Cluster], bool]:
    """Whether KubeStellar dispatches all queues of a flavor on a worker: a Kueue there does not need the flavor."""
    downsynced = {entry.flavor for queue in downsynced_queues(spec) for entry in queue.quota}
    others = {
        (entry.flavor, cluster.name)
        for queue in spec.queues
        if downsynced and queue.dispatch is not Dispatch.KUBESTELLAR
        for cluster in spec.selected(queue.clusters)
        for entry in queue.quota
    }
    return lambda flavor, cluster: (
        flavor.name in downsynced and cluster.role is not Role.MANAGER and (flavor.name, cluster.name) not in others
    )
