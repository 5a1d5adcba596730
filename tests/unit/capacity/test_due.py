"""How long a ledger stays as it is when nothing is seen."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.capacity.ledger import Rules, merge, next_due
from reconciler.capacity.model import EMPTY, Ledger, ObservedCapacity, SourceKey
from reconciler.snapshot.model import PoolKey
from tests.unit.capacity.ledgers import BUS, LONG, NODES, POOL, at, look, remembered, rules, seen

# Added to every time, so that it is over.
MOMENT = timedelta(milliseconds=50)


def due(
    ledger: Ledger, policy: Rules, now: datetime, listened: Mapping[str, timedelta] | None = None
) -> timedelta | None:
    seen_now = ObservedCapacity(now, ledger=ledger, listened={BUS: LONG} if listened is None else listened)
    return next_due(seen_now, policy, now)


def test_pool_is_due_when_its_timeout_ends() -> None:
    assert due(remembered(), rules(timeout=90), at(30)) == timedelta(seconds=60) + MOMENT


def test_what_cannot_fall_silent_is_never_due() -> None:
    assert due(remembered(NODES), rules(timeout=90, source=NODES), at(30)) is None


def test_silent_pool_is_not_due_again() -> None:
    policy = rules(timeout=90)
    assert due(merge(remembered(), look(at(300)), policy), policy, at(301)) is None


def test_source_that_no_document_asks_for_is_never_due() -> None:
    assert due(remembered(), rules(source=NODES), at(30)) is None
    assert due(EMPTY, rules(), at(0)) is None


@pytest.mark.parametrize(("listened", "seconds"), [(0, 65), (25, 40), (64, 1)])
def test_pool_whose_time_is_over_is_due_when_it_was_listened_to_for_long_enough(listened: int, seconds: int) -> None:
    heard = {BUS: timedelta(seconds=listened)}
    assert due(remembered(), rules(timeout=65), at(500), heard) == timedelta(seconds=seconds) + MOMENT


def test_pool_of_a_bus_that_is_not_heard_is_not_due() -> None:
    assert due(remembered(), rules(timeout=65), at(500), {}) is None


def test_cycle_that_took_long_makes_nothing_due_before_now() -> None:
    late = ObservedCapacity(at(30), ledger=remembered(), listened={BUS: LONG})
    assert next_due(late, rules(timeout=90), at(95)) == MOMENT


def test_smaller_capacity_is_due_when_its_delay_ends() -> None:
    policy = rules(timeout=10_000, shrink_delay=60)
    shrinking = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), policy)
    assert due(shrinking, policy, at(20)) == timedelta(seconds=50) + MOMENT
    assert due(shrinking, policy, at(200)) == MOMENT


def test_first_of_several_sources_is_the_one_that_is_due() -> None:
    other = SourceKey(POOL.kind, PoolKey(BUS, "interlink.resources", "bari"))
    both = Ledger((*remembered(other, when=at(20)).entries, *remembered(POOL, when=at(0)).entries))
    policy = replace(rules(), timeouts={other: timedelta(seconds=90), POOL: timedelta(seconds=100)})
    assert due(both, policy, at(30)) == timedelta(seconds=70) + MOMENT
