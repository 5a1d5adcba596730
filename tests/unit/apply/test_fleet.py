"""What apply leaves out of a plan, and what it says of it, where no request is sent for that."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.apply.fleet import (
    _finish,
    _finish_later,
    _why_later,
    _without_early,
    _without_removals,
    _Work,
    apply_plan,
    ignore_progress,
)
from reconciler.apply.retry import RetryPolicy
from reconciler.errors import ClusterError
from reconciler.kueue_config.model import Rollout
from reconciler.objects import ClusterName
from reconciler.plan.model import Action, Change, ClusterOutcome, ClusterPlan, Outcome, Plan, Reason, Refusal, Refused
from reconciler.state.applyset import Inventory
from tests.unit.apply.changes import EAST, HUB, WEST, change, part, ref

DELETE = change(Action.DELETE, Reason.GONE)
UPDATE = change(Action.UPDATE, Reason.CHANGED)
DONE = ClusterOutcome(HUB, (Outcome(ref("day"), Action.CREATE),))
FAILED = ClusterOutcome(HUB, (Outcome(ref("day"), Action.CREATE, "busy"),))
NO_PORT: Any = None


@pytest.mark.parametrize(
    ("action", "reason", "after"),
    [
        (Action.DELETE, Reason.GONE, Action.HOLD),
        (Action.REPLACE, Reason.IMMUTABLE, Action.HOLD),
        (Action.UPDATE, Reason.STOPPED, Action.HOLD),
        (Action.UPDATE, Reason.RELEASED, Action.HOLD),
        (Action.UPDATE, Reason.CHANGED, Action.UPDATE),
        (Action.CREATE, Reason.MISSING, Action.CREATE),
        (Action.KEEP, Reason.SAME, Action.KEEP),
    ],
)
def test_without_removals_nothing_goes_or_begins_to(action: Action, reason: Reason, after: Action) -> None:
    one = change(action, reason)
    found = _without_removals(part(HUB, one, is_ending=True))
    assert found == part(HUB, one._replace(action=after), is_ending=False)


@pytest.mark.parametrize(
    ("reason", "kind", "is_put_off"),
    [
        (Reason.SUSPENDED, "ClusterQueue", True),
        (Reason.WRITTEN_BACK, "ClusterQueue", True),
        (Reason.UNSEEN, "MultiKueueConfig", True),
        (Reason.UNSEEN, "ClusterQueue", False),
        (Reason.IN_USE, "MultiKueueConfig", False),
    ],
)
def test_change_of_the_manager_is_awaited_where_workers_must_wait(
    reason: Reason, kind: str, *, is_put_off: bool
) -> None:
    assert change(Action.HOLD, reason, kind=kind).is_awaited_by_workers is is_put_off


def why(*changes: Change, outcome: ClusterOutcome | None = DONE, refusals: tuple[Refusal, ...] = ()) -> str:
    plan = Plan("test", "", (part(EAST), part(HUB, *changes)), refusals)
    return _why_later(plan, HUB, {EAST: ClusterOutcome(EAST), **({HUB: outcome} if outcome else {})})


def test_workers_wait_for_a_manager_that_was_not_changed_as_planned() -> None:
    held = change(Action.HOLD, Reason.SUSPENDED)
    refusals = tuple(Refusal(Refused.MOVED, "", name, ref("night", name)) for name in (EAST, HUB))
    assert why(UPDATE) == ""
    assert why(refusals=(Refusal(Refused.MOVED, "", HUB),)) == "the changes of hub were refused"
    assert why(refusals=(Refusal(Refused.TOO_MANY, "", HUB),)) == "the deletion of objects of hub is refused"
    assert why(outcome=None) == "not all changes of hub were made"
    assert why(outcome=FAILED) == "not all changes of hub were made"
    assert why(UPDATE, refusals=refusals[:1]) == ""
    assert why(UPDATE, refusals=refusals) == "hub/ClusterQueue/night is refused"
    assert why(UPDATE, held) == "hub/ClusterQueue/night is held: the fleet or the cluster is suspended"


def test_workers_wait_for_a_manager_that_could_not_be_seen_and_for_none_where_there_is_none() -> None:
    plan = Plan("test", "", (part(EAST),))
    assert _why_later(plan, HUB, {}) == "hub could not be observed"
    assert _why_later(plan, None, {}) == ""


def test_workers_do_not_wait_for_a_token_of_another_worker() -> None:
    tokenless = Outcome(ref("day"), Action.UPDATE, "no token", is_tokenless=True)
    assert why(outcome=replace(DONE, outcomes=(*DONE.outcomes, tokenless))) == ""


def rollout_after(*names: Any) -> Change:
    rollout = Rollout("queues", "kueue-config", "kueue", "new", "old", "7", "patch", after=names)
    return change(Action.UPDATE, Reason.CHANGED, "config", rollout=rollout)


def test_rollout_waits_for_workers_that_are_not_done() -> None:
    outcomes = {EAST: ClusterOutcome(EAST), WEST: ClusterOutcome(WEST, problem="no answer")}
    early, ready = rollout_after(EAST, WEST), rollout_after(EAST)
    problem = "not tried, because west must be ready first, and not all changes there were made"
    told = Outcome(early.ref, Action.UPDATE, problem, attempts=0, is_waiting=True)
    assert _without_early([part(HUB, UPDATE, early)], outcomes) == ([part(HUB, UPDATE)], [told])
    assert _without_early([part(HUB, UPDATE, ready)], outcomes) == ([part(HUB, UPDATE, ready)], [])
    assert _without_early([part(HUB, ready)], {}) == (
        [part(HUB)],
        [replace(told, problem=problem.replace("west", "east"))],
    )


def test_cluster_that_failed_is_left_out_and_stops_no_other() -> None:
    asked = []

    def step(_port: Any, cluster: Any, before: ClusterOutcome, _policy: RetryPolicy) -> ClusterOutcome:
        asked.append(cluster.name)
        if cluster.name == EAST:
            raise ClusterError("east", "no answer")
        return replace(before, outcomes=(*before.outcomes, Outcome(ref("a", cluster.name), Action.CREATE)))

    work = _Work({EAST: NO_PORT, WEST: NO_PORT}, RetryPolicy(), {name: ClusterOutcome(name) for name in (EAST, WEST)})
    work.run([], step)
    work.run([part(EAST), part(WEST)], step)
    assert work.outcomes[EAST] == ClusterOutcome(EAST, problem="no answer")
    work.run([part(EAST), part(WEST)], step)
    assert sorted(asked) == [EAST, WEST, WEST]
    assert work.outcomes[WEST] == ClusterOutcome(WEST, (Outcome(ref("a", WEST), Action.CREATE),) * 2)
    later = Outcome(ref("b", EAST), Action.DELETE, "later")
    work.note([later])
    assert work.outcomes[EAST] == ClusterOutcome(EAST, (later,), "no answer")


def test_nothing_is_deleted_after_a_write_that_failed() -> None:
    """There is no connection by which anything could be."""
    assert _finish(ignore_progress, NO_PORT, part(HUB, DELETE), FAILED, RetryPolicy()) is FAILED


def test_deletes_that_come_later_are_reported() -> None:
    def finish(_port: Any, _cluster: Any, before: ClusterOutcome, _policy: RetryPolicy) -> ClusterOutcome:
        return replace(before, problem="finished")

    def finished(before: ClusterOutcome, *changes: Change) -> ClusterOutcome:
        return _finish_later("hub is refused", finish, NO_PORT, part(HUB, *changes), before, RetryPolicy())

    later = Outcome(DELETE.ref, Action.DELETE, "not tried, because hub is refused", attempts=0, is_waiting=True)
    assert finished(DONE, UPDATE, DELETE) == replace(DONE, outcomes=(*DONE.outcomes, later))
    assert finished(DONE, UPDATE).problem == "finished"
    assert finished(FAILED, DELETE).problem == "finished"


def test_cluster_that_is_refused_is_left_alone() -> None:
    """Without a connection: to ask for one would fail."""
    plan = Plan("test", "", (part(HUB, UPDATE, DELETE),), (Refusal(Refused.MOVED, "", HUB),))
    assert apply_plan(plan, {}, HUB, RetryPolicy()) == ()


UNSAID = "the plan has no manifest to write"


def unsaid(cluster: ClusterName, action: Action, name: str, **more: Any) -> Change:
    """A change that is tried without a request: the plan has no manifest for it."""
    reason = Reason.GONE if action is Action.DELETE else Reason.CHANGED
    return change(action, reason, name, cluster, kind="ResourceFlavor", **more)


def held_part(cluster: ClusterName, *changes: Change) -> ClusterPlan:
    """Of a cluster whose inventory is wide enough already, and is not narrowed."""
    known = Inventory(cluster=cluster, cluster_uid=f"uid-of-{cluster}").with_members(one.ref for one in changes)
    return part(cluster, *changes, inventory=known, is_complete=False)


def problems(*clusters: ClusterPlan, refusals: tuple[Refusal, ...] = ()) -> dict[str, str]:
    """By object, in the order in which the changes of each cluster were tried or left out."""
    ports = {one.name: NO_PORT for one in clusters}
    found = apply_plan(Plan("test", "", clusters, refusals), ports, HUB, RetryPolicy())
    assert [cluster.name for cluster in found] == [cluster.name for cluster in clusters]
    return {str(outcome.ref): outcome.problem for cluster in found for outcome in cluster.outcomes}


def test_workers_are_written_and_lose_something_only_after_a_manager_that_is_done() -> None:
    east = held_part(EAST, unsaid(EAST, Action.UPDATE, "new"))
    west = held_part(WEST, unsaid(WEST, Action.DELETE, "old"))
    tried = {"east/ResourceFlavor/new": UNSAID, "west/ResourceFlavor/old": UNSAID}
    assert problems(held_part(HUB), east, west) == tried
    hub = held_part(HUB, unsaid(HUB, Action.DELETE, "old"))
    later = "not tried, because not all changes of hub were made"
    assert problems(hub, east, west) == tried | {
        "hub/ResourceFlavor/old": UNSAID,
        "west/ResourceFlavor/old": later,
    }


def test_nothing_is_deleted_where_there_is_too_much_of_it() -> None:
    east = held_part(EAST, unsaid(EAST, Action.CREATE, "new"), unsaid(EAST, Action.REPLACE, "old"))
    tried = {"east/ResourceFlavor/new": UNSAID, "east/ResourceFlavor/old": UNSAID}
    assert problems(held_part(HUB), east) == tried
    refusal = Refusal(Refused.TOO_MANY, "", EAST)
    assert problems(held_part(HUB), east, refusals=(refusal,)) == {"east/ResourceFlavor/new": UNSAID}


def test_rollout_does_not_come_after_a_worker_of_which_something_is_refused() -> None:
    rollout = rollout_after(EAST)
    refusal = Refusal(Refused.INVALID, "", EAST, ref("night", EAST))
    problem = "not tried, because east must be ready first, and not all changes there were made"
    assert problems(held_part(HUB, rollout), held_part(EAST), refusals=(refusal,)) == {str(rollout.ref): problem}
