"""Small ledgers, and what is merged into them, as values."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.capacity.ledger import Rules, merge
from reconciler.capacity.model import EMPTY, CapacityObservation, Ledger, Sample, SourceKey
from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.snapshot.model import Amounts, FlavorKey, PoolKey
from reconciler.spec.enums import CapacityPolicy, CapacitySource

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
BUS = "nats:4222"
POOL = SourceKey(CapacitySource.NATS, PoolKey(BUS, "interlink.resources", "cnaf"))
NODES = SourceKey(CapacitySource.NODES, FlavorKey(ClusterName("east"), "cpu"))
LONG = timedelta(hours=1)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def amounts(**texts: str | int) -> Amounts:
    return {name: parse(text) for name, text in texts.items()}


def seen(source: SourceKey, when: datetime, cpu: str | int, period: float | None = None) -> Sample:
    return Sample(source, when, amounts(cpu=cpu), period=None if period is None else timedelta(seconds=period))


def rules(timeout: float = 60, source: SourceKey = POOL, **policy: float) -> Rules:
    durations: dict[str, Any] = {name: timedelta(seconds=value) for name, value in policy.items()}
    return Rules(CapacityPolicy(**durations), {source: timedelta(seconds=timeout)})


def look(
    when: datetime,
    *samples: Sample,
    listened: Mapping[str, timedelta] | None = None,
    unused: frozenset[SourceKey] = frozenset(),
) -> CapacityObservation:
    return CapacityObservation(when, samples, {BUS: LONG} if listened is None else listened, unused)


def remembered(source: SourceKey = POOL, cpu: str | int = 100, when: datetime = START) -> Ledger:
    return merge(EMPTY, look(when, seen(source, when, cpu)), rules(source=source))


def granted(ledger: Ledger, source: SourceKey = POOL) -> str:
    """What counts of a source; empty where it is not in the ledger."""
    entry = ledger.find(source)
    return "" if entry is None else str(entry.granted["cpu"])
