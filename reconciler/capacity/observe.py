"""Observes capacity: nodes, ClusterMetrics and pools on NATS become samples of the ledger. Also what workloads hold.

A new source of capacity is read in `_look_at`, for the flavors that `find_sources` lists for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from reconciler.capacity.ledger import (
    Sources,
    find_sources,
    flavor_source,
    follow_buses,
    listening_time,
    merge,
    one_period,
    rules_for,
)
from reconciler.capacity.masterqueue import recall_pools
from reconciler.capacity.message import ObservedBus, flavor_name, listen
from reconciler.capacity.model import (
    EMPTY,
    CapacityObservation,
    Condition,
    Ledger,
    ObservedCapacity,
    Sample,
    SourceKey,
    in_order,
)
from reconciler.capacity.nodes import Node, count, find_metrics, look_at_nodes
from reconciler.capacity.quota import find_unobserved
from reconciler.capacity.store import Kept, LedgerKey, find_ledger
from reconciler.clients.protocols import BusClient, ClusterClient, list_kueue
from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Gap
from reconciler.quantity import ZERO, Quantity
from reconciler.snapshot.model import LIVE_QUEUES, PoolKey, Usage, UsageKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import Cluster, Flavor, FleetSpec
from reconciler.spec.places import downsynced_queues, home_cluster

Ports = Mapping[ClusterName, ClusterClient]
# Those that are counted, and all flavors of the cluster.
_Flavors = tuple[tuple[Flavor, ...], tuple[Flavor, ...]]
MOST_NAMED = 5


def read_usage(cluster: ClusterName, queues: Iterable[Mapping[str, Any]]) -> Usage:
    return {
        UsageKey(cluster, as_text(at(queue, "metadata", "name")), as_text(at(flavor, "name"))): {
            as_text(at(one, "name")): _amount(at(one, "total")) for one in as_list(at(flavor, "resources"))
        }
        for queue in queues
        for flavor in as_list(at(queue, "status", "flavorsReservation"))
    }


def _amount(total: Any) -> Quantity:
    """Most of what a fleet has is not in use, and a zero needs no reading."""
    return ZERO if total == "0" else quantity_at(total) or ZERO


@dataclass(frozen=True, slots=True)
class Buses:
    """The message buses that are listened to, and why others are not."""

    clients: Mapping[str, BusClient] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ObservedCluster:
    """What one cluster showed; `queues` is None where they could not be listed."""

    samples: tuple[Sample, ...] = ()
    queues: tuple[Mapping[str, Any], ...] | None = None
    usage: Usage = field(default_factory=dict)
    flavors: tuple[Mapping[str, Any], ...] = ()
    gaps: tuple[Gap, ...] = ()
    conditions: tuple[Condition, ...] = ()
    left_out: tuple[str, ...] = ()


def observe_capacity(
    spec: FleetSpec, clients: Ports, buses: Buses, observe_for: timedelta, kept: Kept | None = None
) -> ObservedCapacity | None:
    """None if no capacity of the fleet is observed; then no server is asked."""
    sources = find_sources(spec)
    if sources.is_empty:
        return None
    before = kept or find_kept(spec, clients)
    clusters = [cluster for cluster in _involved(spec, sources) if cluster.name in clients]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        look_at = partial(_look_at, spec, clients, sources)
        looks = dict(zip((cluster.name for cluster in clusters), pool.map(look_at, clusters), strict=True))
        remembered = follow_buses(before.ledger, [bus.name for bus in sources.buses])
        known = _with_recalled(spec, sources, looks, remembered)
        heard = listen(buses.clients, sources, _awaited(spec, sources, known, observe_for), observe_for)
    return _summed_up(spec, sources, looks, heard, _Before(before, known, buses))


@dataclass(frozen=True, slots=True)
class _Before:
    kept: Kept
    known: Ledger
    buses: Buses


def ledger_place(spec: FleetSpec) -> LedgerKey:
    return LedgerKey(home_cluster(spec).kueue.namespace, spec.fleet.name)


def find_kept(spec: FleetSpec, clients: Ports) -> Kept:
    client = clients.get(home_cluster(spec).name)
    return (
        Kept(problem="the cluster that keeps it is not reachable", is_unread=True)
        if client is None
        else find_ledger(client, ledger_place(spec))
    )


def _involved(spec: FleetSpec, sources: Sources) -> Iterator[Cluster]:
    """Clusters whose queues depend on something observed."""
    names = {name for by_cluster in sources.flavors.values() for name in by_cluster}
    for flavor in spec.flavors:
        names |= {cluster.name for cluster in spec.selected(flavor.clusters) if flavor.capacity.nats is not None}
    for master in spec.master_queues:
        is_live = any(entry.nats is not None for entry in master.flavors)
        names |= {cluster.name for cluster in spec.targeted(master.targets) if is_live}
    if names and spec.manager and downsynced_queues(spec):
        # There the quota is the sum of the workers, and there alone their jobs hold it.
        names.add(spec.manager.name)
    yield from (cluster for cluster in spec.clusters if cluster.name in names)


def _look_at(spec: FleetSpec, clients: Ports, sources: Sources, cluster: Cluster) -> _ObservedCluster:
    client, parts = clients[cluster.name], []
    others = tuple(flavor for flavor in spec.flavors if cluster in spec.selected(flavor.clusters))
    nodes = sources.flavors[CapacitySource.NODES].get(cluster.name, ())
    metrics = sources.flavors[CapacitySource.CLUSTER_METRICS].get(cluster.name, ())
    if nodes:
        parts.append(_look_at_nodes(client, nodes, others))
    if metrics:
        parts.append(_look_at_metrics(cluster.name, clients, spec.manager, (metrics, others)))
    queues: tuple[Mapping[str, Any], ...] | None = None
    flavors: tuple[Mapping[str, Any], ...] = ()
    gaps: tuple[Gap, ...] = ()
    try:
        queues = list_kueue(client, "ClusterQueue")
        flavors = list_kueue(client, "ResourceFlavor") if _has_pools(spec, cluster) else ()
    except ClusterError as error:
        gaps = (Gap(cluster.name, LIVE_QUEUES, error.problem),)
    return _ObservedCluster(
        samples=tuple(sample for part in parts for sample in part.samples),
        queues=queues,
        usage=read_usage(cluster.name, queues or ()),
        flavors=flavors,
        gaps=(*gaps, *(gap for part in parts for gap in part.gaps)),
        conditions=tuple(condition for part in parts for condition in part.conditions),
        left_out=tuple(text for part in parts for text in part.left_out),
    )


def _has_pools(spec: FleetSpec, cluster: Cluster) -> bool:
    return any(cluster in spec.targeted(master.targets) for master in spec.master_queues)


def _look_at_nodes(client: ClusterClient, flavors: tuple[Flavor, ...], others: tuple[Flavor, ...]) -> _ObservedCluster:
    try:
        nodes = look_at_nodes(client, is_less_other=any(flavor.capacity.subtract_other for flavor in flavors))
    except ClusterError as error:
        return _ObservedCluster(gaps=(Gap(client.cluster, "nodes", error.problem),))
    return _counted(client.cluster, CapacitySource.NODES, nodes, (flavors, others))


def _look_at_metrics(
    cluster: ClusterName, clients: Ports, manager: Cluster | None, flavors: _Flavors
) -> _ObservedCluster:
    try:
        nodes = find_metrics(cluster, clients, manager.name if manager else None)
    except ClusterError as error:
        return _ObservedCluster(gaps=(Gap(cluster, "ClusterMetrics", error.problem),))
    if nodes is None:
        return _ObservedCluster(gaps=(Gap(cluster, "ClusterMetrics", "no cluster of the fleet has one of it"),))
    return _counted(cluster, CapacitySource.CLUSTER_METRICS, nodes, flavors)


def _counted(cluster: ClusterName, kind: CapacitySource, nodes: Iterable[Node], flavors: _Flavors) -> _ObservedCluster:
    counted, now = count(nodes, *flavors), datetime.now(UTC)
    samples = tuple(
        Sample(flavor_source(kind, cluster, name), now, amounts) for name, amounts in counted.capacities.items()
    )
    conditions = tuple(
        Condition(f"{cluster}: {number} nodes of flavor {owner} also have all labels of {other}: they count once")
        for (owner, other), number in counted.shared.items()
    )
    for flavor in counted.empty:
        labels = ", ".join(f"{key}={value}" for key, value in flavor.node_labels.items())
        conditions += (Condition(f"{cluster}: no node has the labels of flavor {flavor.name} ({labels})"),)
    if counted.unmatched:
        number, names = len(counted.unmatched), _some(counted.unmatched)
        conditions += (Condition(f"{cluster}: {number} nodes belong to no flavor: {names}"),)
    left_out = tuple(
        f"{cluster}: {len(why)} of {len(why) + counted.nodes[flavor]} nodes of flavor {flavor}: "
        + _some([f"{name} ({reason})" for name, reason in sorted(why.items())])
        for flavor, why in counted.left_out.items()
        if why
    )
    return _ObservedCluster(samples, conditions=conditions, left_out=left_out)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _with_recalled(
    spec: FleetSpec, sources: Sources, looks: Mapping[ClusterName, _ObservedCluster], ledger: Ledger
) -> Ledger:
    """The ledger, and the pools that a live queue has but the ledger does not: they start to age now."""
    now, known = datetime.now(UTC), ledger.by_source()
    found = [
        sample
        for master in spec.master_queues
        for cluster in spec.targeted(master.targets)
        if (look := looks.get(cluster.name)) is not None
        for sample in recall_pools(master, look.queues or (), look.flavors, _used_flavors(look.usage), now)
        if sample.source not in known
    ]
    recalled = merge(
        EMPTY, CapacityObservation(now, tuple(found)), rules_for(spec, sources, (one.source for one in found))
    )
    return Ledger((*ledger.entries, *recalled.entries))


def _awaited(spec: FleetSpec, sources: Sources, known: Ledger, observe_for: timedelta) -> Mapping[SourceKey, timedelta]:
    """For how long each pool is listened for: until its silence would count, where that is not too long to wait for."""
    found = {source: one_period() for group in sources.groups for source in group.named}
    rules = rules_for(spec, sources, (entry.source for entry in known.entries))
    for entry in known.entries:
        timeout = rules.timeouts.get(entry.source)
        if timeout is not None and isinstance(entry.source.place, PoolKey):
            listened_for = listening_time(entry, timeout)
            found[entry.source] = listened_for if listened_for <= observe_for else one_period(entry.last.period)
    return found


def _used_flavors(usage: Usage) -> frozenset[str]:
    return frozenset(place.flavor for place, used in usage.items() if any(amount > ZERO for amount in used.values()))


def _summed_up(
    spec: FleetSpec,
    sources: Sources,
    looks: Mapping[ClusterName, _ObservedCluster],
    heard: ObservedBus,
    before: _Before,
) -> ObservedCapacity:
    now = datetime.now(UTC)
    seen = (*(sample for look in looks.values() for sample in look.samples), *heard.samples)
    every = {*(one.source for one in seen), *(entry.source for entry in before.known.entries)}
    usage = {place: used for look in looks.values() for place, used in look.usage.items()}
    order = [entry.source for entry in before.known.entries]
    unused = frozenset(source for source in every if _is_unused(spec, source, looks, usage))
    look = CapacityObservation(now, in_order(seen, order), heard.listened, unused)
    rules = rules_for(spec, sources, every)
    ledger = merge(before.known, look, rules)
    told = (condition for one in looks.values() for condition in one.conditions)
    return ObservedCapacity(
        now=now,
        kept=before.kept.ledger,
        ledger=ledger,
        usage=usage,
        gaps=(*(gap for one in looks.values() for gap in one.gaps), *_gaps(spec, heard, before)),
        conditions=(*told, *heard.problems, *map(Condition, find_unobserved(ledger, look, rules))),
        unread=before.kept.problem if before.kept.is_unread else "",
        bad_messages=heard.bad,
        listened=heard.listened,
        left_out=tuple(text for look in looks.values() for text in look.left_out),
    )


def _is_unused(spec: FleetSpec, source: SourceKey, looks: Mapping[ClusterName, _ObservedCluster], usage: Usage) -> bool:
    """Whether every cluster that could use a pool was seen, and none of their queues does."""
    place = source.place
    if not isinstance(place, PoolKey):
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


def _gaps(spec: FleetSpec, heard: ObservedBus, before: _Before) -> Iterator[Gap]:
    home = home_cluster(spec).name
    if before.kept.problem:
        yield Gap(home, "the ledger", before.kept.problem)
    for bus, why in {**heard.silent, **before.buses.problems}.items():
        yield Gap(home, f"message bus {bus}", f"not heard: {why}; its pools stay as they were")
