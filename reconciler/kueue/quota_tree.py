"""Quota arithmetic on cohort trees. Nothing in Kueue rejects a cycle of cohorts, and its scheduler then stops.

Kueue keeps one sum per cohort and does not record from whom a queue borrows. Decision: borrowed quota counts as taken
from the nearest cohort; there from the quota of the cohort itself, because no member misses that; then from the member
that leaves most quota unused. The sums are those of Kueue.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import KfleetError
from reconciler.kueue.kinds import kind_of
from reconciler.kueue.reading import add, amount_of, as_list, as_map, as_text, at, subtract
from reconciler.objects import Manifest


class CohortCycleError(KfleetError):
    """The cohorts form a cycle; Kueue 0.19 stops scheduling these queues and can crash."""

    def __init__(self, cycles: tuple[tuple[str, ...], ...]) -> None:
        self.cycles = cycles
        super().__init__("; ".join(f"cohort cycle: {show_cycle(cycle)}" for cycle in cycles))


def find_cycles(manifests: Iterable[Manifest]) -> tuple[tuple[str, ...], ...]:
    """Return each cycle once, as the names of its cohorts from child to parent, the alphabetically first one first."""
    cohorts = (manifest for manifest in manifests if (kind := kind_of(manifest)) and kind.name == "Cohort")
    parents = {as_text(at(cohort, "metadata", "name")): as_text(at(cohort, "spec", "parentName")) for cohort in cohorts}
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(parents):
        walk: list[str] = []
        name = start
        while name in parents and name not in done:
            done.add(name)
            walk.append(name)
            name = parents[name]
        if name in walk:
            cycles.append(_from_first(walk[walk.index(name) :]))
    return tuple(sorted(cycles))


def show_cycle(cycle: tuple[str, ...]) -> str:
    return " -> ".join((*cycle, cycle[0]))


def _from_first(cycle: list[str]) -> tuple[str, ...]:
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])


class NodeKind(StrEnum):
    COHORT = "Cohort"
    QUEUE = "ClusterQueue"


@dataclass(frozen=True, slots=True, order=True)
class NodeName:
    """A queue and a cohort may have the same name: they are two nodes."""

    kind: NodeKind
    name: str


@dataclass(frozen=True, slots=True, order=True)
class FlavorResource:
    flavor: str
    name: str


@dataclass(frozen=True, slots=True)
class NodeQuota:
    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class QuotaNode:
    parent: NodeName | None
    quotas: Mapping[FlavorResource, NodeQuota]


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """All trees of one cluster. `subtree` is what each node can give out: its own quota and what its children lend."""

    nodes: Mapping[NodeName, QuotaNode]
    subtree: Mapping[NodeName, Mapping[FlavorResource, int]]


Amounts = Mapping[FlavorResource, int]


Usage = Mapping[NodeName, Amounts]


NO_QUOTA = NodeQuota()


def build_tree(manifests: Iterable[Manifest]) -> QuotaTree:
    """Return the trees of canonical ClusterQueues and Cohorts. Raises CohortCycleError if there is a cycle."""
    listed = tuple(manifests)
    if cycles := find_cycles(listed):
        raise CohortCycleError(cycles)
    given = {name: _read_node(name, manifest) for manifest in listed if (name := _name_of(manifest))}
    named = {node.parent: QuotaNode(None, {}) for node in given.values() if node.parent}
    nodes = {**named, **given}
    return QuotaTree(nodes, _sum_up(nodes))


def with_quota(tree: QuotaTree, name: NodeName, pair: FlavorResource, quota: NodeQuota) -> QuotaTree:
    """Return the tree with another quota of one node, which changes what its ancestors can give out."""
    node = tree.nodes[name]
    nodes = {**tree.nodes, name: QuotaNode(node.parent, {**node.quotas, pair: quota})}
    return QuotaTree(nodes, _sum_up(nodes))


def root_of(tree: QuotaTree, name: NodeName) -> NodeName:
    """Return the root of the tree of a node: only nodes below it can borrow from each other."""
    return lineage(tree, name)[-1]


def subtree_quota(tree: QuotaTree, name: NodeName, pair: FlavorResource) -> int:
    return tree.subtree[name].get(pair, 0)


def local_quota(tree: QuotaTree, name: NodeName, pair: FlavorResource) -> int:
    """Return what a node keeps for itself: the part of its subtree that its lending limit withholds."""
    return _held_back(tree.nodes[name].quotas.get(pair, NO_QUOTA), subtree_quota(tree, name, pair))


def potential(tree: QuotaTree, name: NodeName, pair: FlavorResource) -> int:
    """Return the most that a node could use if all others are idle: a larger workload is never admitted."""
    root, *below = reversed(lineage(tree, name))
    amount = subtree_quota(tree, root, pair)
    for node in below:
        amount = add(local_quota(tree, node, pair), amount)
        limit = tree.nodes[node].quotas.get(pair, NO_QUOTA).borrowing_limit
        if limit is not None:
            amount = min(amount, add(subtree_quota(tree, node, pair), limit))
    return amount


def available(tree: QuotaTree, name: NodeName, pair: FlavorResource, usage: Usage) -> int:
    """Return the free quota of a node, given `spread_usage`; negative if more was admitted than there is."""
    root, *below = reversed(lineage(tree, name))
    amount = subtract(subtree_quota(tree, root, pair), usage[root].get(pair, 0))
    for node in below:
        local, used = local_quota(tree, node, pair), usage[node].get(pair, 0)
        limit = tree.nodes[node].quotas.get(pair, NO_QUOTA).borrowing_limit
        if limit is not None:
            lent = subtract(subtree_quota(tree, node, pair), local)
            amount = min(amount, add(subtract(lent, max(0, subtract(used, local))), limit))
        amount = add(max(0, subtract(local, used)), amount)
    return amount


def spread_usage(tree: QuotaTree, of_queues: Mapping[str, Amounts]) -> Usage:
    """Return the usage of every node: a cohort counts what its children use beyond their local quota."""
    usage: dict[NodeName, dict[FlavorResource, int]] = {
        name: dict(of_queues.get(name.name, {})) if name.kind is NodeKind.QUEUE else {} for name in tree.nodes
    }
    for name in children_first(tree.nodes):
        parent = tree.nodes[name].parent
        if parent is not None:
            for pair, used in usage[name].items():
                beyond = max(0, subtract(used, local_quota(tree, name, pair)))
                usage[parent][pair] = add(usage[parent].get(pair, 0), beyond)
    return usage


def _name_of(manifest: Manifest) -> NodeName | None:
    kind, name = kind_of(manifest), as_text(at(manifest, "metadata", "name"))
    return NodeName(NodeKind(kind.name), name) if kind and kind.name in {*NodeKind} and name else None


def _read_node(name: NodeName, manifest: Manifest) -> QuotaNode:
    field = "cohortName" if name.kind is NodeKind.QUEUE else "parentName"
    parent = as_text(at(manifest, "spec", field))
    return QuotaNode(NodeName(NodeKind.COHORT, parent) if parent else None, dict(_read_quotas(manifest)))


def _read_quotas(manifest: Manifest) -> Iterator[tuple[FlavorResource, NodeQuota]]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for quota in map(as_map, as_list(at(flavor, "resources"))):
                name = as_text(quota.get("name"))
                borrowing, lending = quota.get("borrowingLimit"), quota.get("lendingLimit")
                yield (
                    FlavorResource(as_text(at(flavor, "name")), name),
                    NodeQuota(
                        amount_of(name, quota.get("nominalQuota")),
                        None if borrowing is None else amount_of(name, borrowing),
                        None if lending is None else amount_of(name, lending),
                    ),
                )


def _sum_up(nodes: Mapping[NodeName, QuotaNode]) -> Usage:
    subtree = {name: {pair: quota.nominal for pair, quota in node.quotas.items()} for name, node in nodes.items()}
    for name in children_first(nodes):
        parent = nodes[name].parent
        if parent is not None:
            for pair, amount in subtree[name].items():
                lent = subtract(amount, _held_back(nodes[name].quotas.get(pair, NO_QUOTA), amount))
                subtree[parent][pair] = add(subtree[parent].get(pair, 0), lent)
    return subtree


def _held_back(quota: NodeQuota, subtree: int) -> int:
    return 0 if quota.lending_limit is None else max(0, subtract(subtree, quota.lending_limit))


def children_first(nodes: Mapping[NodeName, QuotaNode]) -> tuple[NodeName, ...]:
    depths: dict[NodeName, int] = {}
    for name in nodes:
        climb = [name]
        while climb[-1] not in depths and (parent := nodes[climb[-1]].parent):
            climb.append(parent)
        depths.setdefault(climb[-1], 0)
        for child, parent in zip(reversed(climb[:-1]), reversed(climb), strict=False):
            depths[child] = depths[parent] + 1
    return tuple(sorted(nodes, key=lambda name: (-depths[name], name)))


def lineage(tree: QuotaTree, name: NodeName) -> tuple[NodeName, ...]:
    """Return the node and its ancestors, the root last."""
    lineage = [name]
    while parent := tree.nodes[lineage[-1]].parent:
        lineage.append(parent)
    return tuple(lineage)


Parts = dict[NodeName, int]


@dataclass(frozen=True, slots=True)
class Loan:
    """`lender` is a queue or a cohort with quota of its own; `cohort` is where both meet."""

    lender: NodeName
    borrower: NodeName
    cohort: str
    amount: int


@dataclass(slots=True)
class _Market:
    """What the nodes below one cohort leave unused, and what they need beyond their own."""

    unused: Parts
    needed: Parts


def find_loans(tree: QuotaTree, pair: FlavorResource, usage: Usage) -> tuple[Loan, ...]:
    """Return all loans of one flavor and resource, given `spread_usage`."""
    nodes = _involved(tree, pair)
    markets = {name: _Market({}, {}) for name in nodes}
    loans: list[Loan] = []
    for name in children_first(nodes):
        market, node = markets[name], tree.nodes[name]
        own = node.quotas[pair].nominal if pair in node.quotas else 0
        if name.kind is NodeKind.COHORT:
            loans += _trade(name.name, market, {name: own})
        else:
            used = usage[name].get(pair, 0)
            market.unused, market.needed = {name: max(0, subtract(own, used))}, {name: max(0, subtract(used, own))}
        if node.parent is not None:
            _offer(market, markets[node.parent], _lendable(tree, name, pair, usage))
    return tuple(loans)


def _involved(tree: QuotaTree, pair: FlavorResource) -> Mapping[NodeName, QuotaNode]:
    """The nodes with quota for a flavor and resource, and their ancestors: a large cluster has many others."""
    found: dict[NodeName, QuotaNode] = {}
    for start, node in tree.nodes.items():
        name: NodeName | None = start if pair in node.quotas else None
        while name is not None and name not in found:
            found[name] = tree.nodes[name]
            name = found[name].parent
    return found


def _lendable(tree: QuotaTree, name: NodeName, pair: FlavorResource, usage: Usage) -> int:
    """What a node leaves unused of the quota that it may lend."""
    local = local_quota(tree, name, pair)
    used = max(0, subtract(usage[name].get(pair, 0), local))
    return max(0, subtract(subtract(subtree_quota(tree, name, pair), local), used))


def _offer(market: _Market, above: _Market, lendable: int) -> None:
    above.unused |= _taken(lendable, market.unused)
    above.needed |= market.needed


def _trade(cohort: str, market: _Market, own: Parts) -> list[Loan]:
    """Match what is needed with what is unused, the quota of the cohort first. What remains is for the parent."""
    loans = _matched(cohort, own, market)
    others = market.unused
    loans += _matched(cohort, others, market)
    market.unused = {**own, **others}
    return loans


def _matched(cohort: str, unused: Parts, market: _Market) -> list[Loan]:
    loans = []
    for borrower in sorted(name for name, amount in market.needed.items() if amount > 0):
        for lender, amount in _taken(market.needed[borrower], unused).items():
            loans.append(Loan(lender, borrower, cohort, amount))
            unused[lender] = subtract(unused[lender], amount)
            market.needed[borrower] = subtract(market.needed[borrower], amount)
    return loans


def _taken(wanted: int, unused: Mapping[NodeName, int]) -> Parts:
    """Return the parts that make up an amount, as far as there is enough: the largest first, then by name."""
    found: Parts = {}
    if wanted <= 0:
        return found
    for name in sorted(unused, key=lambda name: (-unused[name], name)):
        amount = min(wanted, unused[name])
        if amount > 0:
            found[name] = amount
            wanted -= amount
    return found
