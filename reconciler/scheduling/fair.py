"""Fair sharing: which workload of a cycle goes first, and which workloads are preempted for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.scheduling.model import (
    FlavorChoice,
    PreemptionReason,
    QueuedWorkload,
    SchedulerSettings,
    Target,
)
from reconciler.scheduling.preemption import NEVER, PreemptionAttempt, candidates_of, with_added_back
from reconciler.scheduling.usage import LOWEST, FairShare, UsageNode, share_of

Entries = Mapping[str, tuple[QueuedWorkload, FlavorChoice]]


def next_entry(root: UsageNode, entries: Entries, settings: SchedulerSettings) -> str:
    """The queue of one tree whose workload wins: at each cohort the child whose share would be lowest with it."""
    shares: dict[tuple[UsageNode, str], FairShare] = {}
    for queue in root.queues():
        name = queue.name.name
        if name not in entries:
            continue
        usage = entries[name][1].usage
        queue.add(usage)
        share = share_of(queue)
        for cohort in queue.path():
            shares[cohort, name] = share
            share = share_of(cohort)
        queue.remove(usage)

    def order(cohort: UsageNode, name: str) -> tuple[object, ...]:
        workload, choice = entries[name]
        share = shares[cohort, name]
        is_borrowing = settings.prefers_non_borrowing and share.is_borrowing_of(choice.usage)
        return is_borrowing, share.key, *workload.turn[:2]

    def winner(cohort: UsageNode) -> str:
        below = [winner(child) for child in cohort.children if not child.is_queue]
        own = [child.name.name for child in cohort.children if child.is_queue and child.name.name in entries]
        return min(filter(None, (*below, *own)), key=lambda name: order(cohort, name), default="")

    return winner(root)


def find_fair_targets(attempt: PreemptionAttempt, settings: SchedulerSettings) -> tuple[Target, ...]:
    candidates = sorted(_candidates(attempt), key=lambda one: (one.queue == attempt.queue.name, one.candidate_order))
    if not candidates:
        return ()
    node = attempt.queue.node
    node.add(attempt.requests)
    targets, retried, fits = _first_rule(attempt, candidates, settings)
    if not fits and settings.has_final_share and settings.has_initial_share:
        fits = _second_rule(attempt, retried, targets)
    node.remove(attempt.requests)
    if fits:
        return with_added_back(attempt.nodes, targets, lambda: attempt.fits(may_borrow=True))
    for target in targets:
        attempt.nodes[target.workload.queue].add(target.workload.held)
    return ()


def _candidates(attempt: PreemptionAttempt) -> Iterator[QueuedWorkload]:
    rules = attempt.queue
    if rules.within_queue != NEVER:
        yield from candidates_of(attempt, rules.name, rules.within_queue)
    if rules.node.parent is None or rules.reclaim == NEVER:
        return
    for queue in rules.node.root().queues():
        if queue is not rules.node and not queue.is_within_own(attempt.needing):
            yield from candidates_of(attempt, queue.name.name, rules.reclaim)


def _first_rule(
    attempt: PreemptionAttempt, candidates: Sequence[QueuedWorkload], settings: SchedulerSettings
) -> tuple[list[Target], list[QueuedWorkload], bool]:
    """Preempt while the share of the other is not lower without the workload; or freely for what is the queue's own."""
    search = _Search(attempt, candidates)
    targets: list[Target] = []
    retried: list[QueuedWorkload] = []
    is_own = settings.reclaims_own_quota and attempt.queue.node.is_within_own(attempt.needing)
    while (queue := search.next_queue()) is not None:
        if queue is attempt.queue.node or is_own:
            reason = PreemptionReason.IN_QUEUE if queue is attempt.queue.node else PreemptionReason.RECLAIM
            targets.append(_preempt(attempt, search.pop(queue), reason))
        else:
            target = _first_allowed(attempt, search, queue, retried, settings)
            if target is None:
                continue
            targets.append(target)
        if _fits(attempt):
            return targets, retried, True
    return targets, retried, False


