"""Who borrows quota from whom in a cohort tree.

Kueue keeps one sum per cohort and does not record from whom a queue borrows. Decision: borrowed quota counts as taken
from the nearest cohort; there from the quota of the cohort itself, because no member misses that; then from the members
that leave quota unused, in proportion to it. The sums are those of Kueue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

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
from reconciler.kueue.resources import add, subtract

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
    above.unused |= _divided(min(lendable, _sum(market.unused)), market.unused)
    above.needed |= market.needed


def _trade(cohort: str, market: _Market, own: Parts) -> list[Loan]:
    """Match what is needed with what is unused, the quota of the cohort first. What remains is for the parent."""
    loans = _matched(cohort, own, market)
    others = market.unused
    loans += _matched(cohort, others, market)
    market.unused = {**own, **others}
    return loans


def _matched(cohort: str, unused: Parts, market: _Market) -> list[Loan]:
    traded = min(_sum(unused), _sum(market.needed))
    given, taken = _divided(traded, unused), _divided(traded, market.needed)
    for name, amount in given.items():
        unused[name] = subtract(unused[name], amount)
    market.needed = {name: subtract(amount, taken[name]) for name, amount in market.needed.items()}
    return _pairs(cohort, given, taken)


def _pairs(cohort: str, given: Parts, taken: Parts) -> list[Loan]:
    loans = []
    lenders = [(name, amount) for name, amount in sorted(given.items()) if amount]
    for borrower, wanted in sorted(taken.items()):
        rest = wanted
        while rest and lenders:
            lender, left = lenders.pop(0)
            amount = min(rest, left)
            loans.append(Loan(lender, borrower, cohort, amount))
            rest -= amount
            if left > amount:
                lenders.insert(0, (lender, left - amount))
    return loans


def _divided(whole: int, weights: Mapping[NodeName, int]) -> Parts:
    """Divide by largest remainder; a part is never larger than its weight, if the whole is not."""
    total = sum(weights.values())
    exact = {name: Fraction(whole * weight, total or 1) for name, weight in weights.items()}
    parts = {name: int(share) for name, share in exact.items()}
    rest = (whole if total else 0) - sum(parts.values())
    for name in sorted(weights, key=lambda name: (parts[name] - exact[name], name))[:rest]:
        parts[name] += 1
    return parts


def _sum(parts: Mapping[NodeName, int]) -> int:
    total = 0
    for amount in parts.values():
        total = add(total, amount)
    return total
