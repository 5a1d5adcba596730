"""Which workers serve a queue, and which queues and workers KubeStellar serves."""

from collections.abc import Callable

from reconciler.objects import ClusterName
from reconciler.spec.choices import Dispatch, Role
from reconciler.spec.model import Cluster, Flavor, FleetSpec, Queue


def workers_of(spec: FleetSpec, queue: Queue) -> tuple[Cluster, ...]:
    """The workers of a queue in the order in which MultiKueue should try them: as named, else as in the spec."""
    chosen = [cluster for cluster in spec.selected(queue.clusters) if cluster.role is Role.WORKER]
    if queue.clusters is not None and queue.clusters.names:
        chosen.sort(key=lambda cluster: queue.clusters.names.index(cluster.name) if queue.clusters else 0)
    return tuple(chosen)


def placement_check(queue: Queue) -> str:
    """The AdmissionCheck of a queue whose jobs KubeStellar carries."""
    return f"kubestellar-{queue.name}"


def carried_queues(spec: FleetSpec) -> tuple[Queue, ...]:
    return tuple(queue for queue in spec.queues if queue.dispatch is Dispatch.KUBESTELLAR)


def carried_by(spec: FleetSpec) -> tuple[tuple[Cluster, Queue], ...]:
    """The workers that KubeStellar carries jobs to, each with the first queue that wants it."""
    found: dict[ClusterName, tuple[Cluster, Queue]] = {}
    for queue in carried_queues(spec):
        for worker in workers_of(spec, queue):
            found.setdefault(worker.name, (worker, queue))
    return tuple(found.values())


def is_only_carried(spec: FleetSpec) -> Callable[[Flavor, Cluster], bool]:
    """Whether a flavor serves carried queues, and nothing else on a worker: a Kueue there need not know it."""
    carried = {entry.flavor for queue in carried_queues(spec) for entry in queue.quota}
    others = {
        (entry.flavor, cluster.name)
        for queue in spec.queues
        if carried and queue.dispatch is not Dispatch.KUBESTELLAR
        for cluster in spec.selected(queue.clusters)
        for entry in queue.quota
    }
    return lambda flavor, cluster: (
        flavor.name in carried and cluster.role is not Role.MANAGER and (flavor.name, cluster.name) not in others
    )
