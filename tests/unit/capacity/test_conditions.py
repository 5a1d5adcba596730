"""What an operator should know: who is silent, and where more is used than there is."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.capacity.ledger import merge
from reconciler.capacity.model import Condition, ObservedCapacity
from reconciler.capacity.quota import find_overcommit, find_silent, find_unobserved
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.render import Rendered, Snapshot
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import FlavorKey, Observations, UsageKey
from tests.builders import queue, quota, spec_of
from tests.unit.capacity.ledgers import BUS, NODES, POOL, START, amounts, at, look, remembered, rules, seen

EAST = ClusterName("east")


def quota_object(kind: str, name: str, cpu: str | None, **spec: Any) -> tuple[Ref, dict[str, Any]]:
    flavors = [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    groups = {"resourceGroups": [{"flavors": flavors}]} if cpu else {}
    return Ref(EAST, "kueue.x-k8s.io", kind, "", name), {"spec": {**groups, **spec}}


def used(queue: str, cpu: str) -> dict[UsageKey, Any]:
    return {UsageKey(EAST, queue, "a"): amounts(cpu=cpu)}


def test_usage_above_the_quota_of_a_lonely_queue_is_reported() -> None:
    objects = [quota_object("ClusterQueue", "q", "4")]
    assert list(find_overcommit(objects, used("q", "4"))) == []
    (told,) = find_overcommit(objects, used("q", "5"))
    assert told.startswith("east: queue q: flavor a: 5 cpu are in use, the quota is 4")


def test_borrowing_is_not_overcommit() -> None:
    objects = [
        quota_object("ClusterQueue", "q", "1", cohortName="c"),
        quota_object("ClusterQueue", "r", "9", cohortName="c"),
    ]
    assert list(find_overcommit(objects, used("q", "10"))) == []
    (told,) = find_overcommit(objects, used("q", "8") | used("r", "3"))
    assert told.startswith("east: cohort c: flavor a: 11 cpu are in use, the quota is 10")


def test_quota_of_a_cohort_counts_through_the_tree() -> None:
    objects = [
        quota_object("ClusterQueue", "q", "1", cohortName="low"),
        quota_object("Cohort", "low", None, parentName="top"),
        quota_object("Cohort", "top", "4"),
    ]
    assert list(find_overcommit(objects, used("q", "5"))) == []
    assert len(list(find_overcommit(objects, used("q", "6")))) == 1


def test_cycle_of_cohorts_ends() -> None:
    objects = [
        quota_object("ClusterQueue", "q", "1", cohortName="a"),
        quota_object("Cohort", "a", None, parentName="b"),
        quota_object("Cohort", "b", None, parentName="a"),
    ]
    assert len(list(find_overcommit(objects, used("q", "2")))) == 1


def test_usage_of_a_flavor_without_any_quota_is_reported() -> None:
    assert len(list(find_overcommit([quota_object("ClusterQueue", "q", None)], used("q", "1")))) == 1


def test_queue_of_others_is_not_checked() -> None:
    assert list(find_overcommit([], used("q", "5"))) == []


def test_silent_source_is_reported_with_its_time() -> None:
    known = remembered()
    assert list(find_silent(known)) == []
    (told,) = find_silent(merge(known, look(at(300)), rules()))
    assert told.startswith("nats:4222/interlink.resources.cnaf: not seen since 2026-01-31T12:00:00+00:00")


def test_what_is_not_observed_is_reported_with_its_time() -> None:
    known, policy = remembered(NODES), rules(source=NODES)
    assert list(find_unobserved(known, look(at(300), seen(NODES, at(300), 8)), policy)) == []
    later = look(at(300))
    assert list(find_unobserved(merge(known, later, policy), later, policy)) == [
        "east/cpu: not observed since 2026-01-31T12:00:00+00:00: its capacity stays as it was last seen"
    ]


@pytest.mark.parametrize(
    ("second", "listened", "is_reported"),
    [(300, 40, True), (300, 32, False), (300, 3600, False), (60, 40, False), (300, 0, False)],
)
def test_pool_that_was_not_listened_for_long_enough_is_reported(
    second: int, listened: int, *, is_reported: bool
) -> None:
    """A pool that is heard every half a minute, where a run of 40 s did not hear it: that may be chance."""
    once = look(at(second), listened={BUS: timedelta(seconds=listened)} if listened else {})
    told = list(find_unobserved(merge(remembered(), once, rules()), once, rules()))
    assert [one.partition(": its capacity stays until it was listened for over 65 s")[0] for one in told] == (
        [f"{POOL}: not seen since 2026-01-31T12:00:00+00:00, nor in 40 s of listening"] if is_reported else []
    )


def test_queues_that_may_preempt_what_runs_above_the_quota_are_named() -> None:
    def told(**preemption: str) -> str:
        reclaiming = quota_object("ClusterQueue", "r", "1", cohortName="c", preemption=preemption)
        elsewhere = quota_object("ClusterQueue", "s", "1", preemption={"reclaimWithinCohort": "Any"})
        objects = [quota_object("ClusterQueue", "q", "1", cohortName="c"), reclaiming, elsewhere]
        (found,) = find_overcommit(objects, used("q", "8"))
        return found

    for unable in ({}, {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}):
        assert told(**unable).endswith("nothing is evicted: no queue of the fleet there may preempt")
    for name in ("reclaimWithinCohort", "withinClusterQueue"):
        assert told(**{name: "LowerPriority"}).endswith("unless by preemption: r may preempt what runs there")


def test_quota_that_was_not_seen_is_not_over_committed() -> None:
    flavor = "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: nodes}}\n"
    spec = spec_of(flavor, queue("q", quota("cpu", {"cpu": "100%"})))
    known = ObservedCapacity(START, usage={UsageKey(EAST, "q", "cpu"): amounts(cpu=8)})

    def conditions(seen: Observations) -> tuple[Condition, ...]:
        return Rendered(desired=compute_desired(spec, seen), snapshot=Snapshot(spec=spec, capacity=known)).conditions

    assert conditions(Observations(pools=())) == ()
    none = {FlavorKey(cluster.name, "cpu"): amounts(cpu=0) for cluster in spec.clusters}
    (condition,) = conditions(Observations(none, pools=()))
    assert "8 cpu are in use, the quota is 0" in condition.text
