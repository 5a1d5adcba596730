"""One look at everything that has a capacity, laid beside what is remembered of it."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from reconciler.capacity.ledger import follow_buses, merge
from reconciler.capacity.model import EMPTY, CapacityLook, Ledger, Look, Sighting, Source, in_order
from reconciler.capacity.names import flavor_name
from reconciler.capacity.nodes import Node, count
from reconciler.capacity.recall import recall_pools
from reconciler.capacity.sources import Sources, find_sources, flavor_source, rules_for
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Gap
from reconciler.observations.buses import BusLook, listen
from reconciler.observations.ledger import Kept, LedgerPlace, find_ledger
from reconciler.observations.metrics import find_metrics
from reconciler.observations.nodes import look_at_nodes
from reconciler.observations.usage import list_kueue, read_usage
from reconciler.observed import LIVE_QUEUES, PoolPlace, Usage
from reconciler.ports import BusPort, ClusterPort
from reconciler.quantity import ZERO
from reconciler.spec.choices import CapacitySource
from reconciler.spec.keeper import keeper_of
from reconciler.spec.model import Cluster, Flavor, FleetSpec

Ports = Mapping[ClusterName, ClusterPort]
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Buses:
    """The message buses that are listened to, and why others are not."""

    ports: Mapping[str, BusPort] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ClusterLook:
    """What one cluster showed; `queues` is None where they could not be listed."""

    sightings: tuple[Sighting, ...] = ()
    queues: tuple[Mapping[str, Any], ...] | None = None
    usage: Usage = field(default_factory=dict)
    flavors: tuple[Mapping[str, Any], ...] = ()
    gaps: tuple[Gap, ...] = ()
    conditions: tuple[str, ...] = ()


def observe_capacity(
    spec: FleetSpec, ports: Ports, buses: Buses, observe_for: timedelta, kept: Kept | None = None
) -> CapacityLook | None:
    """None where nothing of the fleet is observed: then nobody is asked anything."""
    sources = find_sources(spec)
    if sources.is_empty:
        return None
    before = kept or find_kept(spec, ports)
    clusters = [cluster for cluster in _involved(spec, sources) if cluster.name in ports]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        look_at = partial(_look_at, spec, ports, sources)
        looks = dict(zip((cluster.name for cluster in clusters), pool.map(look_at, clusters), strict=True))
        remembered = follow_buses(before.ledger, [bus.name for bus in sources.buses])
        known = _with_recalled(spec, sources, looks, remembered)
        expected = {source for group in sources.groups for source in group.named}
        expected |= {entry.source for entry in known.entries if isinstance(entry.source.place, PoolPlace)}
        heard = listen(buses.ports, sources, frozenset(expected), observe_for)
    return _summed_up(spec, sources, looks, heard, _Before(before, known, buses))


@dataclass(frozen=True, slots=True)
class _Before:
    kept: Kept
    known: Ledger
    buses: Buses


def ledger_place(spec: FleetSpec) -> LedgerPlace:
    return LedgerPlace(keeper_of(spec).kueue.namespace, spec.fleet.name)


def find_kept(spec: FleetSpec, ports: Ports) -> Kept:
    port = ports.get(keeper_of(spec).name)
    return (
        Kept(problem="the cluster that keeps it is not reachable", is_unread=True)
        if port is None
        else find_ledger(port, ledger_place(spec))
    )


def _involved(spec: FleetSpec, sources: Sources) -> Iterator[Cluster]:
    """Clusters whose queues depend on something observed."""
    names = {name for by_cluster in sources.flavors.values() for name in by_cluster}
    for flavor in spec.flavors:
        names |= {cluster.name for cluster in spec.selected(flavor.clusters) if flavor.capacity.nats is not None}
    for master in spec.master_queues:
        is_live = any(entry.nats is not None for entry in master.flavors)
        names |= {cluster.name for cluster in spec.targeted(master.targets) if is_live}
    yield from (cluster for cluster in spec.clusters if cluster.name in names)


def _look_at(spec: FleetSpec, ports: Ports, sources: Sources, cluster: Cluster) -> _ClusterLook:
    port, parts = ports[cluster.name], []
    nodes = sources.flavors[CapacitySource.NODES].get(cluster.name, ())
    metrics = sources.flavors[CapacitySource.CLUSTER_METRICS].get(cluster.name, ())
    if nodes:
        parts.append(_look_at_nodes(port, nodes))
    if metrics:
        parts.append(_look_at_metrics(cluster.name, ports, spec.manager, metrics))
    queues: tuple[Mapping[str, Any], ...] | None = None
    flavors: tuple[Mapping[str, Any], ...] = ()
    gaps: tuple[Gap, ...] = ()
    try:
        queues = list_kueue(port, "clusterqueues")
        flavors = list_kueue(port, "resourceflavors") if _has_pools(spec, cluster) else ()
    except ClusterError as error:
        gaps = (Gap(cluster.name, LIVE_QUEUES, error.problem),)
    return _ClusterLook(
        tuple(sighting for part in parts for sighting in part.sightings),
        queues,
        read_usage(cluster.name, queues or ()),
        flavors,
        (*gaps, *(gap for part in parts for gap in part.gaps)),
        tuple(condition for part in parts for condition in part.conditions),
    )


def _has_pools(spec: FleetSpec, cluster: Cluster) -> bool:
    return any(cluster in spec.targeted(master.targets) for master in spec.master_queues)


def _look_at_nodes(port: ClusterPort, flavors: tuple[Flavor, ...]) -> _ClusterLook:
    try:
        nodes = look_at_nodes(port, is_less_other=any(flavor.capacity.subtract_other for flavor in flavors))
    except ClusterError as error:
        return _ClusterLook(gaps=(Gap(port.cluster, "nodes", error.problem),))
    return _counted(port.cluster, CapacitySource.NODES, nodes, flavors)


def _look_at_metrics(
    cluster: ClusterName, ports: Ports, manager: Cluster | None, flavors: tuple[Flavor, ...]
) -> _ClusterLook:
    try:
        nodes = find_metrics(cluster, ports, manager.name if manager else None)
    except ClusterError as error:
        return _ClusterLook(gaps=(Gap(cluster, "ClusterMetrics", error.problem),))
    if nodes is None:
        return _ClusterLook(gaps=(Gap(cluster, "ClusterMetrics", "no cluster of the fleet has one of it"),))
    return _counted(cluster, CapacitySource.CLUSTER_METRICS, nodes, flavors)


def _counted(
    cluster: ClusterName, kind: CapacitySource, nodes: Iterable[Node], flavors: tuple[Flavor, ...]
) -> _ClusterLook:
    counted, now = count(nodes, flavors), datetime.now(UTC)
    sightings = tuple(
        Sighting(flavor_source(kind, cluster, name), now, amounts) for name, amounts in counted.capacities.items()
    )
    conditions: tuple[str, ...] = ()
    if counted.unmatched:
        names = ", ".join(counted.unmatched[:MOST_NAMED]) + (", …" if len(counted.unmatched) > MOST_NAMED else "")
        conditions = (f"{cluster}: {len(counted.unmatched)} nodes belong to no flavor: {names}",)
    return _ClusterLook(sightings, conditions=conditions)


def _with_recalled(
    spec: FleetSpec, sources: Sources, looks: Mapping[ClusterName, _ClusterLook], ledger: Ledger
) -> Ledger:
    """The ledger, and the pools that a live queue has but the ledger does not: they start to age now."""
    now, known = datetime.now(UTC), ledger.by_source()
    found = [
        sighting
        for master in spec.master_queues
        for cluster in spec.targeted(master.targets)
        if (look := looks.get(cluster.name)) is not None
        for sighting in recall_pools(master, look.queues or (), look.flavors, _used_flavors(look.usage), now)
        if sighting.source not in known
    ]
    recalled = merge(EMPTY, Look(now, tuple(found)), rules_for(spec, sources, (one.source for one in found)))
    return Ledger((*ledger.entries, *recalled.entries))


def _used_flavors(usage: Usage) -> frozenset[str]:
    return frozenset(place.flavor for place, used in usage.items() if any(amount > ZERO for amount in used.values()))


def _summed_up(
    spec: FleetSpec,
    sources: Sources,
    looks: Mapping[ClusterName, _ClusterLook],
    heard: BusLook,
    before: _Before,
) -> CapacityLook:
    now = datetime.now(UTC)
    seen = (*(sighting for look in looks.values() for sighting in look.sightings), *heard.sightings)
    every = {*(one.source for one in seen), *(entry.source for entry in before.known.entries)}
    usage = {place: used for look in looks.values() for place, used in look.usage.items()}
    order = [entry.source for entry in before.known.entries]
    unused = frozenset(source for source in every if _is_unused(spec, source, looks, usage))
    look = Look(now, in_order(seen, order), heard.listened, unused)
    return CapacityLook(
        now,
        before.kept.ledger,
        merge(before.known, look, rules_for(spec, sources, every)),
        usage,
        (*(gap for one in looks.values() for gap in one.gaps), *_gaps(spec, heard, before)),
        (*(condition for one in looks.values() for condition in one.conditions), *heard.problems),
        before.kept.problem if before.kept.is_unread else "",
        heard.bad,
    )


def _is_unused(spec: FleetSpec, source: Source, looks: Mapping[ClusterName, _ClusterLook], usage: Usage) -> bool:
    """Whether every cluster that could use a pool was seen, and none of their queues does."""
    place = source.place
    if not isinstance(place, PoolPlace):
        return False
    clusters = {cluster.name for master in spec.master_queues for cluster in spec.targeted(master.targets)}
    names = {
        flavor_name(master.name, entry.name, place.name)
        for master in spec.master_queues
        for entry in master.flavors
        if entry.nats is not None
    }
    is_seen = all((look := looks.get(name)) is not None and look.queues is not None for name in clusters)
    return is_seen and not any(
        use.flavor in names and any(amount > ZERO for amount in used.values()) for use, used in usage.items()
    )


def _gaps(spec: FleetSpec, heard: BusLook, before: _Before) -> Iterator[Gap]:
    keeper = keeper_of(spec).name
    if before.kept.problem:
        yield Gap(keeper, "the ledger", before.kept.problem)
    for bus, why in {**heard.silent, **before.buses.problems}.items():
        yield Gap(keeper, f"message bus {bus}", f"not heard: {why}; its pools stay as they were")
