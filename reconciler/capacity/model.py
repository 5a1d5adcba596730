"""The nouns of live capacity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.objects import Gap, Manifest
from reconciler.snapshot.model import Amounts, FlavorKey, Freshness, PoolKey, Usage
from reconciler.spec.enums import CapacitySource


@dataclass(frozen=True, slots=True, order=True)
class SourceKey:
    """Something that has a capacity of its own: a flavor on a cluster, by its nodes or ClusterMetrics, or a pool."""

    kind: CapacitySource
    place: FlavorKey | PoolKey

    def __str__(self) -> str:
        if isinstance(self.place, PoolKey):
            return f"{self.place.bus}/{self.place.subject}.{self.place.name}"
        return f"{self.place.cluster}/{self.place.flavor}"


@dataclass(frozen=True, slots=True)
class Sample:
    """What a source showed. `period` is how often a pool speaks, where that was heard."""

    source: SourceKey
    seen_at: datetime
    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What is remembered of a source.

    `granted` is what counts: at least what was seen last, more where a smaller capacity has not stood long enough
    (`shrink_pending_since`, by resource, and `shrink_peak`, the most that was seen of it since then), and nothing where
    the source is stale, which only a pool becomes.
    """

    last: Sample
    changed_at: datetime
    granted: Amounts
    shrink_pending_since: Mapping[str, datetime] = field(default_factory=dict)
    shrink_peak: Amounts = field(default_factory=dict)
    freshness: Freshness = Freshness.FRESH

    @property
    def source(self) -> SourceKey:
        return self.last.source


@dataclass(frozen=True, slots=True)
class Ledger:
    """The last known capacity of every source, in the order in which they were met."""

    entries: tuple[Entry, ...] = ()

    def find(self, source: SourceKey) -> Entry | None:
        return next((entry for entry in self.entries if entry.source == source), None)

    def by_source(self) -> Mapping[SourceKey, Entry]:
        return {entry.source: entry for entry in self.entries}


EMPTY = Ledger()


@dataclass(frozen=True, slots=True)
class CapacityObservation:
    """One look at the sources, at one moment.

    `listened` says for how long each message bus has been heard without a break; a bus that could not be heard is not
    in it. `unused` are the sources of which is known that no workload uses them.
    """

    now: datetime
    samples: tuple[Sample, ...] = ()
    listened: Mapping[str, timedelta] = field(default_factory=dict)
    unused: frozenset[SourceKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Condition:
    """A fact about the capacity for operators, in words.

    `about` tells it from others where its words may change while it stays. What the pools of a `bus` say can be as
    many conditions as they like.
    """

    text: str
    about: str = ""
    bus: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class ObservedCapacity:
    """What counts now (`ledger`), what was remembered before (`kept`), and conditions for operators.

    `unread` says why the remembered state could not be read; then nothing may be written. `bad_messages`
    counts, by message bus, what could not be used; `listened` says for how long each was heard without a break.
    `left_out` says in words which nodes of a flavor do not count, and why.
    """

    now: datetime
    kept: Ledger = EMPTY
    ledger: Ledger = EMPTY
    usage: Usage = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    conditions: tuple[Condition, ...] = ()
    unread: str = ""
    bad_messages: Mapping[str, int] = field(default_factory=dict)
    listened: Mapping[str, timedelta] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def in_order(samples: Iterable[Sample], first: Iterable[SourceKey]) -> tuple[Sample, ...]:
    """Samples in a given order of sources, the others after them by name."""
    position = {source: number for number, source in enumerate(first)}
    return tuple(sorted(samples, key=lambda one: (position.get(one.source, len(position)), one.source)))
