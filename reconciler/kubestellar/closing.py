"""What has to stay while KubeStellar still has jobs on workers: policies, and queues that leave it.

Decision: a BindingPolicy goes only when every copy was seen gone. KubeStellar's deletes race with its own transport, so
that a policy which is deleted together with its jobs can leave their copies running, and no object points to them.
Decision: a queue that goes over from MultiKueue is closed in the same way. Its workers take no new jobs already, so a
job that it would still let in could start nowhere, and would hold its quota for ever.
Decision: a queue on its way out is closed by a selector of no namespace. To hold it would take the quota of its jobs,
because they are never Admitted on the manager, and Kueue takes back what is only reserved.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reconciler.kueue.reading import as_map, at
from reconciler.kueue.workloads import is_stopped
from reconciler.multikueue.model import WorkerRemovals
from reconciler.multikueue.removal import multikueue_check, own_marks
from reconciler.render.model import DesiredObject, Leaving, desired_object, kueue_manifest, without_empty
from reconciler.render.queues import DRAIN
from reconciler.snapshot.model import ClosingQueue, Downsynced
from reconciler.spec.enums import Dispatch, StopPolicy
from reconciler.spec.kubestellar import policy_name
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.places import downsynced_queues

_WAYS_OUT = "to evict them, set drainOnDelete: true or stopPolicy: HoldAndDrain on the Queue"


def still_closing(seen: Downsynced, waiting: WorkerRemovals) -> Downsynced:
    """Without the queues of MultiKueue whose workers have no jobs of theirs left and take no new ones."""
    closing = (_counted(queue, waiting) if queue.is_sending else queue for queue in seen.closing)
    return replace(seen, closing=tuple(queue for queue in closing if not queue.is_sending or _is_used(queue)))


def _counted(queue: ClosingQueue, waiting: WorkerRemovals) -> ClosingQueue:
    """With those that run on workers. A worker of which that is not known, or that takes jobs, counts for one."""
    memberships = [
        membership for membership in waiting.memberships if membership.config == multikueue_check(queue.name)
    ]
    running = sum(
        membership.running or int(membership.running is None or not membership.is_held) for membership in memberships
    )
    return replace(queue, downsynced=running + bool(waiting.problem))


def _is_used(queue: ClosingQueue) -> bool:
    return bool(queue.downsynced or queue.reserving) or not is_stopped(queue.manifest)


def with_closing(spec: FleetSpec, seen: Downsynced, objects: Sequence[DesiredObject]) -> tuple[DesiredObject, ...]:
    """The objects, with queues that leave KubeStellar as they are and closed, in the place of what they shall be."""
    manager = spec.manager
    if manager is None or not seen.closing:
        return tuple(objects)
    held = [_closed(spec, manager, queue) for queue in seen.closing]
    refs = {entry.ref for entry in held}
    return (*(entry for entry in objects if entry.ref not in refs), *held)


def with_downsynced(spec: FleetSpec, seen: Downsynced, leaving: Iterable[Leaving]) -> tuple[Leaving, ...]:
    """Who cannot go yet, with the manager as long as it needs something for jobs on workers."""
    known = {entry.cluster: entry for entry in leaving}
    own = [*_workers(spec, seen), *_manager(spec, seen)]
    for entry in own:
        known[entry.cluster] = _merged(known[entry.cluster], entry) if entry.cluster in known else entry
    return tuple(known.values())


def _workers(spec: FleetSpec, seen: Downsynced) -> Iterator[Leaving]:
    in_spec = {cluster.name for cluster in spec.clusters}
    for name, why in seen.occupied.items():
        then = "its BindingPolicy" if name in in_spec else "its BindingPolicy and the fleet's objects there"
        yield Leaving(name, f"{why}; {then} go when it is free of them", is_whole=name not in in_spec)


def _manager(spec: FleetSpec, seen: Downsynced) -> Iterator[Leaving]:
    if spec.manager is None or not (seen.occupied or seen.closing or seen.problem):
        return
    reasons = [f"queue {queue.name}: {_why(spec, queue)}" for queue in seen.closing]
    if seen.problem and downsynced_queues(spec):
        reasons.append(f"its jobs could not be seen, so nothing of KubeStellar goes ({seen.problem})")
    policies = None if seen.problem else frozenset(policy_name(name) for name in seen.occupied)
    queues = frozenset(queue.name for queue in seen.closing)
    yield Leaving(spec.manager.name, "; ".join(reasons), queues, policies=policies, is_serving=True)


def _merged(first: Leaving, second: Leaving) -> Leaving:
    return replace(
        second,
        why="; ".join(filter(None, (first.why, second.why))),
        queues=first.queues | second.queues,
        is_whole=first.is_whole or second.is_whole,
    )


def _why(spec: FleetSpec, queue: ClosingQueue) -> str:
    return "; ".join((*_state(spec, queue), *_rejected(spec, queue)))


def _state(spec: FleetSpec, queue: ClosingQueue) -> Iterator[str]:
    if not queue.downsynced:
        yield "it is just being stopped, and the next run goes on"
        return
    yield f"it changes when its jobs on workers have ended and their copies are gone, now {queue.downsynced}"
    yield "they are being evicted" if _is_evicting(spec, queue) else _WAYS_OUT


def _rejected(spec: FleetSpec, queue: ClosingQueue) -> Iterator[str]:
    """Kueue writes spec.managedBy into a Job when it is created, by the check that its queue has at that moment."""
    wanted, pending = _queue_of(spec, queue), int(at(queue.manifest, "status", "pendingWorkloads") or 0)
    if pending and wanted and wanted.dispatch is Dispatch.MULTIKUEUE:
        yield f"{pending} that wait in it have to be submitted again then: MultiKueue rejects jobs of another dispatch"


def _closed(spec: FleetSpec, manager: Cluster, queue: ClosingQueue) -> DesiredObject:
    content = dict(queue.manifest["spec"])
    if _is_evicting(spec, queue):
        content["stopPolicy"] = StopPolicy.HOLD_AND_DRAIN.value
    elif queue.downsynced:
        content.pop("namespaceSelector", None)
        content.pop("stopPolicy", None)
    else:
        content["stopPolicy"] = StopPolicy.HOLD.value
    manifest = kueue_manifest("ClusterQueue", queue.name, content)
    metadata = queue.manifest["metadata"]
    marks = {name: own_marks(as_map(metadata.get(name))) for name in ("labels", "annotations")}
    manifest["metadata"] = {**manifest["metadata"], **without_empty(marks)}
    wanted = _queue_of(spec, queue)
    document = wanted.document if wanted else spec.fleet.document
    return desired_object(manager, manifest, document, _why(spec, queue))


def _is_evicting(spec: FleetSpec, queue: ClosingQueue) -> bool:
    wanted = _queue_of(spec, queue)
    is_reported = wanted is not None and (wanted.drain_on_delete or wanted.stop_policy is StopPolicy.HOLD_AND_DRAIN)
    return is_reported or as_map(queue.manifest["metadata"].get("annotations")).get(DRAIN) == "true"


def _queue_of(spec: FleetSpec, queue: ClosingQueue) -> Queue | None:
    return next((one for one in spec.queues if one.name == queue.name), None)