def _first_allowed(
    attempt: PreemptionAttempt,
    search: "_Search",
    queue: UsageNode,
    retried: list[QueuedWorkload],
    settings: SchedulerSettings,
) -> Target | None:
    mine, theirs = _below_common(attempt.queue.node, queue)
    new_share, old_share = share_of(mine).key, share_of(theirs).key
    while search.left.get(queue.name.name):
        one = search.pop(queue)
        queue.remove(one.held)
        after = share_of(theirs).key
        queue.add(one.held)
        if new_share <= after if settings.has_final_share else new_share < old_share:
            return _preempt(attempt, one, PreemptionReason.FAIR)
        retried.append(one)
    return None


def _second_rule(attempt: PreemptionAttempt, retried: Sequence[QueuedWorkload], targets: list[Target]) -> bool:
    search = _Search(attempt, retried)
    while (queue := search.next_queue()) is not None:
        mine, theirs = _below_common(attempt.queue.node, queue)
        one = search.pop(queue)
        if share_of(mine).key < share_of(theirs).key:
            targets.append(_preempt(attempt, one, PreemptionReason.FAIR))
            if _fits(attempt):
                return True
        search.dropped.add(queue.name.name)
    return False


def _preempt(attempt: PreemptionAttempt, one: QueuedWorkload, reason: PreemptionReason) -> Target:
    attempt.nodes[one.queue].remove(one.held)
    return Target(one, reason)


def _fits(attempt: PreemptionAttempt) -> bool:
    node = attempt.queue.node
    node.remove(attempt.requests)
    fits = attempt.fits(may_borrow=True)
    node.add(attempt.requests)
    return fits


def _below_common(one: UsageNode, other: UsageNode) -> tuple[UsageNode, UsageNode]:
    """The ancestors of both, or they themselves, right below the first cohort that they have in common."""
    above_one, above_other = [one, *one.path()], [other, *other.path()]
    common = next(node for node in above_other if node in above_one)
    return above_one[above_one.index(common) - 1], above_other[above_other.index(common) - 1]


@dataclass(slots=True)
class _Search:
    """The queue to preempt from next: downwards from the root, the child with the highest share."""

    attempt: PreemptionAttempt
    candidates: Sequence[QueuedWorkload]
    left: dict[str, list[QueuedWorkload]] = field(init=False)
    dropped: set[str] = field(default_factory=set)
    pruned: set[UsageNode] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = {}
        for one in self.candidates:
            self.left.setdefault(one.queue, []).append(one)

    def pop(self, queue: UsageNode) -> QueuedWorkload:
        return self.left[queue.name.name].pop(0)

    def next_queue(self) -> UsageNode | None:
        own = self.attempt.queue.node
        if own.parent is None:
            return own if own.name.name not in self.dropped and self.left.get(own.name.name) else None
        root = own.root()
        while root not in self.pruned:
            if found := self._search(root):
                return found
        return None

    def _search(self, cohort: UsageNode) -> UsageNode | None:
        queue, queue_share = self._highest_queue(cohort.children)
        below, below_share = self._highest_cohort(cohort.children)
        if queue is None and below is None:
            self.pruned.add(cohort)
            return None
        if below is not None and below_share >= queue_share:
            return self._search(below)
        return queue

    def _highest_queue(self, children: Iterable[UsageNode]) -> tuple[UsageNode | None, tuple[bool, float]]:
        best, best_share = None, LOWEST
        for child in children:
            name = child.name.name
            if not child.is_queue or child in self.pruned or name in self.dropped:
                continue
            share = share_of(child)
            if not self.left.get(name) or (not share.borrowed and child is not self.attempt.queue.node):
                self.pruned.add(child)
            elif share.key > best_share or (share.key == best_share and best and self._is_before(child, best)):
                best, best_share = child, share.key
        return best, best_share

    def _is_before(self, one: UsageNode, other: UsageNode) -> bool:
        own = self.attempt.queue.name
        first, second = self.left[one.name.name][0], self.left[other.name.name][0]
        return (first.queue == own, first.candidate_order) < (second.queue == own, second.candidate_order)

    def _highest_cohort(self, children: Iterable[UsageNode]) -> tuple[UsageNode | None, tuple[bool, float]]:
        best, best_share = None, LOWEST
        on_path = set(self.attempt.queue.node.path())
        for child in children:
            if child.is_queue or child in self.pruned:
                continue
            share = share_of(child)
            if not share.borrowed and child not in on_path:
                self.pruned.add(child)
            elif share.key >= best_share:
                best, best_share = child, share.key
        return best, best_share
