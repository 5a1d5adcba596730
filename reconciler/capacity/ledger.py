"""The sources of capacity in a spec, and what counts of what was seen of them.

Growth counts at once, shrinking after a while, and nothing counts of a pool that fell silent.

Decisions: what is not observed keeps its last value, however long that lasts: a cluster that does not answer says
nothing about its nodes, and a smaller quota lets other queues of a cohort preempt what runs. Only a pool falls silent,
because it is meant to speak: it counts as nothing once its message bus was heard for the whole of its timeout, without
a break and by this very process, and the pool was not. The time since the last run does not count as silence, because
no process listened in between. A pool is given at least two of its own periods, whatever its timeout says, because a
timeout of one period would drop a healthy pool whenever a message comes a moment late. What has been smaller for long
enough becomes the most that was seen of it meanwhile, and not what was seen last: otherwise a dip of a moment would
count where something was a little smaller before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.capacity.model import CapacityObservation, Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.objects import ClusterName
from reconciler.quantity import ZERO, Quantity
from reconciler.snapshot.model import Amounts, FlavorKey, Freshness, PoolKey
from reconciler.spec.enums import CapacityPolicy, CapacitySource
from reconciler.spec.model import Flavor, FleetSpec
from reconciler.spec.nats import Bus, NatsFlavor, bus_name, find_bus

USUAL_PERIOD = timedelta(seconds=30)
LONGEST_PERIOD = timedelta(minutes=5)
SLACK = timedelta(seconds=5)
LISTENING_SLACK = timedelta(seconds=3)
# How far the recorded time of a sample may lag behind, so that a pool that repeats its amounts causes no write.
STEP = timedelta(minutes=5)
# A moment later than the time itself, so that it is surely over.
_AFTER = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Rules:
    """`timeouts` holds every source that the spec asks for; what is not in it is forgotten."""

    policy: CapacityPolicy
    timeouts: Mapping[SourceKey, timedelta]


@dataclass(frozen=True, slots=True)
class _Held:
    """A resource that counts as more than was seen, since when it is less, and the most that was seen since then."""

    granted: Quantity
    since: datetime
    most: Quantity


def merge(ledger: Ledger, look: CapacityObservation, rules: Rules) -> Ledger:
    """The ledger after a look: sources keep their order, new ones come after them."""
    known = ledger.by_source()
    clamped = (_clamped(sample, look.now) for sample in look.samples)
    seen = {one.source: one for one in clamped if _is_sign_of_life(known.get(one.source), one, look, rules)}
    met = {source: _met(known.get(source), sample, look, rules) for source, sample in seen.items()}
    aged = (_aged(entry, look, rules) for entry in {**known, **met}.values())
    return Ledger(tuple(entry for entry in aged if entry is not None and entry.source in rules.timeouts))


def one_period(period: timedelta | None = None) -> timedelta:
    """How long to listen for a pool that is silent already, or was never heard."""
    return min(period or USUAL_PERIOD, LONGEST_PERIOD) + LISTENING_SLACK


def effective_timeout(last: Sample, asked: timedelta) -> timedelta:
    return max(asked, 2 * min(last.period or USUAL_PERIOD, LONGEST_PERIOD) + SLACK)


def listening_time(entry: Entry, asked: timedelta) -> timedelta:
    """How long a message bus has to be heard before the silence of a pool counts."""
    if entry.freshness is Freshness.STALE:
        return one_period(entry.last.period)
    return effective_timeout(entry.last, asked)


def shifted(ledger: Ledger, jump: timedelta) -> Ledger:
    """The same ledger by a clock that was set: nothing in it becomes older or younger by that."""
    return Ledger(
        tuple(
            replace(
                entry,
                last=replace(entry.last, seen_at=entry.last.seen_at + jump),
                changed_at=entry.changed_at + jump,
                shrink_pending_since={name: since + jump for name, since in entry.shrink_pending_since.items()},
            )
            for entry in ledger.entries
        )
    )


def follow_buses(ledger: Ledger, buses: Collection[str]) -> Ledger:
    """The same ledger where a bus got or lost a server, by which it is named: its pools are the same ones."""
    found: dict[SourceKey, Entry] = {}
    for entry in ledger.entries:
        place = entry.source.place
        moved = entry
        if isinstance(place, PoolKey) and place.bus not in buses:
            servers = set(place.bus.split(","))
            same = [bus for bus in buses if servers & set(bus.split(","))]
            source = replace(entry.source, place=replace(place, bus=same[0])) if len(same) == 1 else entry.source
            moved = replace(entry, last=replace(entry.last, source=source))
        found.setdefault(moved.source, moved)
    return Ledger(tuple(found.values()))


def is_worth_writing(old: Ledger, new: Ledger) -> bool:
    """Whether anything changed but the time at which the same was seen again."""
    before, after = old.by_source(), new.by_source()
    if [*before] != [*after]:
        return True
    return any(_has_moved(before[source], entry) for source, entry in after.items())


def _has_moved(before: Entry, entry: Entry) -> bool:
    same_time = replace(entry, last=replace(entry.last, seen_at=before.last.seen_at, period=before.last.period))
    return same_time != before or entry.last.seen_at - before.last.seen_at >= STEP


def _clamped(sample: Sample, now: datetime) -> Sample:
    """A clock that was set back must not make anything younger than now."""
    return replace(sample, seen_at=min(sample.seen_at, now))


def _is_sign_of_life(known: Entry | None, sample: Sample, look: CapacityObservation, rules: Rules) -> bool:
    """What a silent or forgotten pool said long ago is still in our ears, and says nothing of now."""
    timeout = rules.timeouts.get(sample.source)
    if timeout is None or (known is not None and known.freshness is Freshness.FRESH):
        return True
    period = sample.period or (known.last.period if known is not None else None)
    return look.now - sample.seen_at <= effective_timeout(replace(sample, period=period), timeout)


def _met(known: Entry | None, sample: Sample, look: CapacityObservation, rules: Rules) -> Entry:
    """What becomes of a source that was seen, before its age is looked at."""
    if known is None:
        return Entry(sample, sample.seen_at, sample.amounts)
    is_same = known.last.amounts == sample.amounts and known.freshness is Freshness.FRESH
    found = {name: _held(known, sample, name, look.now, rules.policy.shrink_delay) for name in known.granted}
    held = {name: one for name, one in found.items() if one is not None}
    return Entry(
        replace(sample, period=sample.period or known.last.period),
        min(known.changed_at, look.now) if is_same else sample.seen_at,
        granted={**sample.amounts, **{name: one.granted for name, one in held.items()}},
        shrink_pending_since={name: one.since for name, one in held.items()},
        shrink_peak={name: one.most for name, one in held.items()},
    )


def _held(known: Entry, sample: Sample, name: str, now: datetime, delay: timedelta) -> _Held | None:
    """What still counts of something that became less; None where what was seen counts."""
    granted, amount = known.granted[name], sample.amounts.get(name, ZERO)
    if amount >= granted:
        return None
    since = min(known.shrink_pending_since.get(name, sample.seen_at), now)
    most = max(known.shrink_peak.get(name, amount), amount)
    if now - since < delay:
        return _Held(granted, since, most)
    # How long the amount has been below the largest one since is unknown, so that delay starts now.
    return _Held(most, now, amount) if most > amount and delay else None


def _aged(entry: Entry, look: CapacityObservation, rules: Rules) -> Entry | None:
    """The entry by its age; None for a source that is gone for good."""
    clamped = replace(entry, last=_clamped(entry.last, look.now), changed_at=min(entry.changed_at, look.now))
    if not _is_silent(clamped, look, rules):
        return clamped
    if look.now - clamped.last.seen_at > rules.policy.drop_after and clamped.source in look.unused:
        return None
    return replace(
        clamped, freshness=Freshness.STALE, granted=_zero(clamped.last.amounts), shrink_pending_since={}, shrink_peak={}
    )


def _is_silent(entry: Entry, look: CapacityObservation, rules: Rules) -> bool:
    """Whether a pool could have been heard for long enough, and was not. Nothing else falls silent."""
    place, timeout = entry.source.place, rules.timeouts.get(entry.source)
    if timeout is None or not isinstance(place, PoolKey):
        return False
    is_old = look.now - entry.last.seen_at > effective_timeout(entry.last, timeout)
    return is_old and look.listened.get(place.bus, timedelta()) >= listening_time(entry, timeout)


def _zero(amounts: Amounts) -> Amounts:
    return dict.fromkeys(amounts, ZERO)


def next_due(look: ObservedCapacity, rules: Rules, now: datetime) -> timedelta | None:
    """How long until some pool falls silent, or a source has been smaller for long enough."""
    return min((max(when, now) - now + _AFTER for when in _moments(look, rules)), default=None)


def _moments(look: ObservedCapacity, rules: Rules) -> Iterator[datetime]:
    for entry in look.ledger.entries:
        yield from (since + rules.policy.shrink_delay for since in entry.shrink_pending_since.values())
        place, timeout = entry.source.place, rules.timeouts.get(entry.source)
        if timeout is None or not isinstance(place, PoolKey) or entry.freshness is Freshness.STALE:
            continue
        # Of a bus that is not heard there is nothing to wait for: that it is heard again is news.
        if place.bus in look.listened:
            listened_for = effective_timeout(entry.last, timeout)
            yield max(entry.last.seen_at + listened_for, look.now + listened_for - look.listened[place.bus])


@dataclass(frozen=True, slots=True)
class PoolGroup:
    """Pools that one entry of a MasterQueue, or one Flavor, asks for."""

    bus: Bus
    pools: NatsFlavor
    timeout: timedelta

    def has(self, place: PoolKey) -> bool:
        return is_at(self.pools, place) and self.pools.has(place.name)

    @property
    def named(self) -> tuple[SourceKey, ...]:
        return tuple(pool_source(self.pools, name) for name in self.pools.pools)


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything of a fleet that is observed. Nothing is asked for where this is empty."""

    flavors: Mapping[CapacitySource, Mapping[ClusterName, tuple[Flavor, ...]]]
    groups: tuple[PoolGroup, ...]
    policy: CapacityPolicy

    @property
    def is_empty(self) -> bool:
        return not self.groups and not any(self.flavors.values())

    @property
    def buses(self) -> tuple[Bus, ...]:
        return tuple({group.bus.name: group.bus for group in self.groups}.values())

    def asked_of(self, bus: Bus) -> tuple[NatsFlavor, ...]:
        return tuple(group.pools for group in self.groups if group.bus.name == bus.name)

    def subjects_of(self, bus: Bus) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pools.subject for pools in self.asked_of(bus)))

    def find_pool(self, bus: str, subject: str) -> PoolKey | None:
        """The pool that publishes on a subject; None if the spec asks for no such pool."""
        above, _, name = subject.rpartition(".")
        place = PoolKey(bus, above, name)
        return place if any(group.has(place) for group in self.groups) else None

    def timeout_of(self, source: SourceKey, usual: timedelta) -> timedelta | None:
        """The longest timeout that the spec gives to a source; None if the spec does not use it."""
        if isinstance(source.place, PoolKey):
            found = [group.timeout for group in self.groups if group.has(source.place)]
            return max(found, default=None)
        flavors = self.flavors.get(source.kind, {}).get(source.place.cluster, ())
        return usual if any(flavor.name == source.place.flavor for flavor in flavors) else None


