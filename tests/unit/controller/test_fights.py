"""Objects that another field manager reverts each time: written less and less often, and reported with its name."""

from datetime import timedelta

import pytest

from reconciler.controller.notices import LONGEST_PAUSE, Fights, fight_notices
from reconciler.plan.model import Action, ClusterOutcome, Outcome, Plan, Reason
from reconciler.state.model import ClusterView
from tests.unit.plan.paper_clusters import HUB, POLICY, QUEUE, PaperClusters, applied_clusters, parse, plan_of, view_of

NIGHT = "hub/ClusterQueue/night"
SPEC = parse(QUEUE, POLICY.replace("{prune:", "{conflicts: take, prune:"))
OTHER = parse(QUEUE.replace('"9"', '"12"'), POLICY.replace("{prune:", "{conflicts: take, prune:"))


class ContestedCluster:
    """A cluster whose queue a program changes at once, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fights = Fights(lambda: self.now)

    def cycle(self, plan: Plan, *views: ClusterView, problem: str = "") -> Plan:
        held = self.fights.hold(plan, views)
        done = tuple(Outcome(change.ref, change.action, problem) for change in held.writes)
        self.fights.note(held, (ClusterOutcome(HUB, done),))
        return held

    def writes_within(self, seconds: int, plan: Plan) -> int:
        """Eight cycles a second, as two programs make them that watch one object."""
        count = 0
        for _ in range(8 * seconds):
            count += len(self.cycle(plan).writes)
            self.now += 1 / 8
        return count


def contested(spec: object = SPEC, manager: str = "tuner") -> Plan:
    live = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, manager)
    return plan_of(SPEC if spec is SPEC else OTHER, live)


def test_first_change_is_put_right_at_once_and_again_at_once() -> None:
    cluster = ContestedCluster()
    assert cluster.writes_within(1, contested()) == 2


@pytest.mark.parametrize("manager", ["tuner", "kubectl-edit"])
def test_fight_goes_on_with_longer_and_longer_pauses(manager: str) -> None:
    cluster = ContestedCluster()
    assert cluster.writes_within(60, contested(manager=manager)) == 7
    assert cluster.writes_within(3600, contested(manager=manager)) < 20


def test_held_object_names_who_changes_it_back_and_when_it_is_written_again() -> None:
    cluster = ContestedCluster()
    cluster.cycle(contested()), cluster.cycle(contested())
    held = cluster.cycle(contested())
    (change,) = [change for change in held.changes if change.action is Action.HOLD]
    assert (str(change.ref), change.reason, change.notes) == (
        NIGHT,
        Reason.WRITTEN_BACK,
        ("tuner; tried again after 1 s",),
    )
    assert cluster.fights.due(held) == timedelta(seconds=1)
    cluster.now += 0.75
    assert cluster.fights.due(held) == timedelta(seconds=0.25)


def test_fight_is_reported_from_the_third_write_on_until_it_ends() -> None:
    cluster = ContestedCluster()
    cluster.cycle(contested()), cluster.cycle(contested())
    assert not cluster.fights.told
    cluster.now += 1
    cluster.cycle(contested())
    (fight,) = cluster.fights.told
    assert fight.managers == ("tuner",)
    (notice,) = fight_notices(cluster.fights.told)
    assert notice.reason == "WrittenBack" and f"{NIGHT}: tuner reverts it" in notice.message
    cluster.now += 2 * LONGEST_PAUSE.total_seconds()
    cluster.cycle(plan_of(SPEC, applied_clusters(SPEC)))
    assert not cluster.fights.told


def test_commit_that_changes_the_object_is_written_at_once() -> None:
    cluster = ContestedCluster()
    cluster.writes_within(30, contested())
    assert not cluster.cycle(contested()).writes
    assert cluster.cycle(contested(OTHER)).writes


def test_object_that_is_deleted_each_time_is_made_less_and_less_often() -> None:
    cluster = ContestedCluster()
    plan = plan_of(SPEC, applied_clusters(SPEC).without(NIGHT))
    assert cluster.writes_within(60, plan) == 7
    (fight,) = cluster.fights.told
    assert "another client reverts it" in str(fight)


def test_write_that_failed_is_not_a_fight() -> None:
    cluster = ContestedCluster()
    for _ in range(5):
        assert cluster.cycle(contested(), problem="no answer").writes
    assert not cluster.fights.told


def test_other_objects_are_written_meanwhile() -> None:
    cluster = ContestedCluster()
    cluster.writes_within(30, contested())
    held = cluster.cycle(plan_of(SPEC, PaperClusters().holding()))
    assert [str(change.ref) for change in held.writes] == ["hub/ResourceFlavor/cpu"]


def test_nothing_is_deleted_that_the_live_object_still_refers_to() -> None:
    """A program goes on to name a flavor that git has taken out."""
    cluster = ContestedCluster()
    spare = QUEUE.replace("kind: ResourceFlavor\nmetadata: {name: cpu}", "kind: ResourceFlavor\nmetadata: {name: old}")
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "old", "resources": []}]}]
    before = applied_clusters(SPEC, applied_clusters(parse(spare)))
    live = before.edited(NIGHT, {"spec": {"resourceGroups": groups}}, "tuner")
    plan, view = plan_of(SPEC, live), view_of(SPEC, SPEC.clusters[0], live)
    actions = {str(change.ref): change.action for change in plan.writes}
    assert actions["hub/ResourceFlavor/old"] is Action.DELETE
    cluster.cycle(plan, view), cluster.cycle(plan, view)
    assert not cluster.cycle(plan, view).writes


def test_new_leader_begins_anew() -> None:
    cluster = ContestedCluster()
    cluster.writes_within(30, contested())
    cluster.fights.begin()
    assert cluster.cycle(contested()).writes
