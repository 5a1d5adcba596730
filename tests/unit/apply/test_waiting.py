"""Waiting for the effect of a write, and what is said where that did not come."""

from datetime import timedelta

import pytest

from reconciler.apply.objects import Wait
from reconciler.apply.retry import RetryPolicy
from reconciler.plan.model import Action, Outcome, Reason
from tests.unit.apply.changes import change

NOW, LONG = timedelta(), timedelta(hours=1)
GOING = change(Action.DELETE, Reason.GONE)


@pytest.mark.parametrize(("limit", "awaited", "is_over"), [(NOW, LONG, True), (LONG, NOW, True), (LONG, LONG, False)])
def test_wait_ends_at_the_sooner_of_its_limits(limit: timedelta, awaited: timedelta, *, is_over: bool) -> None:
    assert Wait(limit, RetryPolicy(awaited=awaited)).is_over() is is_over


@pytest.mark.parametrize("awaited", [timedelta.max, timedelta(seconds=30)])
def test_whole_wait_says_how_long_it_took(awaited: timedelta) -> None:
    wait = Wait(timedelta(seconds=30), RetryPolicy(awaited=awaited))
    found = wait.outcome(GOING, "still there", "its deletion", "; finalizers: none", 3)
    problem = "still there 30 s after its deletion; finalizers: none"
    assert found == Outcome(GOING.ref, Action.DELETE, problem, attempts=3, is_waiting=False)


def test_wait_that_was_cut_short_goes_on_in_the_next_run() -> None:
    wait = Wait(timedelta(seconds=30), RetryPolicy(awaited=timedelta(seconds=29)))
    assert wait.outcome(GOING, "still there", "its deletion") == Outcome(
        GOING.ref, Action.DELETE, "still there", attempts=1, is_waiting=True
    )
