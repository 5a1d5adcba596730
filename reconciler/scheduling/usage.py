"""The quota trees of a cluster with their usage, as the scheduler changes it while it tries workloads.

Decision: nodes are mutable, unlike the values around them. One cycle tries hundreds of removals, and copies of the
usage would take most of the time. Nothing outside this package holds a node.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    Usage,
    local_quota,
    potential,
)

# Flavor and resource; a plain tuple because its hash is computed in C.
Pair = tuple[str, str]
Held = Mapping[Pair, int]
PER_MILLE = 1000.0


@dataclass(slots=True, eq=False, kw_only=True)
class UsageNode:
    """A ClusterQueue or a cohort. `subtree` is what it can give out, `local` the part that it never lends."""

    name: NodeName
    parent: "UsageNode | None" = None
    children: list["UsageNode"] = field(default_factory=list)
    nominal: dict[Pair, int] = field(default_factory=dict)
    borrowing_limit: dict[Pair, int] = field(default_factory=dict)
    subtree: dict[Pair, int] = field(default_factory=dict)
    local: dict[Pair, int] = field(default_factory=dict)
    most: dict[Pair, int] = field(default_factory=dict)
    used: dict[Pair, int] = field(default_factory=dict)
    weight: float = 1.0
    lendable: dict[str, int] | None = None
    levels: int | None = None
    """Both are computed once: the sum of what it could use of each resource, and the levels below it."""

    @property
    def is_queue(self) -> bool:
        return self.name.kind is NodeKind.QUEUE

    def path(self) -> Iterator["UsageNode"]:
        """The ancestors, the root last."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> "UsageNode":
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def queues(self) -> Iterator["UsageNode"]:
        for child in self.children:
            yield from [child] if child.is_queue else child.queues()

    def height(self) -> int:
        if self.levels is None:
            below = [child.height() + 1 for child in self.children if not child.is_queue]
            self.levels = max((min(len(self.children), 1), *below))
        return self.levels

    def local_free(self, pair: Pair) -> int:
        return max(0, self.local.get(pair, 0) - self.used.get(pair, 0))

    def free(self, pair: Pair) -> int:
        """What can be taken now; negative if more was admitted than there is."""
        subtree, used = self.subtree.get(pair, 0), self.used.get(pair, 0)
        if self.parent is None:
            return subtree - used
        amount = self.parent.free(pair)
        local = self.local.get(pair, 0)
        limit = self.borrowing_limit.get(pair)
        if limit is not None:
            amount = min(amount, subtree - local - max(0, used - local) + limit)
        return max(0, local - used) + amount

    def is_borrowing_with(self, pair: Pair, more: int = 0) -> bool:
        return self.used.get(pair, 0) + more > self.subtree.get(pair, 0)

    def is_within_own(self, pairs: Iterator[Pair] | frozenset[Pair]) -> bool:
        return all(self.used.get(pair, 0) <= self.subtree.get(pair, 0) for pair in pairs)

    def add(self, held: Held) -> None:
        for pair, amount in held.items():
            self._add(pair, amount)

    def remove(self, held: Held) -> None:
        for pair, amount in held.items():
            self._remove(pair, amount)

    def _add(self, pair: Pair, amount: int) -> None:
        beyond = amount - self.local_free(pair)
        self.used[pair] = self.used.get(pair, 0) + amount
        if self.parent is not None and beyond > 0:
            self.parent._add(pair, beyond)  # noqa: SLF001  (of the same class)

    def _remove(self, pair: Pair, amount: int) -> None:
        in_parent = self.used.get(pair, 0) - self.local.get(pair, 0)
        self.used[pair] = self.used.get(pair, 0) - amount
        if self.parent is not None and in_parent > 0:
            self.parent._remove(pair, min(amount, in_parent))  # noqa: SLF001  (of the same class)


def build_nodes(tree: QuotaTree, usage: Usage, weights: Mapping[NodeName, float]) -> dict[NodeName, UsageNode]:
    """Nodes of their own, so that a later change of their usage reaches nothing else."""
    nodes = {name: UsageNode(name=name, weight=weights.get(name, 1.0)) for name in sorted(tree.nodes)}
    for name, node in nodes.items():
        parent = tree.nodes[name].parent
        if parent is not None:
            node.parent = nodes[parent]
            nodes[parent].children.append(node)
        node.used = {_pair(pair): amount for pair, amount in usage.get(name, {}).items()}
        for pair, amount in tree.subtree[name].items():
            quota = tree.nodes[name].quotas.get(pair, NO_QUOTA)
            key = _pair(pair)
            node.subtree[key] = amount
            node.nominal[key] = quota.nominal
            node.local[key] = local_quota(tree, name, pair)
            if quota.borrowing_limit is not None:
                node.borrowing_limit[key] = quota.borrowing_limit
    for node in nodes.values():
        node.most = {key: potential(tree, node.name, FlavorResource(*key)) for key in node.root().subtree}
    return nodes


def height_that_fits(queue: UsageNode, pair: Pair, amount: int) -> tuple[int, bool]:
    """How far up a queue has to borrow, 0 if not at all; and whether quota is left above that.

    Kueue calls it the height of the lowest subtree that fits.
    """
    if queue.parent is None or not queue.is_borrowing_with(pair, amount):
        return 0, queue.parent is not None
    left = amount - queue.local_free(pair)
    for node in queue.path():
        if not node.is_borrowing_with(pair, left):
            return node.height(), node.parent is not None
        left -= node.local_free(pair)
    return queue.root().height(), False


def _pair(pair: FlavorResource) -> Pair:
    return pair.flavor, pair.name


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
