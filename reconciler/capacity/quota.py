"""From the ledger to quota: what counts of each source, and who gets how much of each flavor on each cluster."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from reconciler.capacity.ledger import Rules, effective_timeout, is_at, one_period
from reconciler.capacity.message import flavor_name
from reconciler.capacity.model import CapacityObservation, Entry, Ledger, SourceKey
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.quantity import ZERO, Amount, Percent, Quantity, scale, short_text, split, unit_of
from reconciler.snapshot.model import Amounts, Capacities, FlavorKey, Freshness, Pool, PoolKey, Usage
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import Cluster, Flavor, FleetSpec, Queue, QuotaEntry

CLUSTER_QUEUE, COHORT = "ClusterQueue", "Cohort"
Objects = Iterable[tuple[Ref, Manifest]]
_QUOTA_FIELDS = ("nominalQuota", "borrowingLimit", "lendingLimit")


def count_capacities(spec: FleetSpec, ledger: Ledger) -> Capacities:
    """The capacity of every flavor that is observed: its nodes, its ClusterMetrics, or the sum of its pools."""
    found: dict[FlavorKey, Amounts] = {
        entry.source.place: entry.granted for entry in ledger.entries if isinstance(entry.source.place, FlavorKey)
    }
    pools = count_pools(ledger)
    for flavor in spec.flavors:
        asked = flavor.capacity.nats
        own = [pool for pool in pools if asked is not None and is_at(asked, pool.place) and asked.has(pool.place.name)]
        for cluster in spec.selected(flavor.clusters) if own else ():
            found[FlavorKey(cluster.name, flavor.name)] = _sum(own)
    return found


def count_pools(ledger: Ledger) -> tuple[Pool, ...]:
    return tuple(
        Pool(place, entry.granted, entry.last.labels, entry.last.taints, entry.freshness)
        for entry in ledger.entries
        if isinstance(place := entry.source.place, PoolKey)
    )


def _sum(pools: list[Pool]) -> Amounts:
    names = dict.fromkeys(name for pool in pools for name in pool.amounts)
    return {name: sum((pool.amounts.get(name, ZERO) for pool in pools), ZERO) for name in names}


@dataclass(frozen=True, slots=True, order=True)
class _Share:
    """Something that queues of one cohort have together; a queue without a cohort has it alone."""

    cluster: ClusterName
    owner: str
    flavor: str
    name: str


def find_silent(ledger: Ledger) -> Iterator[str]:
    for entry in ledger.entries:
        if entry.freshness is Freshness.STALE:
            yield f"{entry.source}: not seen since {_since(entry)}: its quota is 0 until it is seen again"


def find_unobserved(ledger: Ledger, look: CapacityObservation, rules: Rules) -> Iterator[str]:
    """What was not observed this time and counts as before: a missing observation makes nothing smaller."""
    seen = {sample.source for sample in look.samples}
    for entry in ledger.entries:
        if entry.source in seen or entry.freshness is Freshness.STALE:
            continue
        place = entry.source.place
        if not isinstance(place, PoolKey):
            yield f"{entry.source}: not observed since {_since(entry)}: its capacity stays as it was last seen"
        elif place.bus in look.listened:
            yield from _why_not_silent(entry, look.now, look.listened[place.bus], rules)


def _why_not_silent(entry: Entry, now: datetime, listened: timedelta, rules: Rules) -> Iterator[str]:
    """Why a pool past its timeout is not silent yet: this process has not listened for that long."""
    timeout = effective_timeout(entry.last, rules.timeouts[entry.source])
    if now - entry.last.seen_at > timeout and listened >= one_period(entry.last.period):
        unheard = f"not seen since {_since(entry)}, nor in {listened.total_seconds():.0f} s of listening"
        needed = f"it was listened for over {timeout.total_seconds():.0f} s (--observe-for, or kfleet run)"
        yield f"{entry.source}: {unheard}: its capacity stays until {needed}"


def _since(entry: Entry) -> str:
    return entry.last.seen_at.isoformat(timespec="seconds")


def find_overcommit(objects: Iterable[tuple[Ref, Manifest]], usage: Usage) -> Iterator[str]:
    """Where workloads hold more than the new quotas of a whole cohort, and who may preempt them for that."""
    known = [(ref, manifest) for ref, manifest in objects if ref.kind in {CLUSTER_QUEUE, COHORT}]
    roots = _roots(known)
    owner_of = {(ref.cluster, ref.name): roots[ref] for ref, _ in known if ref.kind == CLUSTER_QUEUE}
    used: dict[_Share, Quantity] = {}
    for place, amounts in usage.items():
        owner = owner_of.get((place.cluster, place.queue))
        for name, amount in amounts.items() if owner is not None else ():
            if amount > ZERO:
                share = _Share(place.cluster, owner or "", place.flavor, name)
                used[share] = used.get(share, ZERO) + amount
    owners = {(share.cluster, share.owner) for share in used}
    quotas: dict[_Share, Quantity] = {}
    for ref, manifest in known:
        for share, nominal in _quotas(ref, manifest, roots[ref]) if (ref.cluster, roots[ref]) in owners else ():
            quotas[share] = quotas.get(share, ZERO) + nominal
    for share, amount in sorted(used.items()):
        quota = quotas.get(share, ZERO)
        if amount > quota:
            in_use = f"flavor {share.flavor}: {amount} {share.name} are in use, the quota is {quota}"
            effect = _effect([ref.name for ref, one in known if _may_preempt(ref, one, share, roots[ref])])
            yield f"{share.cluster}: {share.owner}: {in_use}: {effect}"


def _may_preempt(ref: Ref, queue: Manifest, share: _Share, owner: str) -> bool:
    """Kueue's default for both is Never. What a queue uses above its nominal quota counts as borrowed."""
    policies = (at(queue, "spec", "preemption", name) for name in ("reclaimWithinCohort", "withinClusterQueue"))
    is_there = ref.kind == CLUSTER_QUEUE and (ref.cluster, owner) == (share.cluster, share.owner)
    return is_there and any(policy not in {None, "Never"} for policy in policies)


