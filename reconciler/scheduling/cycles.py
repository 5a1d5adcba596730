"""Kueue's scheduling cycles, until nothing moves any more.

Each cycle tries the first workload of every queue. Those that fit get their quota, others preempt, and the rest waits
until quota is free again.
"""

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.admission.nodes import is_selected
from reconciler.admission.state import ClusterState
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import HELD
from reconciler.objects import Manifest
from reconciler.scheduling.fair import find_fair_targets, next_entry
from reconciler.scheduling.flavors import FlavorSearch
from reconciler.scheduling.model import (
    FlavorChoice,
    FlavorMode,
    Preemption,
    QueuedWorkload,
    QueueRules,
    SchedulerSettings,
    Settled,
    Target,
)
from reconciler.scheduling.preemption import ANY, LOWER_OR_NEWER, PreemptionAttempt, find_targets
from reconciler.scheduling.usage import Held, Pair, UsageNode

# More cycles per workload than this are an endless exchange of preemptions.
MOST_ROUNDS = 3
Entry = tuple[QueuedWorkload, FlavorChoice]
Requests = tuple[tuple[Pair, int], ...]


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """The queues of one cluster, whose workloads it moves. A queue without rules here takes no workloads.

    What is `parked` was tried in vain. In the queues that are `waking` it is tried again a second after what waits.
    """

    state: ClusterState
    settings: SchedulerSettings
    rules: Mapping[str, QueueRules]
    nodes: Mapping[str, UsageNode]
    running: dict[str, dict[str, QueuedWorkload]]
    waiting: dict[str, list[QueuedWorkload]]
    parked: dict[str, list[QueuedWorkload]] = field(default_factory=dict)
    waking: set[str] = field(default_factory=set)
    sticky: dict[str, str] = field(default_factory=dict)
    clock: float = 0.0
    misfits: dict[tuple[str, int, str], str] = field(default_factory=dict)
    _failed: dict[tuple[str, frozenset[Pair]], list[tuple[QueuedWorkload, Requests]]] = field(default_factory=dict)
    _admitted: dict[str, Held] = field(default_factory=dict)
    _preempted: dict[str, Preemption] = field(default_factory=dict)

    def settle(self) -> Settled:
        for line in self.waiting.values():
            line.sort(key=_turn)
        count = sum(map(len, (*self.waiting.values(), *self.parked.values(), *self.running.values())))
        is_settled = any(not self._cycle() and not self._wake() for _ in range(MOST_ROUNDS * count + MOST_ROUNDS))
        return Settled(admitted=self._admitted, preempted=self._preempted, is_settled=is_settled)

    def queues_that_fit(self) -> frozenset[str]:
        """The queues whose first workload fits into the quota that is free now."""
        for line in self.waiting.values():
            line.sort(key=_turn)
        return frozenset(name for name, one in self._heads() if self._choose(one).mode is FlavorMode.FIT)

    def _cycle(self) -> bool:
        """Whether anything moved."""
        entries = {name: (one, self._choose(one)) for name, one in self._heads()}
        gone: dict[str, Target] = {}
        has_moved = False
        reserved: list[tuple[UsageNode, Held]] = []
        for name in self._in_order(entries):
            has_moved = self._process(name, entries[name], gone, reserved) or has_moved
        for node, held in reserved:
            node.remove(held)
        for target in gone.values():
            self._release(target.workload)
        return has_moved

    def _wake(self) -> bool:
        """Let parked workloads wait again. Kueue does so in batches of a second, when what waits has been tried."""
        woken = [name for name in self.waking if self.parked.get(name)]
        self.waking.clear()
        for name in woken:
            self.waiting[name] = sorted((*self.waiting.get(name, ()), *self.parked.pop(name)), key=_turn)
        return bool(woken)

    def _heads(self) -> Iterator[tuple[str, QueuedWorkload]]:
        for name, line in self.waiting.items():
            if line:
                sticky = self.sticky.get(name)
                yield name, next((one for one in line if one.uid == sticky), line[0])

    def _choose(self, workload: QueuedWorkload) -> FlavorChoice:
        rules = self.rules[workload.queue]
        known: dict[tuple[frozenset[Pair], Requests], tuple[Target, ...]] = {}

        def targets(needing: frozenset[Pair], requests: Held) -> tuple[Target, ...]:
            key = (needing, tuple(requests.items()))
            if key not in known:
                known[key] = () if self._is_hopeless(workload, *key) else search_targets(needing, requests)
                if not known[key]:
                    self._failed.setdefault((workload.queue, needing), []).append((workload, key[1]))
            return known[key]

        def search_targets(needing: frozenset[Pair], requests: Held) -> tuple[Target, ...]:
            attempt = PreemptionAttempt(
                workload=workload,
                queue=rules,
                nodes=self.nodes,
                running=self.running,
                needing=needing,
                requests=requests,
            )
            return find_fair_targets(attempt, self.settings) if self.settings.is_fair else find_targets(attempt)

        search = FlavorSearch(
            state=self.state,
            rules=rules,
            nodes=self.nodes,
            workload=workload,
            find_targets=targets,
            can_reclaim_while_borrowing=self.settings.is_fair,
            misfits=self.misfits,
        )
        return search.choose()

    def _is_hopeless(self, workload: QueuedWorkload, needing: frozenset[Pair], requests: Requests) -> bool:
        """Whether a more important one with an equal or smaller request found nothing since quota last moved."""
        wanted, rules = dict(requests), self.rules[workload.queue]
        is_by_age = LOWER_OR_NEWER in (rules.within_queue, rules.reclaim)
        return any(
            workload.priority <= other.priority
            and not (is_by_age and workload.queued_at < other.queued_at)
            and all(wanted.get(pair, 0) >= amount for pair, amount in failed)
            for other, failed in self._failed.get((workload.queue, needing), ())
        )

    def _in_order(self, entries: Mapping[str, Entry]) -> Iterator[str]:
        if not self.settings.is_fair:
            yield from sorted(entries, key=lambda name: (entries[name][1].borrowing, *entries[name][0].turn))
            return
        left = dict(entries)
        while left:
            node = self.nodes[next(iter(left))]
            name = node.name.name if node.parent is None else next_entry(node.root(), left, self.settings)
            yield name
            del left[name]

    def _process(
        self, name: str, entry: Entry, gone: dict[str, Target], reserved: list[tuple[UsageNode, Held]]
    ) -> bool:
        workload, choice = entry
        rules, node = self.rules[name], self.nodes[name]
        if choice.mode is FlavorMode.NO_FIT:
            return self._park(rules, workload)
        if choice.mode is FlavorMode.PREEMPT and not choice.targets:
            if rules.reclaim != ANY:
                self._assume(node, _to_reserve(node, choice), reserved)
            return self._park(rules, workload)
        if any(target.workload.uid in gone for target in choice.targets) or not self._still_fits(node, choice, gone):
            return False  # it is tried again, if anything else moves
        if choice.mode is FlavorMode.FIT:
            self._admit(workload, choice.usage)
            return True
        self._assume(node, choice.usage, reserved)
        for target in choice.targets:
            gone[target.workload.uid] = target
            self._preempted.setdefault(target.workload.uid, Preemption(target.workload, workload, target.reason))
        if not rules.is_strict:
            self.sticky[name] = workload.uid
        return True

    def _assume(self, node: UsageNode, held: Held, reserved: list[tuple[UsageNode, Held]]) -> None:
        """Keep others from this quota until the cycle ends."""
        node.add(held)
        reserved.append((node, held))

    def _still_fits(self, node: UsageNode, choice: FlavorChoice, gone: Mapping[str, Target]) -> bool:
        leaving = [target.workload for target in (*gone.values(), *choice.targets)]
        for one in leaving:
            self.nodes[one.queue].remove(one.held)
        fits = all(amount <= max(0, node.free(pair)) for pair, amount in choice.usage.items())
        for one in leaving:
            self.nodes[one.queue].add(one.held)
        return fits

    def _admit(self, workload: QueuedWorkload, usage: Held) -> None:
        name = workload.queue
        self._failed.clear()
        self.waiting[name].remove(workload)
        self.clock += 1
        self.running.setdefault(name, {})[workload.uid] = replace(workload, held=usage, reserved_at=self.clock)
        self.nodes[name].add(usage)
        self._admitted[workload.uid] = usage
        if self.sticky.get(name) == workload.uid:
            del self.sticky[name]

    def _release(self, workload: QueuedWorkload) -> None:
        """Its quota is free, it waits again, and soon so do all in its cohorts that had no chance before."""
        name = workload.queue
        self._failed.clear()
        del self.running[name][workload.uid]
        self.nodes[name].remove(workload.held)
        self._admitted.pop(workload.uid, None)
        if taking_queue(self.state, workload.manifest) == name:
            insort(self.waiting.setdefault(name, []), replace(workload, held={}), key=_turn)
        root = self.nodes[name].root()
        self.waking |= {other.name.name for other in (root.queues() if root.children else (root,))}

    def _park(self, rules: QueueRules, workload: QueuedWorkload) -> bool:
        """Let the next one of the queue try. All with the same shape wait too: they have no better chance."""
        if rules.is_strict:
            return False
        alike = (workload.shape, workload.priority)
        line = self.waiting[rules.name]
        self.parked.setdefault(rules.name, []).extend(one for one in line if (one.shape, one.priority) == alike)
        self.waiting[rules.name] = [one for one in line if (one.shape, one.priority) != alike]
        self.sticky.pop(rules.name, None)
        return True


def _to_reserve(node: UsageNode, choice: FlavorChoice) -> Held:
    """What a workload without a chance to preempt keeps from those behind it in the same cycle."""
    reserved = {}
    for pair, amount in choice.usage.items():
        left = node.nominal.get(pair, 0) - node.used.get(pair, 0)
        if not choice.borrowing:
            reserved[pair] = max(0, min(amount, left))
        elif pair in node.borrowing_limit:
            reserved[pair] = min(amount, left + node.borrowing_limit[pair])
        else:
            reserved[pair] = amount
    return reserved


def _turn(workload: QueuedWorkload) -> tuple[int, object, str]:
    return workload.turn


def taking_queue(state: ClusterState, workload: Manifest) -> str:
    """The ClusterQueue that takes a workload now; empty if none does."""
    namespace = as_text(at(workload, "metadata", "namespace"))
    local = state.local_queues.get((namespace, as_text(at(workload, "spec", "queueName"))))
    name = as_text(at(local, "spec", "clusterQueue"))
    queue = state.queues.get(name)
    if queue is None or any(as_text(at(one, "spec", "stopPolicy")) in HELD for one in (local, queue)):
        return ""
    return name if is_selected(at(queue, "spec", "namespaceSelector"), namespace, state) else ""
