"""The sources of capacity as entries of the view."""

from collections.abc import Iterator
from datetime import datetime

from reconciler.capacity.ledger import find_sources, flavor_source
from reconciler.capacity.model import Entry, ObservedCapacity, SourceKey
from reconciler.capacity.quota import Objects, flavors_of_source, quotas_of
from reconciler.snapshot.model import FlavorKey
from reconciler.spec.model import FleetSpec
from reconciler.view.model import PoolEntry, PoolState


def pool_entries(spec: FleetSpec, seen: ObservedCapacity | None, objects: Objects) -> tuple[PoolEntry, ...]:
    """Everything in the ledger, then what the fleet names and the ledger does not have. `objects` have the quotas."""
    known = tuple(objects)
    entries = seen.ledger.by_source() if seen else {}
    found = [_entry(spec, source, entry, known, seen.now) for source, entry in entries.items() if seen]
    unknown = [_unknown(spec, source) for source in dict.fromkeys(_declared(spec)) if source not in entries]
    return (*found, *unknown)


def _entry(spec: FleetSpec, source: SourceKey, entry: Entry, objects: Objects, now: datetime) -> PoolEntry:
    blank = _unknown(spec, source)
    return PoolEntry(
        name=blank.name,
        source=blank.source,
        cluster=blank.cluster,
        flavor=blank.flavor,
        state=PoolState(entry.freshness.value),
        age=max(0, int((now - entry.last.seen_at).total_seconds())),
        counted=entry.granted,
        becomes=quotas_of(spec, source, objects),
        feeds=blank.feeds,
    )


def _unknown(spec: FleetSpec, source: SourceKey) -> PoolEntry:
    feeds = frozenset(flavors_of_source(spec, source))
    names = sorted({key.flavor for key in feeds})
    return PoolEntry(
        name=str(source),
        source=source.kind,
        cluster=source.place.cluster if isinstance(source.place, FlavorKey) else "",
        flavor=names[0] if len(names) == 1 else "",
        state=PoolState.UNKNOWN,
        age=None,
        counted=None,
        becomes=None,
        feeds=feeds,
    )


def _declared(spec: FleetSpec) -> Iterator[SourceKey]:
    sources = find_sources(spec)
    for kind, clusters in sources.flavors.items():
        for cluster, flavors in clusters.items():
            yield from (flavor_source(kind, cluster, flavor.name) for flavor in flavors)
    for group in sources.groups:
        yield from group.named
