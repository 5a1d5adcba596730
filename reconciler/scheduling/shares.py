"""Dominant resource shares: how much more than its own a queue or a cohort uses, by which fair sharing decides."""

from dataclasses import dataclass

from reconciler.scheduling.usage import Held, Pair, UsageNode

PER_MILLE = 1000.0


@dataclass(frozen=True, slots=True)
class FairShare:
    """`ratio` is borrowed against lendable, per mille, of the dominant resource; `borrowed` is all that is borrowed."""

    ratio: float = 0.0
    weight: float = 1.0
    borrowed: frozenset[Pair] = frozenset()

    @property
    def key(self) -> tuple[bool, float]:
        """A lower one is served first, and preempted last. With weight 0, each borrowing is more than any other."""
        if not self.weight and self.ratio:
            return True, self.ratio
        return False, self.ratio / self.weight if self.ratio else 0.0

    def is_borrowing_of(self, requested: Held) -> bool:
        return any(requested.get(pair, 0) > 0 for pair in self.borrowed)


LOWEST = (False, -1.0)


def share_of(node: UsageNode) -> FairShare:
    if node.parent is None:
        return FairShare(weight=node.weight)
    beyond: dict[str, int] = {}
    borrowed = []
    for pair, quota in node.subtree.items():
        amount = node.used.get(pair, 0) - quota
        if amount > 0:
            beyond[pair[1]] = beyond.get(pair[1], 0) + amount
            borrowed.append(pair)
    if not borrowed:
        return FairShare(weight=node.weight)
    lendable = _lendable(node.parent)
    ratios = (amount * PER_MILLE / lendable[name] for name, amount in beyond.items() if lendable.get(name, 0) > 0)
    return FairShare(max(ratios, default=0.0), node.weight, frozenset(borrowed))


def _lendable(node: UsageNode) -> dict[str, int]:
    if node.lendable is None:
        node.lendable = {}
        for pair, amount in node.most.items():
            node.lendable[pair[1]] = node.lendable.get(pair[1], 0) + amount
    return node.lendable
