"""Which workers of a queue have a seat in its MultiKueueConfig."""

from reconciler.leavers import Leavers
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.workers import workers_of


def check_name(queue: Queue) -> str:
    """The AdmissionCheck of a queue, and its MultiKueueConfig."""
    return f"multikueue-{queue.name}"


def seated_workers(spec: FleetSpec, queue: Queue, leavers: Leavers | None) -> tuple[Cluster, ...]:
    """Those that are not drained. Kueue wants at least one: where all are drained, one that has a seat keeps it.

    While nobody has seen what runs on a drained worker, it has to stay.
    """
    workers = workers_of(spec, queue)
    if leavers is None or leavers.problem:
        return workers
    active = tuple(worker for worker in workers if not worker.is_drained)
    sitting = {seat.cluster for seat in leavers.seats if seat.config == check_name(queue)}
    return active or (*(worker for worker in workers if worker.name in sitting), *workers)[:1]
