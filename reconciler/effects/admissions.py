"""What Kueue's scheduler does after a plan: workloads that start, that are preempted, or that never can be admitted."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.admission.fit import fit
from reconciler.admission.model import AdmissionIssue, Submission, Verdict
from reconciler.admission.state import ClusterState
from reconciler.effects.evictions import Hit, why_not_queued
from reconciler.effects.model import Impact
from reconciler.effects.states import ChangedCluster
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import has_known_order, queue_of
from reconciler.objects import Manifest
from reconciler.scheduling.build import build_scheduler, read_workloads
from reconciler.scheduling.model import Preemption, PreemptionReason, QueuedWorkload, Settled

_REASONS = {
    PreemptionReason.IN_QUEUE: "it is more important in the same queue",
    PreemptionReason.RECLAIM: "its queue takes back what is its own",
    PreemptionReason.FAIR: "fair sharing",
    PreemptionReason.BORROW: "it is more important, and borrows",
}


@dataclass(frozen=True, slots=True)
class Admissions:
    """`unknown` is why the scheduler's next steps are not known; empty if they are."""

    hits: tuple[Hit, ...] = ()
    unknown: str = ""


def find_admissions(cluster: ChangedCluster, evicted: Collection[str]) -> Admissions:
    """Compare what the scheduler does without the plan and after it. `evicted` are the uids that the plan evicts."""
    workloads = read_workloads(cluster.workloads, cluster.before, cluster.configuration)
    waiting = sorted((one for one in workloads if not one.held), key=lambda one: one.turn)
    never = tuple(_never(cluster, waiting))
    before = _settle(cluster, cluster.before, workloads)
    after = _settle(cluster, cluster.after, _without(workloads, evicted))
    if why := _why_unknown(cluster, before, after):
        return Admissions(never, why)
    moved = (*_started(waiting, before, after), *_preempted(before, after))
    seen = {id(hit.workload) for hit in moved}
    return Admissions((*moved, *(hit for hit in never if id(hit.workload) not in seen)))


def _settle(cluster: ChangedCluster, state: ClusterState, workloads: Iterable[QueuedWorkload]) -> Settled:
    if state.tree is None:
        return Settled()
    return build_scheduler(state, state.tree, workloads, cluster.settings).settle()


def _without(workloads: Iterable[QueuedWorkload], evicted: Collection[str]) -> Iterator[QueuedWorkload]:
    for one in workloads:
        yield replace(one, held={}) if one.uid in evicted else one


def _why_unknown(cluster: ChangedCluster, before: Settled, after: Settled) -> str:
    queues = sorted(name for name, queue in cluster.after.queues.items() if not has_known_order(queue))
    if queues:
        return f"the order of queue {queues[0]} depends on past usage, which no object shows"
    if not (before.is_settled and after.is_settled):
        return "its workloads preempt each other in turn"
    if flavors := sorted({*_topologies(cluster.before, before), *_topologies(cluster.after, after)}):
        return f"flavor {flavors[0]} has a topology, and whether its nodes have room is not computed"
    return ""


def _topologies(state: ClusterState, settled: Settled) -> Iterator[str]:
    """Flavors whose quota would be enough. A workload that lacks quota lacks it on any nodes."""
    for held in settled.admitted.values():
        for flavor, _ in held:
            if at(state.flavors.get(flavor, {}), "spec", "topologyName"):
                yield flavor


def _started(waiting: Iterable[QueuedWorkload], before: Settled, after: Settled) -> Iterator[Hit]:
    taken: dict[str, int] = {}
    for preemption in after.preempted.values():
        taken[preemption.by.uid] = taken.get(preemption.by.uid, 0) + 1
    for one in waiting:
        if one.uid not in after.admitted or one.uid in before.admitted:
            continue
        count = taken.get(one.uid, 0)
        why = f"it takes the quota of {count} preempted workloads" if count > 1 else "it takes the quota of another one"
        yield Hit(one.manifest, Impact.STARTS, why if count else "it fits into the quota that is free afterwards")


def _preempted(before: Settled, after: Settled) -> Iterator[Hit]:
    for uid, found in after.preempted.items():
        if uid not in before.preempted and queue_of(found.workload.manifest):
            yield Hit(found.workload.manifest, Impact.PREEMPTED, _why_preempted(found), (found.by.queue,))


def _why_preempted(found: Preemption) -> str:
    metadata = found.by.manifest["metadata"]
    return f"for {metadata.get('namespace')}/{metadata.get('name')}: {_REASONS[found.reason]}"


def _never(cluster: ChangedCluster, waiting: Iterable[QueuedWorkload]) -> Iterator[Hit]:
    known: tuple[dict[tuple[str, str], AdmissionIssue | None], ...] = ({}, {})
    for one in waiting:
        states = (cluster.before, cluster.after)
        if any(why_not_queued(state, one.manifest) for state in states):
            continue
        old, new = (_why_never(one, state, seen) for state, seen in zip(states, known, strict=True))
        if new and not old:
            yield Hit(one.manifest, Impact.NEVER, new.problem)
        elif old and not new:
            yield Hit(one.manifest, Impact.POSSIBLE, "it can be admitted when others have finished")


def _why_never(
    one: QueuedWorkload, state: ClusterState, known: dict[tuple[str, str], AdmissionIssue | None]
) -> AdmissionIssue | None:
    """Equal workloads of one queue have the same answer."""
    queue = _queue(state, one.manifest)
    key = (as_text(at(queue, "metadata", "name")), one.shape)
    if key not in known:
        issue = fit(submission_of(one), state, queue).issue
        known[key] = issue if issue is not None and issue.verdict is Verdict.NEVER else None
    return known[key]


def submission_of(workload: QueuedWorkload) -> Submission:
    return Submission(
        kind="Workload",
        namespace=as_text(at(workload.manifest, "metadata", "namespace")),
        name=as_text(at(workload.manifest, "metadata", "name")),
        framework="",
        queue=as_text(at(workload.manifest, "spec", "queueName")),
        priority_class="",
        pod_sets=workload.pod_sets,
    )


def _queue(state: ClusterState, workload: Manifest) -> Mapping[str, object]:
    address = (as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName")))
    return state.queues[as_text(at(state.local_queues[address], "spec", "clusterQueue"))]
