"""The nouns of live capacity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.objects import Gap, Manifest
from reconciler.observed import Amounts, FlavorPlace, Freshness, PoolPlace, Usage
from reconciler.spec.choices import CapacitySource


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Something that has a capacity of its own: a flavor on a cluster, by its nodes or ClusterMetrics, or a pool."""

    kind: CapacitySource
    place: FlavorPlace | PoolPlace

    def __str__(self) -> str:
        if isinstance(self.place, PoolPlace):
            return f"{self.place.bus}/{self.place.subject}.{self.place.name}"
        return f"{self.place.cluster}/{self.place.flavor}"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a source showed. `period` is how often a pool speaks, where that was heard."""

    source: Source
    seen_at: datetime
    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered of a source.

    `granted` is what counts: at least what was seen last, more where a smaller capacity has not stood long enough
    (`lower_since`, by resource, and `lower_most`, the most that was seen of it since then), and nothing where the
    source is stale.
    """

    last: Sighting
    changed_at: datetime
    granted: Amounts
    lower_since: Mapping[str, datetime] = field(default_factory=dict)
    lower_most: Amounts = field(default_factory=dict)
    freshness: Freshness = Freshness.FRESH

    @property
    def source(self) -> Source:
        return self.last.source


@dataclass(frozen=True, slots=True)
class Ledger:
    """The last known capacity of every source, in the order in which they were met."""

    entries: tuple[Entry, ...] = ()

    def find(self, source: Source) -> Entry | None:
        return next((entry for entry in self.entries if entry.source == source), None)

    def by_source(self) -> Mapping[Source, Entry]:
        return {entry.source: entry for entry in self.entries}


EMPTY = Ledger()


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the sources, at one moment.

    `listened` says for how long each message bus has been heard without a break; a bus that could not be heard is not
    in it. `unused` are the sources of which is known that no workload uses them.
    """

    now: datetime
    sightings: tuple[Sighting, ...] = ()
    listened: Mapping[str, timedelta] = field(default_factory=dict)
    unused: frozenset[Source] = frozenset()


@dataclass(frozen=True, slots=True)
class CapacityLook:
    """What counts now (`ledger`), what was remembered before (`kept`), and what somebody should know.

    `unread` says why nobody knows what was remembered before: nothing may be written by such a look. `bad_messages`
    counts, by message bus, what could not be used.
    """

    now: datetime
    kept: Ledger = EMPTY
    ledger: Ledger = EMPTY
    usage: Usage = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    conditions: tuple[str, ...] = ()
    unread: str = ""
    bad_messages: Mapping[str, int] = field(default_factory=dict)


def in_order(sightings: Iterable[Sighting], first: Iterable[Source]) -> tuple[Sighting, ...]:
    """Sightings in a given order of sources, the others after them by name."""
    position = {source: number for number, source in enumerate(first)}
    return tuple(sorted(sightings, key=lambda one: (position.get(one.source, len(position)), one.source)))
