"""What counts of what was seen: growth at once, shrinking after a while, nothing of what fell silent."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.ledger import follow_buses, is_worth_writing, merge, shifted
from reconciler.capacity.model import EMPTY, Ledger, SourceKey
from reconciler.pipeline.capacity import OBSERVE_FOR
from reconciler.quantity import parse
from reconciler.snapshot.model import Freshness, PoolKey
from reconciler.spec.enums import CapacitySource
from tests.unit.capacity.ledgers import BUS, LONG, NODES, POOL, amounts, at, granted, look, remembered, rules, seen

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


def test_dip_of_a_moment_counts_for_nothing_where_less_was_seen_before() -> None:
    ledger, policy = remembered(cpu=10), rules(shrink_delay=60)
    story = ((10, 9, "10"), (69, 0, "10"), (70, 0, "9"), (71, 9, "9"), (200, 9, "9"))
    for second, cpu, expected in story:
        ledger = merge(ledger, look(at(second), seen(POOL, at(second), cpu)), policy)
        assert granted(ledger) == expected, second


def test_what_becomes_less_again_and_again_follows_in_steps() -> None:
    ledger, policy = remembered(cpu=100), rules(shrink_delay=60)
    found = {}
    for second in range(10, 250, 10):
        ledger = merge(ledger, look(at(second), seen(POOL, at(second), max(100 - second, 0))), policy)
        found[second] = granted(ledger)
    assert [found[second] for second in (60, 70, 120, 130, 190, 240)] == ["100", "90", "90", "30", "0", "0"]


def test_shrinking_goes_on_with_a_ledger_that_knows_only_since_when() -> None:
    policy = rules(shrink_delay=60)
    older = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), policy)
    older = Ledger(tuple(replace(entry, shrink_peak={}) for entry in older.entries))
    assert granted(merge(older, look(at(70), seen(POOL, at(70), 40)), policy)) == "40"


def test_shrinking_is_timed_for_each_resource() -> None:
    policy = rules(shrink_delay=60)
    first = seen(POOL, at(0), 100)
    both = {0: amounts(cpu=100, memory=100), 10: amounts(cpu=40, memory=100), 50: amounts(cpu=40, memory=30)}
    ledger = EMPTY
    for second, seen_amounts in {**both, 75: both[50]}.items():
        sample = type(first)(POOL, at(second), seen_amounts)
        ledger = merge(ledger, look(at(second), sample), policy)
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


@pytest.mark.parametrize("listened", [{}, {BUS: timedelta(seconds=1)}])
def test_bus_that_broke_gives_a_silent_pool_nothing_back(listened: dict[str, timedelta]) -> None:
    """The last message of a pool stays in the ear for as long as kfleet runs."""
    said = seen(POOL, at(0), 100)
    stale = merge(remembered(), look(at(300), said), rules())
    assert granted(stale) == "0"
    broken = merge(stale, look(at(310), said, listened=listened), rules())
    assert granted(broken) == "0"
    assert granted(merge(broken, look(at(320), seen(POOL, at(319), 70), listened=listened), rules())) == "70"


@pytest.mark.parametrize("listened", [{}, {BUS: timedelta(seconds=1)}])
def test_bus_that_broke_brings_no_dropped_pool_back(listened: dict[str, timedelta]) -> None:
    said, policy = seen(POOL, at(0), 100), rules(drop_after=900)
    dropped = merge(remembered(), look(at(1000), said, unused=UNUSED), policy)
    assert dropped == EMPTY
    assert merge(dropped, look(at(1010), said, listened=listened, unused=UNUSED), policy) == EMPTY
    assert granted(merge(dropped, look(at(1010), seen(POOL, at(1009), 70), listened=listened), policy)) == "70"


def test_silent_pool_is_dropped_only_when_it_is_old_and_unused() -> None:
    policy = rules(drop_after=900)
    assert granted(merge(remembered(), look(at(800), unused=UNUSED), policy)) == "0"
    assert granted(merge(remembered(), look(at(1000)), policy)) == "0"
    assert granted(merge(remembered(), look(at(1000), unused=UNUSED), policy)) == ""


@pytest.mark.parametrize("listened", [{}, {BUS: timedelta(seconds=64.9)}, {"other:4222": LONG}])
def test_silence_counts_only_while_kfleet_listened(listened: dict[str, timedelta]) -> None:
    """However long ago the ledger says that the pool was seen: 65 s are two of its periods and a little."""
    ledger = merge(remembered(), look(at(10_000), listened=listened, unused=UNUSED), rules())
    assert granted(ledger) == "100"


def test_pool_with_a_long_timeout_is_listened_for_as_long() -> None:
    long = rules(timeout=600)
    for listened, expected in ((599, "100"), (600, "0")):
        heard = {BUS: timedelta(seconds=listened)}
        assert granted(merge(remembered(), look(at(10_000), listened=heard), long)) == expected


def test_pool_that_is_silent_already_is_dropped_after_one_of_its_periods() -> None:
    stale = merge(remembered(), look(at(100)), rules(drop_after=900))
    for listened, expected in ((32, "0"), (33, "")):
        heard = {BUS: timedelta(seconds=listened)}
        later = merge(stale, look(at(1000), listened=heard, unused=UNUSED), rules(drop_after=900))
        assert granted(later) == expected


@pytest.mark.parametrize("kind", [CapacitySource.NODES, CapacitySource.CLUSTER_METRICS])
def test_flavor_of_a_cluster_that_does_not_answer_keeps_what_it_had(kind: CapacitySource) -> None:
    source = replace(NODES, kind=kind)
    ledger, policy = remembered(source), rules(timeout=90, source=source)
    for second in (90, 91, 1000, 10_000_000):
        ledger = merge(ledger, look(at(second), unused=frozenset({source})), policy)
        assert granted(ledger, source) == "100", second
    (entry,) = ledger.entries
    assert (entry.freshness, entry.last.seen_at) == (Freshness.FRESH, at(0))


def test_capacity_that_had_become_less_stays_where_it_was_while_it_is_not_observed() -> None:
    """What was seen last was less for ten seconds: whether it still is nobody knows."""
    policy = rules(source=NODES, shrink_delay=60)
    lower = merge(remembered(NODES), look(at(10), seen(NODES, at(10), 40)), policy)
    assert granted(merge(lower, look(at(1000)), policy), NODES) == "100"


def test_source_that_is_not_asked_for_is_forgotten() -> None:
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


def test_ledger_by_a_clock_that_was_set_says_the_same() -> None:
    policy, jump = rules(shrink_delay=60), timedelta(hours=1)
    before = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), policy)
    after = shifted(before, jump)
    for second in (10, 69, 70, 200):
        by_old = merge(before, look(at(second)), policy)
        assert merge(after, look(at(second) + jump), policy) == shifted(by_old, jump), second
        sample = seen(POOL, at(second), 40)
        by_old = merge(before, look(at(second), sample), policy)
        moved = replace(sample, seen_at=sample.seen_at + jump)
        assert merge(after, look(at(second) + jump, moved), policy) == shifted(by_old, jump), second


def test_order_of_pools_is_that_of_their_first_sample() -> None:
    other = SourceKey(POOL.kind, PoolKey(BUS, "interlink.resources", "aachen"))
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
        samples = () if cpu is None else (seen(POOL, at(second), cpu),)
        highest, last = max(highest, cpu or 0), last if cpu is None else cpu
        ledger = merge(ledger, look(at(second), *samples), rules())
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


@pytest.mark.parametrize("buses", [[f"{BUS},other:4222"], [BUS], [f"a:1,{BUS}", "b:1"]])
def test_bus_with_another_server_has_the_same_pools(buses: list[str]) -> None:
    (entry,) = follow_buses(remembered(cpu=8), buses).entries
    assert isinstance(entry.source.place, PoolKey)
    assert (entry.source.place.bus, entry.source.place.name) == (buses[0], "cnaf")
    assert entry.granted == amounts(cpu=8)


@pytest.mark.parametrize("buses", [["other:4222"], [f"a:1,{BUS}", f"b:1,{BUS}"], []])
def test_bus_that_may_be_another_one_takes_nobodys_pools(buses: list[str]) -> None:
    assert follow_buses(remembered(), buses) == remembered()


def test_pool_that_two_buses_had_is_one_where_they_are_one() -> None:
    other = SourceKey(CapacitySource.NATS, PoolKey("b:1", "interlink.resources", "cnaf"))
    both = Ledger((*remembered(cpu=8).entries, *remembered(other, cpu=9).entries))
    (entry,) = follow_buses(both, [f"b:1,{BUS}"]).entries
    assert entry.granted == amounts(cpu=8)


def test_one_shot_run_listens_long_enough_to_call_a_pool_silent() -> None:
    listened = {BUS: OBSERVE_FOR}
    assert granted(merge(remembered(), look(at(10_000), listened=listened), rules())) == "0"
    late = merge(EMPTY, look(at(0), seen(POOL, at(0), 100, period=31.5)), rules())
    assert granted(merge(late, look(at(10_000), listened=listened), rules())) == "0"
