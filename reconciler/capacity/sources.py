"""What of a spec is observed: which flavors by nodes, which by ClusterMetrics, and which pools of which bus."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconciler.capacity.ledger import Rules
from reconciler.capacity.model import SourceKey
from reconciler.objects import ClusterName
from reconciler.snapshot.model import FlavorKey, PoolKey
from reconciler.spec.enums import CapacityPolicy, CapacitySource
from reconciler.spec.model import Flavor, FleetSpec
from reconciler.spec.nats import Bus, NatsFlavor, bus_name, find_bus


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
