"""Waiting workloads before and after a plan: which would start, and which can never be admitted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.admission.fit import fit
from reconciler.admission.model import PodSet, Submission, Verdict
from reconciler.admission.state import ClusterState
from reconciler.admission.templates import number, pod_set
from reconciler.effects.evictions import Hit, is_waiting, why_not_queued
from reconciler.effects.model import Impact
from reconciler.effects.states import ChangedCluster
from reconciler.kueue.queue_order import in_queue_order
from reconciler.kueue.quota_tree import FlavorResource, NodeKind, spread_usage
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

STRICT = "StrictFIFO"


@dataclass(frozen=True, slots=True)
class Chance:
    """Whether a waiting workload starts at once, or can never be admitted, and why not."""

    is_started: bool
    is_never: bool
    why: str = ""


def find_admissions(cluster: ChangedCluster) -> Iterator[Hit]:
    """Compare what Kueue could do with the waiting workloads. Preemption is not part of it."""
    waiting = in_queue_order(one for one in cluster.workloads if is_waiting(one))
    before, after = chances(cluster.before, waiting), chances(cluster.after, waiting)
    for workload, old, new in zip(waiting, before, after, strict=True):
        if old is None or new is None:
            continue
        if new.is_never and not old.is_never:
            yield Hit(workload, Impact.NEVER, new.why)
        elif new.is_started and not old.is_started:
            yield Hit(workload, Impact.STARTS, "it fits into the quota that is free afterwards")
        elif old.is_never and not new.is_never:
            yield Hit(workload, Impact.POSSIBLE, "it can be admitted when others have finished")


def chances(state: ClusterState, waiting: list[Manifest]) -> list[Chance | None]:
    """One chance per workload in queue order; None if no queue takes it, or if it is behind a blocked one.

    Each workload that starts uses quota, so the next one has less.
    """
    current, blocked = state, set[str]()
    found: list[Chance | None] = []
    for workload in waiting:
        queue = _queue(state, workload)
        if queue is None or why_not_queued(state, workload):
            found.append(None)
            continue
        name = as_text(at(queue, "metadata", "name"))
        result = fit(submission_of(workload), current, queue)
        is_started = result.issue is None and name not in blocked
        if is_started:
            current = _with_usage(current, name, result.assumed)
        elif as_text(at(queue, "spec", "queueingStrategy")) == STRICT:
            blocked.add(name)
        is_never = result.issue is not None and result.issue.verdict is Verdict.NEVER
        found.append(Chance(is_started, is_never, result.issue.problem if result.issue else ""))
    return found


def submission_of(workload: Manifest) -> Submission:
    pod_sets = tuple(_pod_sets(workload))
    return Submission(
        kind="Workload",
        namespace=as_text(at(workload, "metadata", "namespace")),
        name=as_text(at(workload, "metadata", "name")),
        framework="",
        queue=as_text(at(workload, "spec", "queueName")),
        priority_class="",
        pod_sets=pod_sets,
    )


def _pod_sets(workload: Manifest) -> Iterator[PodSet]:
    for entry in map(as_map, as_list(at(workload, "spec", "podSets"))):
        least = entry.get("minCount")
        found = pod_set(as_text(entry.get("name")), number(entry.get("count")), entry.get("template"))
        yield replace(found, least=least if isinstance(least, int) else None)


def _queue(state: ClusterState, workload: Manifest) -> Manifest | None:
    address = (as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName")))
    return state.queues.get(as_text(at(state.local_queues.get(address), "spec", "clusterQueue")))


def _with_usage(state: ClusterState, queue: str, more: Mapping[FlavorResource, int]) -> ClusterState:
    if state.tree is None:
        return state
    used = {node.name: dict(found) for node, found in state.usage.items() if node.kind is NodeKind.QUEUE}
    for pair, amount in more.items():
        used[queue][pair] = used[queue].get(pair, 0) + amount
    return replace(state, usage=spread_usage(state.tree, used))
