"""Queues that kfleet had stopped to delete them, and that stay after all."""

import pytest

from reconciler.plan.model import Action, Change
from tests.unit.plan.paper_clusters import QUEUE, PaperClusters, applied_clusters, parse, plan_of

NIGHT = "hub/ClusterQueue/night"


def stopped_clusters(snippet: str = QUEUE) -> PaperClusters:
    return applied_clusters(parse(snippet)).stopped(NIGHT)


def only_write(snippet: str, paper_clusters: PaperClusters) -> Change:
    (change,) = plan_of(parse(snippet), paper_clusters).writes
    return change


def test_queue_that_stays_after_all_goes_on() -> None:
    change = only_write(QUEUE, stopped_clusters())
    assert (str(change.ref), change.action, change.is_resumed) == (NIGHT, Action.UPDATE, True)
    assert [(field.path, field.old, field.new) for field in change.fields] == [
        ("spec.stopPolicy", "HoldAndDrain", "None")
    ]


@pytest.mark.parametrize("policy", ["Hold", "None"])
def test_queue_that_git_stops_otherwise_does_not_conflict_with_kfleet_itself(policy: str) -> None:
    said = QUEUE.replace("  cohortName: science", f"  cohortName: science\n  stopPolicy: {policy!r}")
    change = only_write(said, stopped_clusters())
    assert (change.action, change.is_resumed, change.is_forced) == (Action.UPDATE, True, True)
    assert [(field.path, field.old, field.new) for field in change.fields] == [
        ("spec.stopPolicy", "HoldAndDrain", policy)
    ]


def test_queue_that_was_not_stopped_is_left_alone() -> None:
    assert not plan_of(parse(QUEUE), applied_clusters(parse(QUEUE))).writes
