"""Which plans take something away, so that nothing may be a guess."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.kubestellar.model import PlacementStep, Verb
from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action, Cause, Change, ClusterPlan, FieldChange, Plan, Reason
from reconciler.plan.prune import takes_away
from reconciler.state.applyset import Inventory, SetName

EAST = ClusterName("east")
QUEUE = Ref(EAST, "kueue.x-k8s.io", "ClusterQueue", "", "q")
SPACE = Ref(EAST, "", "Namespace", "", "team")
QUOTA = "spec.resourceGroups[0].flavors[cpu].resources[cpu].nominalQuota"


def plan_with(ref: Ref, action: Action, *fields: FieldChange) -> Plan:
    change = Change(ref, action, Reason.CHANGED, 0, fields)
    return Plan("f", "abc", (ClusterPlan(EAST, "1", (change,), SetName("f", "kueue-system"), Inventory()),))


def field(old: Any, new: Any, path: str = QUOTA) -> FieldChange:
    return FieldChange(path, old, new, Cause.SPEC)


@pytest.mark.parametrize(
    ("action", "is_taking"),
    [
        (Action.CREATE, False),
        (Action.KEEP, False),
        (Action.HOLD, False),
        (Action.UPDATE, False),
        (Action.REPLACE, True),
        (Action.DELETE, True),
    ],
)
def test_plan_that_deletes_takes_something_away(action: Action, is_taking: bool) -> None:  # noqa: FBT001
    assert takes_away(plan_with(QUEUE, action)) is is_taking


@pytest.mark.parametrize(
    ("old", "new", "is_taking"),
    [
        ("5", "6", False),
        ("5", 5, False),
        ("1500m", "2", False),
        ("6", "5", True),
        (None, "Hold", False),
        ("None", "Hold", True),
        ("5", None, True),
        ([{"name": "worker1"}], [], True),
    ],
)
def test_update_takes_something_away_unless_it_adds_or_grows(old: Any, new: Any, is_taking: bool) -> None:  # noqa: FBT001
    assert takes_away(plan_with(QUEUE, Action.UPDATE, field("1", "2"), field(old, new))) is is_taking


@pytest.mark.parametrize(
    ("verb", "is_taking"),
    [(verb, verb in {Verb.PLACE, Verb.MOVE, Verb.WITHDRAW}) for verb in Verb],
)
def test_placement_that_moves_a_job_needs_current_lists(verb: Verb, is_taking: bool) -> None:  # noqa: FBT001
    step = PlacementStep(Ref(EAST, "batch", "Job", "team", "a"), verb, "there is room")
    assert takes_away(replace(plan_with(QUEUE, Action.KEEP), placements=(step,))) is is_taking


def test_update_of_other_kinds_takes_nothing_away() -> None:
    assert not takes_away(plan_with(SPACE, Action.UPDATE, field("a", "b", "metadata.labels.team")))
