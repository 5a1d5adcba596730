"""Who borrows quota from whom in a cohort tree.

Kueue keeps one sum per cohort and does not record from whom a queue borrows. Decision: borrowed quota counts as taken
from the nearest cohort; there from the quota of the cohort itself, because no member misses that; then from the member
that leaves most quota unused. The sums are those of Kueue.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.kueue.quota_tree import (
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaNode,
    QuotaTree,
    Usage,
    children_first,
    local_quota,
    subtree_quota,
)
from reconciler.kueue.resources import subtract

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
