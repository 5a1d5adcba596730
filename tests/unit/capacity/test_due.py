"""How long a ledger stays as it is when nothing is seen."""

from dataclasses import replace
from datetime import timedelta

from reconciler.capacity.due import next_due
from reconciler.capacity.ledger import merge
from reconciler.capacity.model import EMPTY, Ledger
from tests.unit.capacity.ledgers import NODES, POOL, at, look, remembered, rules, seen

# Added to every time, so that it is over.
MOMENT = timedelta(milliseconds=50)


def test_fresh_source_is_due_when_its_timeout_ends() -> None:
    assert next_due(remembered(NODES), rules(timeout=90, source=NODES), at(30)) == timedelta(seconds=60) + MOMENT


def test_silent_source_is_not_due_again() -> None:
    policy = rules(timeout=90, source=NODES)
    assert next_due(merge(remembered(NODES), look(at(300)), policy), policy, at(301)) is None


def test_source_that_no_document_asks_for_is_never_due() -> None:
    assert next_due(remembered(NODES), rules(source=POOL), at(30)) is None
    assert next_due(EMPTY, rules(), at(0)) is None


def test_pool_whose_time_is_over_is_due_when_it_was_listened_to_for_long_enough() -> None:
    """30 s for a pool whose period is not known, and 3 s more."""
    assert next_due(remembered(POOL), rules(timeout=65), at(500)) == timedelta(seconds=33) + MOMENT


def test_smaller_capacity_is_due_when_its_delay_ends() -> None:
    policy = rules(timeout=10_000, shrink_delay=60)
    shrinking = merge(remembered(cpu=100), look(at(10), seen(POOL, at(10), 40)), policy)
    assert next_due(shrinking, policy, at(20)) == timedelta(seconds=50) + MOMENT
    assert next_due(shrinking, policy, at(200)) == MOMENT


def test_first_of_several_sources_is_the_one_that_is_due() -> None:
    both = Ledger((*remembered(NODES, when=at(20)).entries, *remembered(POOL, when=at(0)).entries))
    policy = replace(rules(), timeouts={NODES: timedelta(seconds=90), POOL: timedelta(seconds=100)})
    assert next_due(both, policy, at(30)) == timedelta(seconds=70) + MOMENT
