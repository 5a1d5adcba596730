"""Buses of a process that goes on: one without a login keeps no other one from being heard."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from reconciler.capacity.model import EMPTY, ObservedCapacity
from reconciler.clients.protocols import Heard
from reconciler.controller.capacity import SHORTEST_REST, WRITTEN_EVERY, Listening, next_rest
from reconciler.spec.nats import Bus
from tests.support import eventually
from tests.unit.capacity.ledgers import remembered
from tests.unit.controller.bus_fleets import bus_spec


@pytest.fixture
def listening() -> Iterator[Listening]:
    """One that has its ledger at hand already, so that no cluster has to be asked for it."""
    made = Listening(lambda _: None)
    made.remember(bus_spec(), {}, ObservedCapacity(datetime.now(UTC)))
    yield made
    made.close()


def test_bus_whose_pools_repeat_themselves_is_not_looked_at_all_the_time() -> None:
    class Repeating:
        looks = 0

        def heard(self) -> Heard:
            self.looks += 1
            return Heard()

        def wait(self, _: timedelta) -> bool:
            return True

        def close(self) -> None: ...

    woken: list[str] = []
    listening, bus, started = Listening(woken.append), Repeating(), time.monotonic()
    listening._begin((Bus("nats:4222", "nats"), ()), bus)
    eventually(lambda: bus.looks > 10)
    looks, seconds = bus.looks, time.monotonic() - started
    listening.close()
    assert looks <= seconds / SHORTEST_REST + 2
    assert woken == ["nats: nats:4222"]


def test_rest_grows_with_news_that_does_not_end_and_is_short_again_after_a_while() -> None:
    rests = [SHORTEST_REST]
    for _ in range(7):
        rests.append(next_rest(rests[-1], quiet=rests[-1]))
    assert rests == [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert next_rest(1.0, quiet=1.9) == 1.0 and next_rest(1.0, quiet=2.0) == SHORTEST_REST


def test_clock_that_is_set_makes_nothing_older_that_is_remembered(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain datetime is enough
            return datetime.now(tz) + timedelta(days=1)

    spec, known = bus_spec(), remembered(cpu=100, when=datetime.now(UTC))
    listening.remember(spec, {}, ObservedCapacity(datetime.now(UTC), EMPTY, known))
    kept = listening.looking(spec, {}).kept
    assert kept is not None and kept.ledger == known
    monkeypatch.setattr("reconciler.controller.capacity.datetime", Later)
    for _ in range(2):
        kept = listening.looking(spec, {}).kept
        assert kept is not None
        (entry,), (before,) = kept.ledger.entries, known.entries
        assert abs(entry.last.seen_at - before.last.seen_at - timedelta(days=1)) < timedelta(minutes=1)


def test_what_was_seen_counts_also_while_it_may_not_be_written_down(listening: Listening) -> None:
    spec, grown = bus_spec(), remembered(cpu=100)
    look = ObservedCapacity(datetime.now(UTC), EMPTY, grown)
    listening.remember(spec, {}, look)
    kept = listening.looking(spec, {}).kept
    assert kept is not None and kept.ledger == grown
    assert listening.due(spec, look) != timedelta(seconds=WRITTEN_EVERY)  # nobody could write it then
