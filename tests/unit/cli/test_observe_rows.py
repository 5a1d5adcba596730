"""What `kfleet observe` says of a source whose capacity becomes less."""

from datetime import UTC, datetime, timedelta

from reconciler.capacity.model import Entry, Sample
from reconciler.cli.observe import shrinking
from tests.unit.capacity.ledgers import NODES, amounts

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def test_source_that_shrinks_says_to_what_and_when() -> None:
    last = Sample(NODES, NOW, amounts(cpu=8, memory=4))
    since = {"cpu": NOW - timedelta(seconds=20)}
    entry = Entry(last, NOW, amounts(cpu=16, memory=4), shrink_pending_since=since, shrink_peak=amounts(cpu=8))
    assert list(shrinking(entry, NOW, timedelta(seconds=60))) == ["cpu shrinks to 8 in 40s"]
    assert list(shrinking(entry, NOW + timedelta(hours=1), timedelta(seconds=60))) == ["cpu shrinks to 8 in 0s"]


def test_source_that_does_not_shrink_says_nothing() -> None:
    entry = Entry(Sample(NODES, NOW, amounts(cpu=8)), NOW, amounts(cpu=8))
    assert list(shrinking(entry, NOW, timedelta(seconds=60))) == []
