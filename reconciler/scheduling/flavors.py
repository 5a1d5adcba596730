"""Which flavors a workload would get: Kueue's search, with preemption as one of the ways to make room."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reconciler.admission.fit import PODS, Group
from reconciler.admission.model import PodSet
from reconciler.admission.nodes import misfit
from reconciler.admission.state import ClusterState
from reconciler.scheduling.model import FlavorChoice, FlavorMode, QueuedWorkload, QueueRules, Target
from reconciler.scheduling.preemption import NEVER
from reconciler.scheduling.usage import Held, Pair, UsageNode, height_that_fits

# How a flavor fits, and how far up the queue would have to borrow.
Rank = tuple[FlavorMode, int]
BEST: Rank = (FlavorMode.FIT, 0)
WORST: Rank = (FlavorMode.NO_FIT, 2**31)
FindTargets = Callable[[frozenset[Pair], Held], tuple[Target, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorSearch:
    """The search for one workload. `find_targets` says which workloads would have to go for these pairs."""

    state: ClusterState
    rules: QueueRules
    nodes: Mapping[str, UsageNode]
    workload: QueuedWorkload
    find_targets: FindTargets
    can_reclaim_while_borrowing: bool
    misfits: dict[tuple[str, int, str], str]
    """Which flavors the pods cannot use, by shape, pod set and flavor: the same in every cycle."""

    def choose(self) -> FlavorChoice:
        """All pods or, if fewer are enough, as many as can be admitted."""
        pod_sets = self.workload.pod_sets
        whole = self._with_targets([one.count for one in pod_sets])
        spare = [one.count - _least(one) for one in pod_sets]
        if _is_usable(whole) or not sum(spare):
            return whole
        low, high, found = 1, sum(spare), whole
        while low <= high:
            middle = (low + high) // 2
            counts = [one.count - part * middle // sum(spare) for one, part in zip(pod_sets, spare, strict=True)]
            tried = self._with_targets(counts)
            if _is_usable(tried):
                found, high = tried, middle - 1
            else:
                low = middle + 1
        return found

    def _with_targets(self, counts: Iterable[int]) -> FlavorChoice:
        choice = self._choose(counts)
        if choice.mode is not FlavorMode.PREEMPT:
            return choice
        targets = self.find_targets(choice.needing, choice.usage)
        return FlavorChoice(choice.mode, choice.usage, choice.needing, choice.borrowing, targets)

    def _choose(self, counts: Iterable[int]) -> FlavorChoice:
        usage: dict[Pair, int] = {}
        needing: set[Pair] = set()
        borrowing = 0
        for number, (pod_set, count) in enumerate(zip(self.workload.pod_sets, counts, strict=True)):
            requests = self._requests(pod_set, count)
            taken: dict[str, tuple[str, Rank]] = {}
            for name in sorted(requests):
                group = self.rules.group_of(name)
                if name in taken or (group is None and self._may_be_undeclared(requests[name])):
                    continue
                asked = {one: requests[one] for one in group.covered if one in requests} if group else {}
                found = self._best(number, group, asked, usage) if group else {}
                if not found:
                    return FlavorChoice()
                taken |= found
            for name, (flavor, (mode, height)) in taken.items():
                pair = (flavor, name)
                usage[pair] = usage.get(pair, 0) + requests[name]
                borrowing = max(borrowing, height)
                if mode is not FlavorMode.FIT:
                    needing.add(pair)
        mode = FlavorMode.PREEMPT if needing else FlavorMode.FIT
        return FlavorChoice(mode, usage, frozenset(needing), borrowing)

    def _requests(self, pod_set: PodSet, count: int) -> dict[str, int]:
        counts = self.state.facts.settings.counts
        requests = {name: amount for name, amount in pod_set.total(count).items() if counts(name)}
        return {**requests, PODS: count} if self.rules.group_of(PODS) else requests

    def _may_be_undeclared(self, amount: int) -> bool:
        return amount == 0 or self.state.facts.settings.ignores_undeclared

    def _best(self, number: int, group: Group, asked: Mapping[str, int], usage: Held) -> dict[str, tuple[str, Rank]]:
        """The flavor of each resource; nothing if none can be used."""
        best: dict[str, tuple[str, Rank]] = {}
        best_rank = WORST
        for flavor in group.flavors:
            if self._misfit(number, flavor, group):
                continue
            worst, ranks = BEST, {}
            for name, amount in asked.items():
                pair = (flavor, name)
                rank = self._rank(pair, usage.get(pair, 0) + amount)
                if self._is_better(worst, rank):
                    worst = rank
                if rank[0] is FlavorMode.NO_FIT:
                    break
                ranks[name] = (flavor, rank)
            if not self._tries_next(worst):
                return ranks
            if self._is_better(worst, best_rank):
                best, best_rank = ranks, worst
        return best

    def _rank(self, pair: Pair, amount: int) -> Rank:
        node = self.rules.node
        if amount > node.most.get(pair, 0):
            return FlavorMode.NO_FIT, 0
        height, has_more_above = height_that_fits(node, pair, amount)
        if amount <= max(0, node.free(pair)):
            return FlavorMode.FIT, height
        if not (amount <= node.nominal.get(pair, 0) or has_more_above or self._can_preempt_while_borrowing()):
            return FlavorMode.NO_FIT, height
        targets = self.find_targets(frozenset((pair,)), {pair: amount})
        if not targets:
            return FlavorMode.NO_CANDIDATES, height
        for target in targets:
            self.nodes[target.workload.queue].remove(target.workload.held)
        height, _ = height_that_fits(node, pair, amount)
        for target in targets:
            self.nodes[target.workload.queue].add(target.workload.held)
        is_own = any(target.workload.queue == self.rules.name for target in targets)
        return (FlavorMode.PREEMPT if is_own else FlavorMode.RECLAIM), height

    def _can_preempt_while_borrowing(self) -> bool:
        is_fair = self.can_reclaim_while_borrowing and self.rules.reclaim != NEVER
        return self.rules.can_borrow_to_preempt or is_fair

    def _is_better(self, one: Rank, other: Rank) -> bool:
        if FlavorMode.NO_FIT in (one[0], other[0]):
            return one[0] is not FlavorMode.NO_FIT
        if self.rules.prefers_preemption:
            return (-one[1], one[0]) > (-other[1], other[0])
        return (one[0], -one[1]) > (other[0], -other[1])

    def _tries_next(self, rank: Rank) -> bool:
        mode, height = rank
        if mode in (FlavorMode.NO_FIT, FlavorMode.NO_CANDIDATES):
            return True
        is_preempting = mode is not FlavorMode.FIT
        return (is_preempting and self.rules.tries_next_to_preempt) or (height > 0 and self.rules.tries_next_to_borrow)

    def _misfit(self, number: int, flavor: str, group: Group) -> str:
        key = (self.workload.shape, number, flavor)
        if key not in self.misfits:
            found = self.state.flavors.get(flavor)
            pod_set, is_all = self.workload.pod_sets[number], self.rules.is_all_topology
            why = misfit(pod_set, found, is_all_topology=is_all, keys=group.keys) if found else "does not exist"
            self.misfits[key] = why
        return self.misfits[key]


def _least(pod_set: PodSet) -> int:
    return pod_set.count if pod_set.least is None else min(pod_set.least, pod_set.count)


def _is_usable(choice: FlavorChoice) -> bool:
    return choice.mode is FlavorMode.FIT or bool(choice.targets)
