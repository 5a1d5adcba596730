import pytest

from reconciler.plan import Action, Reason, Refused
from reconciler.status import plan_text
from tests.unit.plan.stories import NAMES, plan_of_story, read_story, story_plan


@pytest.mark.parametrize("name", NAMES)
def test_plan_tells_the_story(name: str) -> None:
    assert plan_text(story_plan(name)).splitlines() == read_story(name).want.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_make_plan_twice_is_equal(name: str) -> None:
    assert plan_of_story(read_story(name)) == story_plan(name)


def test_every_action_reason_and_refusal_has_a_story() -> None:
    plans = [story_plan(name) for name in NAMES]
    changes = [change for plan in plans for change in plan.changes]
    assert {change.action for change in changes} == set(Action)
    assert {change.reason for change in changes} == set(Reason)
    assert {refusal.reason for plan in plans for refusal in plan.refusals} == set(Refused)
