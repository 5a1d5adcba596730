"""Workloads that the plan evicts or strands, and what the scheduler then does with the others."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.admission.fit import fit
from reconciler.admission.model import AdmissionIssue, Submission, Verdict
from reconciler.admission.nodes import is_selected
from reconciler.admission.state import ClusterState
from reconciler.effects.model import Impact
from reconciler.effects.states import ChangedCluster
from reconciler.effects.woken import with_cohorts
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue.workloads import (
    HELD,
    has_condition,
    has_known_order,
    priority_of,
    queue_of,
)
from reconciler.objects import Manifest
from reconciler.scheduling.build import build_scheduler, read_workloads
from reconciler.scheduling.model import Preemption, PreemptionReason, QueuedWorkload, Settled

DRAIN = "HoldAndDrain"
NEVER = "Never"
OLD_SOURCE = f"{GROUP}/workloadpriorityclass"
ENDLESS = "its workloads preempt each other in turn"
AGAIN = "it can never be admitted again"
_REASONS = {
    PreemptionReason.IN_QUEUE: "it is more important in the same queue",
    PreemptionReason.RECLAIM: "its queue takes back what is its own",
    PreemptionReason.FAIR: "fair sharing",
    PreemptionReason.BORROW: "it is more important, and borrows",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """One workload and what happens to it."""

    workload: Manifest
    impact: Impact
    why: str
    by: tuple[str, ...] = ()


def find_evicted(cluster: ChangedCluster) -> Iterator[Hit]:
    """Workloads that hold quota of a queue which the plan drains."""
    for workload in cluster.workloads:
        queue = queue_of(workload)
        if not queue:
            continue
        local = _local_queue(workload)
        if queue in cluster.drained:
            yield Hit(workload, Impact.EVICTED, f"ClusterQueue {queue} is drained and deleted")
        elif _starts_draining(cluster.before.queues.get(queue), cluster.after.queues.get(queue)):
            yield Hit(workload, Impact.EVICTED, f"ClusterQueue {queue} gets stopPolicy {DRAIN}")
        elif _starts_draining(cluster.before.local_queues.get(local), cluster.after.local_queues.get(local)):
            yield Hit(workload, Impact.EVICTED, f"LocalQueue {'/'.join(local)} gets stopPolicy {DRAIN}")
        elif _is_stopped_before_admission(cluster, workload, queue, local):
            yield Hit(workload, Impact.EVICTED, "its queue stops before its admission checks are done")


def find_stranded(cluster: ChangedCluster) -> Iterator[Hit]:
    """Waiting workloads that a queue could take before, and that no queue takes afterwards."""
    for workload in cluster.workloads:
        if not is_waiting(workload) or why_not_queued(cluster.before, workload):
            continue
        if why := why_not_queued(cluster.after, workload):
            yield Hit(workload, Impact.STRANDED, why)


def is_waiting(workload: Manifest) -> bool:
    is_ended = has_condition(workload, "Finished") or at(workload, "spec", "active") is False
    return not is_ended and not has_condition(workload, "QuotaReserved")


def why_not_queued(state: ClusterState, workload: Manifest) -> str:
    """Why no queue takes a workload, or nothing. The amounts of its quota are not looked at here."""
    local, namespace = _local_queue(workload), as_text(at(workload, "metadata", "namespace"))
    found = state.local_queues.get(local)
    if found is None:
        return f"LocalQueue {'/'.join(local)} does not exist afterwards"
    name = as_text(at(found, "spec", "clusterQueue"))
    queue = state.queues.get(name)
    if queue is None:
        return f"ClusterQueue {name} does not exist afterwards"
    stopped = [one for one in (found, queue) if as_text(at(one, "spec", "stopPolicy")) in HELD]
    if stopped:
        kind = as_text(stopped[0].get("kind"))
        return f"{kind} {as_text(at(stopped[0], 'metadata', 'name'))} is stopped afterwards"
    if is_selected(at(queue, "spec", "namespaceSelector"), namespace, state) is False:
        return f"ClusterQueue {name} does not select the namespace {namespace} afterwards"
    if missing := _missing_reference(state, queue):
        return f"ClusterQueue {name} refers to {missing}, which does not exist afterwards"
    return ""


def _missing_reference(state: ClusterState, queue: Manifest) -> str:
    """Kueue deactivates a queue one of whose flavors or checks is missing."""
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            if (name := as_text(at(flavor, "name"))) not in state.flavors:
                return f"ResourceFlavor {name}"
    for check in as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks")):
        if (name := as_text(at(check, "name"))) not in state.checks:
            return f"AdmissionCheck {name}"
    return ""


def _is_stopped_before_admission(
    cluster: ChangedCluster, workload: Manifest, queue: str, local: tuple[str, str]
) -> bool:
    """A queue on hold keeps its admitted workloads, and takes the quota of those that wait for an AdmissionCheck."""
    states = [
        [
            as_text(at(one, "spec", "stopPolicy")) in HELD
            for one in (state.queues.get(queue), state.local_queues.get(local))
        ]
        for state in (cluster.before, cluster.after)
    ]
    return not has_condition(workload, "Admitted") and not any(states[0]) and any(states[1])


def _starts_draining(before: Manifest | None, after: Manifest | None) -> bool:
    return [as_text(at(one, "spec", "stopPolicy")) == DRAIN for one in (before, after)] == [False, True]


def _local_queue(workload: Manifest) -> tuple[str, str]:
    return as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName"))


@dataclass(frozen=True, slots=True)
class Admissions:
    """`unknown` is why the scheduler's next steps are not known; empty if they are."""

    hits: tuple[Hit, ...] = ()
    unknown: str = ""


