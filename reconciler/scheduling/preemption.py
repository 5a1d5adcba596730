"""Which workloads Kueue preempts for another one, without fair sharing.

Kueue removes candidates in order until the workload fits, then adds back those that were not needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.scheduling.model import PreemptionReason, QueuedWorkload, QueueRules, Target
from reconciler.scheduling.usage import Held, Pair, UsageNode

NEVER, LOWER, LOWER_OR_NEWER, ANY = "Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"
Running = Mapping[str, Mapping[str, QueuedWorkload]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionAttempt:
    """One workload that needs these pairs, and those that hold quota now, by queue and uid."""

    workload: QueuedWorkload
    queue: QueueRules
    nodes: Mapping[str, UsageNode]
    running: Running
    needing: frozenset[Pair]
    requests: Held

    def fits(self, *, may_borrow: bool) -> bool:
        node = self.queue.node
        return all(
            (may_borrow or not node.is_borrowing_with(pair, amount)) and amount <= max(0, node.free(pair))
            for pair, amount in self.requests.items()
        )


class _Candidate(NamedTuple):
    """In the order of preemption. `common` is the cohort up to which its ancestors must borrow; None in one queue."""

    order: tuple[int, float, str]
    workload: QueuedWorkload
    reason: PreemptionReason
    common: UsageNode | None = None
    is_never_while_borrowing: bool = False


def may_preempt(policy: str, workload: QueuedWorkload, other: QueuedWorkload) -> bool:
    if policy == ANY:
        return True
    if policy == LOWER_OR_NEWER and workload.priority == other.priority:
        return workload.queued_at < other.queued_at
    return policy in {LOWER, LOWER_OR_NEWER} and workload.priority > other.priority


def candidates_of(attempt: PreemptionAttempt, queue: str, policy: str) -> list[QueuedWorkload]:
    """The workloads of a queue that use what is needed, and that the policy allows to preempt."""
    needing, workload = attempt.needing, attempt.workload
    return [
        other
        for other in attempt.running.get(queue, {}).values()
        if (policy == ANY or may_preempt(policy, workload, other)) and not needing.isdisjoint(other.held)
    ]


def find_targets(attempt: PreemptionAttempt) -> tuple[Target, ...]:
    hierarchical, others = _in_cohort(attempt)
    candidates = (*sorted(hierarchical), *sorted(others), *sorted(_in_same_queue(attempt)))
    for may_borrow in _ways(attempt, has_hierarchical=bool(hierarchical), has_others=bool(hierarchical or others)):
        if targets := _try(attempt, candidates, may_borrow=may_borrow):
            return targets
    return ()


def with_added_back(
    nodes: Mapping[str, UsageNode], targets: Sequence[Target], fits: Callable[[], bool]
) -> tuple[Target, ...]:
    """Add workloads back while it still fits, the last removed first. All of them are back in the usage afterwards."""
    kept = list(targets)
    for at in range(len(kept) - 2, -1, -1):
        one = kept[at].workload
        nodes[one.queue].add(one.held)
        if fits():
            kept[at] = kept[-1]
            kept.pop()
        else:
            nodes[one.queue].remove(one.held)
    for target in kept:
        nodes[target.workload.queue].add(target.workload.held)
    return tuple(kept)


def _ways(attempt: PreemptionAttempt, *, has_hierarchical: bool, has_others: bool) -> tuple[bool, ...]:
    """Whether to try with borrowing, without, or both in this order."""
    node, is_forbidden = attempt.queue.node, not attempt.queue.can_borrow_to_preempt
    is_below = all(node.used.get(pair, 0) < node.nominal.get(pair, 0) for pair in attempt.needing)
    if not has_others or (is_forbidden and not is_below):
        return (True,)
    return (False, True) if is_forbidden and not has_hierarchical else (True, False)


def _try(attempt: PreemptionAttempt, candidates: Iterable[_Candidate], *, may_borrow: bool) -> tuple[Target, ...]:
    targets: list[Target] = []
    for candidate in candidates:
        if not _is_valid(attempt, candidate, may_borrow=may_borrow):
            continue
        one = candidate.workload
        attempt.nodes[one.queue].remove(one.held)
        targets.append(Target(one, candidate.reason))
        if attempt.fits(may_borrow=may_borrow):
            return with_added_back(attempt.nodes, targets, lambda: attempt.fits(may_borrow=may_borrow))
    for target in targets:
        attempt.nodes[target.workload.queue].add(target.workload.held)
    return ()


def _is_valid(attempt: PreemptionAttempt, candidate: _Candidate, *, may_borrow: bool) -> bool:
    """Whether its queue and the cohorts above still borrow, after the removals so far."""
    if candidate.common is None:
        return True
    if may_borrow and candidate.is_never_while_borrowing:
        return False
    node = attempt.nodes[candidate.workload.queue]
    if node.is_within_own(attempt.needing):
        return False
    for ancestor in node.path():
        if ancestor is candidate.common:
            break
        if ancestor.is_within_own(attempt.needing):
            return False
    return True


def _in_same_queue(attempt: PreemptionAttempt) -> list[_Candidate]:
    if attempt.queue.within_queue == NEVER:
        return []
    found = candidates_of(attempt, attempt.queue.name, attempt.queue.within_queue)
    return [_Candidate(one.candidate_order, one, PreemptionReason.IN_QUEUE) for one in found]


def _in_cohort(attempt: PreemptionAttempt) -> tuple[list[_Candidate], list[_Candidate]]:
    """Candidates that use quota of a subtree that the workload fits into, and all others."""
    found: tuple[list[_Candidate], list[_Candidate]] = ([], [])
    node = attempt.queue.node
    if node.parent is None or attempt.queue.reclaim == NEVER:
        return found
    has_advantage, left = _fit_in_own(node, attempt.requests)
    before: UsageNode | None = None
    for cohort in node.path():
        for queue in _borrowing_queues(attempt, cohort, before):
            for one in candidates_of(attempt, queue.name.name, attempt.queue.reclaim):
                reason, is_limited = _variant(attempt, one, has_advantage=has_advantage)
                found[0 if has_advantage else 1].append(
                    _Candidate(one.candidate_order, one, reason, cohort, is_limited)
                )
        fits, left = _fit_in_own(cohort, left)
        has_advantage, before = has_advantage or fits, cohort
    return found


def _variant(attempt: PreemptionAttempt, one: QueuedWorkload, *, has_advantage: bool) -> tuple[PreemptionReason, bool]:
    """Why it may be preempted, and whether that is forbidden to a queue that borrows afterwards."""
    if has_advantage:
        return PreemptionReason.RECLAIM, False
    threshold = attempt.queue.borrow_threshold
    is_too_important = one.priority >= attempt.workload.priority or (threshold is not None and one.priority > threshold)
    if not attempt.queue.can_borrow_to_preempt or is_too_important:
        return PreemptionReason.RECLAIM, True
    return PreemptionReason.BORROW, False


def _borrowing_queues(attempt: PreemptionAttempt, cohort: UsageNode, skipped: UsageNode | None) -> Iterator[UsageNode]:
    for child in cohort.children:
        if child is skipped or child is attempt.queue.node or child.is_within_own(attempt.needing):
            continue
        if child.is_queue:
            yield child
        else:
            yield from _borrowing_queues(attempt, child, skipped)


def _fit_in_own(node: UsageNode, requests: Held) -> tuple[bool, dict[Pair, int]]:
    """Whether it fits into what the node has of its own, and what it needs from above."""
    fits = all(not node.is_borrowing_with(pair, amount) for pair, amount in requests.items())
    return fits, {pair: max(0, amount - node.local_free(pair)) for pair, amount in requests.items()}
