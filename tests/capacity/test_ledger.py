"""What counts of what was seen: growth at once, shrinking after a while, nothing of what fell silent."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.ledger import is_worth_writing, merge
from reconciler.capacity.model import EMPTY, Ledger
from reconciler.observed import Freshness
from reconciler.quantity import parse
from tests.capacity.worlds import BUS, LONG, NODES, POOL, amounts, at, granted, look, remembered, rules, seen

UNUSED = frozenset({POOL})


def test_growth_counts_at_once() -> None:
    grown = merge(remembered(cpu=100), look(at(1), seen(POOL, at(1), 120)), rules())
    assert granted(grown) == "120"


def test_shrinking_waits_for_its_delay() -> None:
    ledger, policy = remembered(cpu=100), rules(shrink_delay=60)
    for second, expected in ((10, "100"), (69, "100"), (70, "40"), (80, "40")):
        ledger = merge(ledger, look(at(second), seen(POOL, at(second), 40)), policy)
        assert granted(ledger) == expected, second


def test_shrinking_starts_anew_after_a_recovery() -> None:
    ledger, policy = remembered(cpu=100), rules(shrink_delay=60)
    for second, cpu in ((10, 40), (50, 100), (60, 40), (100, 40)):
        ledger = merge(ledger, look(at(second), seen(POOL, at(second), cpu)), policy)
        assert granted(ledger) == "100"


def test_shrinking_is_timed_for_each_resource() -> None:
    policy = rules(shrink_delay=60)
    first = seen(POOL, at(0), 100)
    both = {0: amounts(cpu=100, memory=100), 10: amounts(cpu=40, memory=100), 50: amounts(cpu=40, memory=30)}
    ledger = EMPTY
    for second, seen_amounts in {**both, 75: both[50]}.items():
        sighting = type(first)(POOL, at(second), seen_amounts)
        ledger = merge(ledger, look(at(second), sighting), policy)
    entry = ledger.find(POOL)
    assert entry is not None and entry.granted == amounts(cpu=40, memory=100)


def test_silent_pool_counts_as_nothing_and_keeps_its_place() -> None:
    fresh = merge(remembered(), look(at(65)), rules(timeout=65))
    stale = merge(remembered(), look(at(66)), rules(timeout=65))
    assert granted(fresh) == "100"
    assert granted(stale) == "0"
    entry = stale.find(POOL)
    assert entry is not None and entry.freshness is Freshness.STALE and entry.last.amounts == amounts(cpu=100)


def test_pool_that_comes_back_counts_as_it_says_at_once() -> None:
    stale = merge(remembered(cpu=100), look(at(300)), rules())
    back = merge(stale, look(at(301), seen(POOL, at(301), 40)), rules(shrink_delay=600))
    assert granted(back) == "40"


def test_silent_pool_is_dropped_only_when_it_is_old_and_unused() -> None:
    policy = rules(drop_after=900)
    assert granted(merge(remembered(), look(at(800), unused=UNUSED), policy)) == "0"
    assert granted(merge(remembered(), look(at(1000)), policy)) == "0"
    assert granted(merge(remembered(), look(at(1000), unused=UNUSED), policy)) == ""


@pytest.mark.parametrize("listened", [{}, {BUS: timedelta(seconds=34)}, {"other:4222": LONG}])
def test_silence_counts_only_while_somebody_listened(listened: dict[str, timedelta]) -> None:
    ledger = merge(remembered(), look(at(10_000), listened=listened, unused=UNUSED), rules())
    assert granted(ledger) == "100"


def test_flavor_of_a_cluster_that_is_not_seen_turns_stale_and_is_never_dropped() -> None:
    policy = rules(timeout=90, source=NODES)
    known = remembered(NODES)
    assert granted(merge(known, look(at(90), listened={}), policy), NODES) == "100"
    lost = merge(known, look(at(10_000), listened={}, unused=frozenset({NODES})), policy)
    assert granted(lost, NODES) == "0"


def test_source_that_nobody_asks_for_is_forgotten() -> None:
    assert merge(remembered(), look(at(1), seen(POOL, at(1), 7)), rules(source=NODES)) == EMPTY


def test_pool_that_speaks_once_per_timeout_never_flaps() -> None:
    """Every 30 s and a little, with a poolTimeout of 30, looked at every 2 s for 20 minutes."""
    ledger, policy, spoke = EMPTY, rules(timeout=30, shrink_delay=0), 0.0
    for second in range(0, 1200, 2):
        while spoke + 30.2 <= second:
            spoke += 30.2
        ledger = merge(ledger, look(at(second), seen(POOL, at(spoke), 8, period=30.2)), policy)
        assert granted(ledger) == "8", second


def test_pool_may_lose_one_message_and_not_two() -> None:
    policy = rules(timeout=10)
    known = merge(EMPTY, look(at(0), seen(POOL, at(0), 8, period=20)), policy)
    assert granted(merge(known, look(at(44)), policy)) == "8"
    assert granted(merge(known, look(at(46)), policy)) == "0"


def test_clock_that_was_set_back_neither_holds_nor_frees_anything() -> None:
    known = remembered(when=at(3600))
    back = merge(known, look(at(0)), rules())
    assert granted(back) == "100"
    assert granted(merge(back, look(at(66)), rules(timeout=65))) == "0"


def test_order_of_pools_is_that_of_their_first_sighting() -> None:
    other = type(POOL)(POOL.kind, type(POOL.place)(BUS, "interlink.resources", "aachen"))  # type: ignore[call-arg]
    policy = type(rules())(rules().policy, {POOL: timedelta(60), other: timedelta(60)})
    both = merge(remembered(), look(at(1), seen(other, at(1), 1), seen(POOL, at(1), 1)), policy)
    assert [entry.source for entry in both.entries] == [POOL, other]


def test_ledger_is_written_for_what_changed_and_now_and_then_for_its_times() -> None:
    known = remembered()
    again = merge(known, look(at(31), seen(POOL, at(31), 100, period=30)), rules())
    later = merge(known, look(at(301), seen(POOL, at(301), 100)), rules())
    grown = merge(known, look(at(31), seen(POOL, at(31), 101)), rules())
    lower = merge(known, look(at(31), seen(POOL, at(31), 99)), rules())
    assert [is_worth_writing(known, one) for one in (known, again, later, grown, lower)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert is_worth_writing(EMPTY, known) and is_worth_writing(known, EMPTY)


events = st.lists(st.tuples(st.integers(1, 400), st.one_of(st.none(), st.integers(0, 50))), max_size=30)


@given(events)
def test_what_counts_is_never_more_than_was_seen_and_never_less_unless_silent(
    story: list[tuple[int, int | None]],
) -> None:
    ledger, second, highest, last = EMPTY, 0, 0, 0
    for pause, cpu in story:
        second += pause
        sightings = () if cpu is None else (seen(POOL, at(second), cpu),)
        highest, last = max(highest, cpu or 0), last if cpu is None else cpu
        ledger = merge(ledger, look(at(second), *sightings), rules())
        entry = ledger.find(POOL)
        if entry is None:
            continue
        assert entry.granted["cpu"] <= parse(highest)
        assert entry.freshness is Freshness.STALE or entry.granted["cpu"] >= parse(last)
        assert entry.freshness is Freshness.FRESH or entry.granted["cpu"] == parse(0)


@given(events)
def test_looking_twice_at_the_same_moment_changes_nothing(story: list[tuple[int, int | None]]) -> None:
    ledger, second = EMPTY, 0
    for pause, cpu in story:
        second += pause
        one = look(at(second), *(() if cpu is None else (seen(POOL, at(second), cpu),)))
        ledger = merge(ledger, one, rules())
        assert merge(ledger, one, rules()) == ledger


@given(events)
def test_nothing_is_dropped_while_it_may_be_in_use(story: list[tuple[int, int | None]]) -> None:
    ledger, second = remembered(), 0
    for pause, cpu in story:
        second += pause * 10
        ledger = merge(ledger, look(at(second), *(() if cpu is None else (seen(POOL, at(second), cpu),))), rules())
        assert isinstance(ledger, Ledger) and ledger.find(POOL) is not None
