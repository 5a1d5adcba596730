import pytest

from reconciler.plan.model import Action, Reason, Refused
from reconciler.report.text import plan_text
from tests.unit.plan.golden_cases import NAMES, case_plan, plan_of_case, read_case


@pytest.mark.parametrize("name", NAMES)
def test_plan_is_what_the_case_wants(name: str) -> None:
    assert plan_text(case_plan(name)).splitlines() == read_case(name).want.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_make_plan_twice_is_equal(name: str) -> None:
    assert plan_of_case(read_case(name)) == case_plan(name)


def test_every_action_reason_and_refusal_has_a_case() -> None:
    plans = [case_plan(name) for name in NAMES]
    changes = [change for plan in plans for change in plan.changes]
    assert {change.action for change in changes} == set(Action)
    # Only `kfleet run` knows what it wrote before.
    assert {change.reason for change in changes} == set(Reason) - {Reason.WRITTEN_BACK}
    # Evictions are counted, and a part is selected, after the plan is made: tests/unit/effects and pipeline.
    later = {Refused.DISRUPTION, Refused.SCOPE}
    assert {refusal.reason for plan in plans for refusal in plan.refusals} == set(Refused) - later