def find_sources(spec: FleetSpec) -> Sources:
    return Sources(
        {kind: _flavors_by_cluster(spec, kind) for kind in (CapacitySource.NODES, CapacitySource.CLUSTER_METRICS)},
        tuple(_groups(spec)),
        spec.fleet.policy.capacity,
    )


def rules_for(spec: FleetSpec, sources: Sources, known: Iterable[SourceKey]) -> Rules:
    policy = spec.fleet.policy.capacity
    timeouts = {source: sources.timeout_of(source, policy.stale_after) for source in known}
    return Rules(policy, {source: timeout for source, timeout in timeouts.items() if timeout is not None})


def is_at(pools: NatsFlavor, place: PoolKey) -> bool:
    """Whether a pool speaks where these pools are asked for."""
    return (place.bus, place.subject) == (bus_name(pools.connector), pools.subject)


def pool_source(pools: NatsFlavor, name: str) -> SourceKey:
    return SourceKey(CapacitySource.NATS, PoolKey(bus_name(pools.connector), pools.subject, name))


def flavor_source(kind: CapacitySource, cluster: ClusterName, flavor: str) -> SourceKey:
    return SourceKey(kind, FlavorKey(cluster, flavor))


def _flavors_by_cluster(spec: FleetSpec, kind: CapacitySource) -> Mapping[ClusterName, tuple[Flavor, ...]]:
    found: dict[ClusterName, list[Flavor]] = {}
    for flavor in spec.flavors:
        for cluster in spec.selected(flavor.clusters) if flavor.capacity.source is kind else ():
            found.setdefault(cluster.name, []).append(flavor)
    return {cluster: tuple(flavors) for cluster, flavors in found.items()}


def _groups(spec: FleetSpec) -> Iterator[PoolGroup]:
    logins, usual = spec.fleet.nats, spec.fleet.policy.capacity.stale_after
    for master in spec.master_queues:
        for entry in master.flavors:
            if entry.nats is not None:
                yield PoolGroup(find_bus(entry.nats.connector, logins), entry.nats, entry.nats.pool_timeout)
    for flavor in spec.flavors:
        pools = flavor.capacity.nats
        if pools is not None:
            yield PoolGroup(find_bus(pools.connector, logins), pools, pools.pool_timeout or usual)
