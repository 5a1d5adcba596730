"""Copies of jobs that lost their place, as clusters tell of them or do not."""

import pytest

from reconciler.objects import ClusterName
from reconciler.placement import Placed
from reconciler.placement.former import Names, find_former
from reconciler.spec.kubestellar import JOB
from tests.unit.placement.queued_jobs import EAST, WEST, pods, queued_job

HERE: Names = frozenset({("team", "a")})
NOT_HERE: Names = frozenset({("team", "b")})
UNREAD: Names = None


@pytest.mark.parametrize(
    ("before", "east", "west", "former"),
    [
        (None, NOT_HERE, NOT_HERE, None),
        (None, NOT_HERE, HERE, WEST),
        (None, UNREAD, NOT_HERE, None),
        (EAST, NOT_HERE, UNREAD, None),
        (EAST, UNREAD, NOT_HERE, EAST),
        (EAST, UNREAD, HERE, WEST),
    ],
)
def test_former_copy_is_where_it_is_seen_or_where_nobody_could_look(
    before: ClusterName | None, east: Names, west: Names, former: ClusterName | None
) -> None:
    one = queued_job("a", pods(1, {"cpu": "1"}), before=Placed(before) if before else None)
    found = find_former({one.ref: one}, {one.ref: JOB}, {(EAST, JOB): east, (WEST, JOB): west})
    assert found.get(one.ref) == former


def test_cluster_that_left_the_fleet_and_cannot_be_asked_is_not_waited_for() -> None:
    one = queued_job("a", pods(1, {"cpu": "1"}), before=Placed(EAST))
    assert find_former({one.ref: one}, {one.ref: JOB}, {(WEST, JOB): NOT_HERE}) == {}
