"""From capacity to quota: who gets how much of each flavor on each cluster. Arithmetic alone, and exact."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import ZERO, Amount, Percent, Quantity, scale, split, unit_of
from reconciler.snapshot.model import Amounts, Capacities, FlavorKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import Cluster, Flavor, FleetSpec, Queue, QuotaEntry

_QUOTA_FIELDS = ("nominalQuota", "borrowingLimit", "lendingLimit")


@dataclass(frozen=True, slots=True)
class Quota:
    """One entry of a queue on one cluster, with every share turned into a number."""

    flavor: str
    nominal: Amounts
    borrowing: Amounts
    lending: Amounts


@dataclass(frozen=True, slots=True)
class QuotaTable:
    """The quota of every queue on every cluster that has one of its flavors.

    `unseen` are the flavors, by queue, that the queue has a share of and whose capacity is unknown.
    """

    entries: Mapping[tuple[str, ClusterName], tuple[Quota, ...]]
    gaps: tuple[Gap, ...]
    unseen: Mapping[str, tuple[FlavorKey, ...]]

    def of(self, queue: Queue, cluster: ClusterName) -> tuple[Quota, ...]:
        """The entries of a queue on a cluster, in the queue's own order: Kueue tries flavors in it."""
        return self.entries.get((queue.name, cluster), ())

    def unseen_of(self, queue: Queue, clusters: Iterable[Cluster]) -> str:
        """What was not seen of the quota that a queue has on these clusters."""
        names = {cluster.name for cluster in clusters}
        unseen = [place for place in self.unseen.get(queue.name, ()) if place.cluster in names]
        return "; ".join(f"the capacity of flavor {place.flavor} on {place.cluster} was not seen" for place in unseen)


def compute_quota(spec: FleetSpec, seen: Capacities) -> QuotaTable:
    """`seen` holds the capacity of flavors that are observed; static ones are in the spec.

    A share of what was not seen counts as 0, so that a new queue can be made.
    """
    usable = _usable_capacities(spec, seen)
    shares = _split_shares(spec, usable)
    observed = {flavor.name for flavor in spec.flavors if flavor.capacity.source is not CapacitySource.STATIC}
    entries: dict[tuple[str, ClusterName], tuple[Quota, ...]] = {}
    gaps: dict[Gap, None] = {}
    unseen: dict[str, tuple[FlavorKey, ...]] = {}
    for queue, entry, place in _queue_entries(spec):
        capacity = usable.get(place)
        if capacity is None and _has_share(entry):
            what = f"capacity of flavor {place.flavor}"
            gaps[Gap(place.cluster, what, "not observed; its shares count as 0", place.flavor)] = None
            unseen[queue.name] = (*unseen.get(queue.name, ()), place)
        key = (queue.name, place.cluster)
        quota = _quota(queue, entry, place, _Known(place.flavor in observed, capacity or {}, shares))
        entries[key] = (*entries.get(key, ()), quota)
    return QuotaTable(entries, tuple(gaps), unseen)


def live_quota(queues: Iterable[Manifest], name: str) -> Iterator[Quota]:
    """The entries of a live queue, as it is."""
    for queue in queues:
        for group in as_list(at(queue, "spec", "resourceGroups")) if at(queue, "metadata", "name") == name else ():
            for flavor in as_list(at(group, "flavors")):
                nominal, borrowing, lending = (_live_amounts(flavor, field) for field in _QUOTA_FIELDS)
                yield Quota(as_text(at(flavor, "name")), nominal, borrowing, lending)


def _live_amounts(flavor: Manifest, field: str) -> Amounts:
    found = ((as_text(at(one, "name")), quantity_at(at(one, field))) for one in as_list(at(flavor, "resources")))
    return {name: amount for name, amount in found if amount is not None}


@dataclass(frozen=True, slots=True)
class _Known:
    is_observed: bool
    capacity: Amounts
    shares: Mapping[tuple[str, FlavorKey, str], Quantity]


def _quota(queue: Queue, entry: QuotaEntry, place: FlavorKey, known: _Known) -> Quota:
    nominal = {
        name: amount if isinstance(amount, Quantity) else known.shares.get((queue.name, place, name), ZERO)
        for name, amount in entry.resources.items()
    }
    lending = _limits(entry.lending_limit, known.capacity)
    if known.is_observed:
        # Kueue refuses to lend more than there is, and what is observed may become less at any time.
        lending = {name: min(limit, nominal.get(name, limit)) for name, limit in lending.items()}
    return Quota(entry.flavor, nominal, _limits(entry.borrowing_limit, known.capacity), lending)


def _limits(limits: Mapping[str, Amount], capacity: Amounts) -> Amounts:
    return {
        name: amount
        if isinstance(amount, Quantity)
        else scale(capacity.get(name, ZERO), amount.fraction, unit_of(name))
        for name, amount in limits.items()
    }


def _usable_capacities(spec: FleetSpec, seen: Capacities) -> Capacities:
    """Capacity of each flavor on each cluster, less the headroom."""
    found: dict[FlavorKey, Amounts] = {}
    for flavor in spec.flavors:
        keep = 1 - _headroom(spec, flavor)
        for cluster in spec.selected(flavor.clusters):
            place = FlavorKey(cluster.name, flavor.name)
            is_static = flavor.capacity.source is CapacitySource.STATIC
            amounts = flavor.capacity.resources if is_static else seen.get(place)
            if amounts is not None:
                found[place] = {name: scale(amount, keep, unit_of(name)) for name, amount in amounts.items()}
    return found


def _headroom(spec: FleetSpec, flavor: Flavor) -> Fraction:
    own = flavor.capacity.headroom
    return (spec.fleet.policy.capacity.headroom if own is None else own).fraction


def _split_shares(spec: FleetSpec, usable: Capacities) -> Mapping[tuple[str, FlavorKey, str], Quantity]:
    """All shares of one flavor on one cluster together, so that their sum never exceeds what is there."""
    wanted: dict[tuple[FlavorKey, str], dict[str, Fraction]] = {}
    for queue, entry, place in _queue_entries(spec):
        for name, amount in entry.resources.items():
            if isinstance(amount, Percent):
                wanted.setdefault((place, name), {})[queue.name] = amount.fraction
    found: dict[tuple[str, FlavorKey, str], Quantity] = {}
    for (place, name), fractions in wanted.items():
        parts = split(usable.get(place, {}).get(name, ZERO), _at_most_whole(fractions), unit_of(name))
        found |= {(queue, place, name): part for queue, part in parts.items()}
    return found


def _at_most_whole(fractions: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """Shares that ask for more than everything are cut in proportion; lint reports them before anything is applied."""
    asked = sum(fractions.values(), Fraction(0))
    return {name: fraction / asked for name, fraction in fractions.items()} if asked > 1 else fractions


def _queue_entries(spec: FleetSpec) -> Iterator[tuple[Queue, QuotaEntry, FlavorKey]]:
    clusters_of_flavor = {
        flavor.name: {cluster.name for cluster in spec.selected(flavor.clusters)} for flavor in spec.flavors
    }
    for queue in spec.queues:
        for cluster in spec.selected(queue.clusters):
            for entry in queue.quota:
                if cluster.name in clusters_of_flavor.get(entry.flavor, ()):
                    yield queue, entry, FlavorKey(cluster.name, entry.flavor)


def _has_share(entry: QuotaEntry) -> bool:
    limits = (entry.resources, entry.borrowing_limit, entry.lending_limit)
    return any(isinstance(amount, Percent) for amounts in limits for amount in amounts.values())