def _effect(preempting: list[str]) -> str:
    waits = "nothing is admitted until it fits again"
    if not preempting:
        return f"{waits}, and nothing is evicted: no queue of the fleet there may preempt"
    return f"{waits}, unless by preemption: {', '.join(sorted(preempting))} may preempt what runs there"


def _roots(known: list[tuple[Ref, Manifest]]) -> Mapping[Ref, str]:
    """The top of the tree that a queue or a cohort hangs in, in words."""
    parents = {
        (ref.cluster, ref.name): as_text(at(manifest, "spec", "parentName"))
        for ref, manifest in known
        if ref.kind == COHORT
    }
    found = {}
    for ref, manifest in known:
        name = as_text(at(manifest, "spec", "cohortName")) if ref.kind == CLUSTER_QUEUE else ref.name
        seen: set[str] = set()
        while name and name not in seen and parents.get((ref.cluster, name)):
            seen.add(name)
            name = parents[ref.cluster, name]
        found[ref] = f"cohort {name}" if name else f"queue {ref.name}"
    return found


def _quotas(ref: Ref, manifest: Manifest, owner: str) -> Iterator[tuple[_Share, Quantity]]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for one in as_list(at(flavor, "resources")):
                share = _Share(ref.cluster, owner, as_text(at(flavor, "name")), as_text(at(one, "name")))
                yield share, quantity_at(at(one, "nominalQuota")) or ZERO


def quotas_of(spec: FleetSpec, source: SourceKey, objects: Objects) -> tuple[str, ...]:
    """`hub/ClusterQueue/pools: pools-nats-cnaf: cpu 8, memory 64Gi` for every queue with quota of the source."""
    places = frozenset(flavors_of_source(spec, source))
    return tuple(
        f"{ref}: {name}: {_quota_text(flavor)}"
        for ref, manifest in objects
        if ref.kind == "ClusterQueue"
        for group in as_list(at(manifest, "spec", "resourceGroups"))
        for flavor in as_list(at(group, "flavors"))
        if FlavorKey(ref.cluster, name := as_text(at(flavor, "name"))) in places
    )


def flavors_of_source(spec: FleetSpec, source: SourceKey) -> Iterator[FlavorKey]:
    place = source.place
    if isinstance(place, PoolKey):
        yield from _flavors_of_pool(spec, place)
    else:
        yield place


def _flavors_of_pool(spec: FleetSpec, place: PoolKey) -> Iterator[FlavorKey]:
    for master in spec.master_queues:
        for entry in master.flavors:
            if entry.nats is not None and is_at(entry.nats, place) and entry.nats.has(place.name):
                for cluster in spec.targeted(master.targets):
                    yield FlavorKey(cluster.name, flavor_name(master.name, entry.name, place.name))
    for flavor in spec.flavors:
        pools = flavor.capacity.nats
        if pools is not None and is_at(pools, place) and pools.has(place.name):
            for cluster in spec.selected(flavor.clusters):
                yield FlavorKey(cluster.name, flavor.name)


def _quota_text(flavor: Manifest) -> str:
    quotas = (
        (as_text(at(one, "name")), quantity_at(at(one, "nominalQuota"))) for one in as_list(at(flavor, "resources"))
    )
    return ", ".join(f"{name} {short_text(name, quota or ZERO)}" for name, quota in quotas)


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
