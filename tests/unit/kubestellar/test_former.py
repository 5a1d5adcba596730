"""Copies of jobs that lost their place, as clusters tell of them or do not."""

from datetime import timedelta

import pytest

from reconciler.kubestellar.model import Former, Listed, Placed, find_former
from reconciler.objects import ClusterName
from reconciler.spec.settings import JOB
from tests.unit.kubestellar.queued_jobs import EAST, NOW, WEST, pods, queued_job

HERE: Listed = ({"metadata": {"namespace": "team", "name": "a"}},)
NOT_HERE: Listed = ({"metadata": {"namespace": "team", "name": "b"}},)
UNREAD: Listed = "connection refused"


@pytest.mark.parametrize(
    ("before", "east", "west", "former"),
    [
        (None, NOT_HERE, NOT_HERE, None),
        (None, NOT_HERE, HERE, Former(WEST)),
        (None, UNREAD, NOT_HERE, None),
        (EAST, NOT_HERE, UNREAD, None),
        (EAST, UNREAD, NOT_HERE, Former(EAST, "it cannot be seen (connection refused)")),
        (EAST, UNREAD, HERE, Former(WEST)),
    ],
)
def test_former_copy_is_where_it_is_seen_or_where_no_answer_came(
    before: ClusterName | None, east: Listed, west: Listed, former: Former | None
) -> None:
    one = queued_job("a", pods(1, {"cpu": "1"}), before=Placed(before) if before else None)
    found = find_former({one.ref: one}, {one.ref: JOB}, {(EAST, JOB): east, (WEST, JOB): west}, NOW)
    assert found.get(one.ref) == former


def test_cluster_that_was_forgotten_is_not_waited_for() -> None:
    one = queued_job("a", pods(1, {"cpu": "1"}), before=Placed(EAST))
    assert find_former({one.ref: one}, {one.ref: JOB}, {(WEST, JOB): NOT_HERE}, NOW) == {}


@pytest.mark.parametrize(("seconds", "is_awaited"), [(0, True), (59, True), (61, False), (-30, True), (-3600, False)])
def test_copy_that_had_not_arrived_when_its_job_left_may_arrive_for_a_minute(seconds: int, *, is_awaited: bool) -> None:
    one = queued_job("a", pods(1, {"cpu": "1"}), before=Placed(EAST, NOW - timedelta(seconds=seconds)))
    found = find_former({one.ref: one}, {one.ref: JOB}, {(EAST, JOB): NOT_HERE}, NOW)
    late = Former(EAST, "it had not arrived yet when the job was taken back")
    assert found.get(one.ref) == (late if is_awaited else None)
    assert find_former({one.ref: one}, {one.ref: JOB}, {(EAST, JOB): HERE}, NOW) == {one.ref: Former(EAST)}