def find_admissions(cluster: ChangedCluster, evicted: Collection[str]) -> Admissions:
    """Compare what the scheduler does without the plan and after it. `evicted` are the uids that the plan evicts."""
    workloads = read_workloads(cluster.workloads, cluster.before, cluster.configuration)
    waiting = sorted((one for one in workloads if not one.held), key=lambda one: one.turn)
    never = tuple(_never(cluster, workloads))
    before = _settle(cluster, cluster.before, workloads, ())
    left = {one.queue for one in workloads if one.uid in evicted}
    woken = cluster.woken | with_cohorts(cluster.after, left)
    after = _settle(cluster, cluster.after, _without(workloads, evicted), woken)
    if why := next(_why_unknown(cluster, waiting, before, after), ""):
        return Admissions(never, why)
    moved = (*_started(waiting, before, after), *_preempted(before, after))
    seen = {id(hit.workload) for hit in moved}
    return Admissions((*moved, *(hit for hit in never if id(hit.workload) not in seen)))


def _settle(
    cluster: ChangedCluster, state: ClusterState, workloads: Iterable[QueuedWorkload], woken: Collection[str]
) -> Settled:
    if state.tree is None:
        return Settled()
    return build_scheduler(state, state.tree, workloads, cluster.settings, woken).settle()


def _without(workloads: Iterable[QueuedWorkload], evicted: Collection[str]) -> Iterator[QueuedWorkload]:
    for one in workloads:
        yield replace(one, held={}) if one.uid in evicted else one


def _why_unknown(
    cluster: ChangedCluster, waiting: Iterable[QueuedWorkload], before: Settled, after: Settled
) -> Iterator[str]:
    if cluster.reconfigured:
        settings = ", ".join(cluster.reconfigured)
        yield f"the plan changes {settings} of Kueue's Configuration, and Kueue then tries all workloads again"
    for name in sorted({*_repriced(cluster)}):
        yield f"the plan changes the priority of workloads of WorkloadPriorityClass {name}"
    for name in sorted({name for one in waiting for name in _transformed(cluster, one)}):
        yield f"Kueue counts {name} in other units, which is not computed"
    for name in sorted(name for name, queue in cluster.after.queues.items() if not has_known_order(queue)):
        yield f"the order of queue {name} depends on past usage, which no object shows"
    if not (before.is_settled and after.is_settled):
        yield ENDLESS
    for flavor in sorted({*_topologies(cluster.before, before), *_topologies(cluster.after, after)}):
        yield f"flavor {flavor} has a topology, and whether its nodes have room is not computed"


def _repriced(cluster: ChangedCluster) -> Iterator[str]:
    """The priority classes whose new value the priority of a workload is not yet: Kueue then writes it."""
    for workload in cluster.workloads:
        name = _priority_class(workload)
        if cluster.priorities.get(name, priority_of(workload)) != priority_of(workload):
            yield name


def _priority_class(workload: Manifest) -> str:
    """The WorkloadPriorityClass of a workload, in the words of v1beta2 or of v1beta1."""
    reference = at(workload, "spec", "priorityClassRef")
    if at(reference, "group") == GROUP:
        return as_text(at(reference, "name"))
    source = at(workload, "spec", "priorityClassSource")
    return as_text(at(workload, "spec", "priorityClassName")) if source == OLD_SOURCE else ""


def _transformed(cluster: ChangedCluster, workload: QueuedWorkload) -> frozenset[str]:
    """The requested resources that Kueue's Configuration turns into others."""
    return cluster.before.facts.settings.transformed & {name for one in workload.pod_sets for name in one.requests}


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


def _never(cluster: ChangedCluster, workloads: Iterable[QueuedWorkload]) -> Iterator[Hit]:
    """Workloads that can never be admitted any more, or again; and waiting ones that now can be."""
    known: tuple[dict[tuple[str, str], AdmissionIssue | None], ...] = ({}, {})
    for one in sorted(workloads, key=lambda one: (bool(one.held), one.turn)):
        states = (cluster.before, cluster.after)
        if _transformed(cluster, one) or any(why_not_queued(state, one.manifest) for state in states):
            continue
        old, new = (_why_never(one, state, seen) for state, seen in zip(states, known, strict=True))
        if new and not old:
            yield Hit(one.manifest, Impact.NEVER, f"it runs, but {AGAIN}: {new.problem}" if one.held else new.problem)
        elif old and not new and not one.held:
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
