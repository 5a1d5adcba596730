"""The quota of the queues of one cluster: nominal, used, reserved, borrowed from whom, lent to whom."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.kueue.quota_tree import (
    CohortCycleError,
    FlavorResource,
    Loan,
    NodeKind,
    NodeName,
    QuotaTree,
    build_tree,
    children_first,
    find_loans,
    spread_usage,
)
from reconciler.kueue.reading import amount_of, as_list, as_map, as_text, at, quantity_at, quantity_of
from reconciler.objects import Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.view.live import LiveCluster
from reconciler.view.model import CohortEntry, CohortResource, QuotaShare

Reported = Mapping[FlavorResource, Quantity]


@dataclass(frozen=True, slots=True)
class ClusterQuotas:
    """`tree` is None if cohorts were not observed, or form a cycle, which `problem` names.

    `reserved` and `used` have what Kueue reported of each queue. `loans` has no entry for a tree in which the
    reservations of a queue are not known.
    """

    tree: QuotaTree | None
    problem: str = ""
    reserved: Mapping[str, Reported] = field(default_factory=dict)
    used: Mapping[str, Reported] = field(default_factory=dict)
    loans: Mapping[tuple[NodeName, FlavorResource], tuple[Loan, ...]] = field(default_factory=dict)

    def loans_of(self, queue: str, pair: FlavorResource) -> tuple[Loan, ...] | None:
        """All loans of the tree of a queue; None if they are not known."""
        if self.tree is None:
            return None
        return self.loans.get((self.path_of(queue)[0], pair))

    def path_of(self, queue: str) -> tuple[NodeName, ...]:
        return self.path_to(NodeName(NodeKind.QUEUE, queue))

    def path_to(self, name: NodeName) -> tuple[NodeName, ...]:
        """A node and its ancestors, the root first."""
        path = [name]
        while self.tree is not None and (parent := self.tree.nodes[path[0]].parent):
            path.insert(0, parent)
        return tuple(path)


def read_quotas(live: LiveCluster) -> ClusterQuotas:
    queues = live.queues or {}
    reserved = {name: reported(queue, "flavorsReservation") for name, queue in queues.items()}
    used = {name: reported(queue, "flavorsUsage") for name, queue in queues.items()}
    if live.queues is None or live.cohorts is None:
        return ClusterQuotas(None, reserved=reserved, used=used)
    try:
        tree = build_tree((*queues.values(), *live.cohorts.values()))
    except CohortCycleError as error:
        return ClusterQuotas(None, str(error), reserved, used)
    return ClusterQuotas(tree, "", reserved, used, _loans(tree, reserved))


def reported(queue: Manifest, name: str) -> Reported:
    return {
        FlavorResource(as_text(at(flavor, "name")), as_text(at(one, "name"))): quantity_at(at(one, "total")) or ZERO
        for flavor in as_list(at(queue, "status", name))
        for one in map(as_map, as_list(at(flavor, "resources")))
    }


def _loans(
    tree: QuotaTree, reserved: Mapping[str, Reported]
) -> dict[tuple[NodeName, FlavorResource], tuple[Loan, ...]]:
    roots = _roots(tree)
    amounts = {
        name: {pair: amount_of(pair.name, str(amount)) for pair, amount in of_queue.items()}
        for name, of_queue in reserved.items()
    }
    usage = spread_usage(tree, amounts)
    known: dict[FlavorResource, set[NodeName]] = {}
    unknown: set[tuple[NodeName, FlavorResource]] = set()
    for name, node in tree.nodes.items():
        for pair in node.quotas:
            known.setdefault(pair, set()).add(roots[name])
            if name.kind is NodeKind.QUEUE and pair not in reserved[name.name]:
                unknown.add((roots[name], pair))
    found: dict[tuple[NodeName, FlavorResource], tuple[Loan, ...]] = {}
    for pair, of_pair in known.items():
        by_root = _by_root(find_loans(tree, pair, usage), roots)
        found |= {(root, pair): by_root.get(root, ()) for root in of_pair if (root, pair) not in unknown}
    return found


def _by_root(loans: Iterable[Loan], roots: Mapping[NodeName, NodeName]) -> dict[NodeName, tuple[Loan, ...]]:
    found: dict[NodeName, tuple[Loan, ...]] = {}
    for loan in loans:
        root = roots[loan.borrower]
        found[root] = (*found.get(root, ()), loan)
    return found


def _roots(tree: QuotaTree) -> dict[NodeName, NodeName]:
    roots: dict[NodeName, NodeName] = {}
    for name in reversed(children_first(tree.nodes)):
        parent = tree.nodes[name].parent
        roots[name] = roots[parent] if parent else name
    return roots


def shares(loans: Iterable[Loan], resource: str, queue: str, *, is_borrower: bool) -> tuple[QuotaShare, ...]:
    """Return the other side of each loan of a queue."""
    own = NodeName(NodeKind.QUEUE, queue)
    sides = ((one, one.lender if is_borrower else one.borrower) for one in loans)
    return tuple(
        QuotaShare(other.name if other.kind is NodeKind.QUEUE else "", _cohort(loan, other), _amount(resource, loan))
        for loan, other in sides
        if own == (loan.borrower if is_borrower else loan.lender)
    )


def _cohort(loan: Loan, other: NodeName) -> str:
    return other.name if other.kind is NodeKind.COHORT else loan.cohort


def _amount(resource: str, loan: Loan) -> Quantity:
    return quantity_of(resource, loan.amount)


def cohort_entries(live: LiveCluster, quotas: ClusterQuotas) -> Iterator[CohortEntry]:
    """The cohorts of a cluster as a tree, by name below each parent, each with the sums over its subtree."""
    if quotas.tree is None:
        return
    nodes = quotas.tree.nodes
    sums = _subtree_sums(quotas, quotas.tree)
    cohorts = (name for name in nodes if name.kind is NodeKind.COHORT)
    for name in sorted(cohorts, key=lambda one: [above.name for above in quotas.path_to(one)]):
        parent = nodes[name].parent
        below = (one.name for one, node in nodes.items() if node.parent == name and one.kind is NodeKind.QUEUE)
        yield CohortEntry(
            live.name,
            name.name,
            parent.name if parent else "",
            tuple(sorted(below)),
            resources=tuple(sums[name][pair] for pair in sorted(sums[name])),
        )


def _subtree_sums(quotas: ClusterQuotas, tree: QuotaTree) -> dict[NodeName, dict[FlavorResource, CohortResource]]:
    sums: dict[NodeName, dict[FlavorResource, CohortResource]] = {name: {} for name in tree.nodes}
    for name in children_first(tree.nodes):
        own = quotas.reserved.get(name.name, {}) if name.kind is NodeKind.QUEUE else None
        for pair, quota in tree.nodes[name].quotas.items():
            used = ZERO if own is None else own.get(pair)
            nominal = quantity_of(pair.name, quota.nominal)
            _add(sums[name], pair, CohortResource(pair.flavor, pair.name, nominal, used))
        parent = tree.nodes[name].parent
        for pair, amount in sums[name].items() if parent else ():
            _add(sums[parent or name], pair, amount)
    return sums


def _add(sums: dict[FlavorResource, CohortResource], pair: FlavorResource, more: CohortResource) -> None:
    old = sums.get(pair)
    if old is None:
        sums[pair] = more
        return
    used = None if old.used is None or more.used is None else old.used + more.used
    sums[pair] = CohortResource(pair.flavor, pair.name, old.nominal + more.nominal, used)
