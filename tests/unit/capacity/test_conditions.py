"""What an operator should know: who is silent, and where more is used than there is."""

from typing import Any

from reconciler.capacity.conditions import find_overcommit, find_silent
from reconciler.capacity.ledger import merge
from reconciler.capacity.model import CapacityLook
from reconciler.desired import compute_desired
from reconciler.objects import ClusterName, Ref
from reconciler.observed import FlavorPlace, Observations, UsePlace
from reconciler.pipeline.capacity import conditions_of
from tests.builders import queue, quota, spec_of
from tests.unit.capacity.ledgers import START, amounts, at, look, remembered, rules

EAST = ClusterName("east")


def quota_object(kind: str, name: str, cpu: str | None, **spec: Any) -> tuple[Ref, dict[str, Any]]:
    flavors = [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    groups = {"resourceGroups": [{"flavors": flavors}]} if cpu else {}
    return Ref(EAST, "kueue.x-k8s.io", kind, "", name), {"spec": {**groups, **spec}}


def used(queue: str, cpu: str) -> dict[UsePlace, Any]:
    return {UsePlace(EAST, queue, "a"): amounts(cpu=cpu)}


def test_usage_above_the_quota_of_a_lonely_queue_is_told() -> None:
    objects = [quota_object("ClusterQueue", "q", "4")]
    assert list(find_overcommit(objects, used("q", "4"))) == []
    (told,) = find_overcommit(objects, used("q", "5"))
    assert told.startswith("east: queue q: flavor a: 5 cpu are in use, the quota is 4")


def test_borrowing_is_no_overcommit() -> None:
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


def test_usage_of_a_flavor_without_any_quota_is_told() -> None:
    assert len(list(find_overcommit([quota_object("ClusterQueue", "q", None)], used("q", "1")))) == 1


def test_queue_of_others_is_not_judged() -> None:
    assert list(find_overcommit([], used("q", "5"))) == []


def test_silent_source_is_told_with_its_time() -> None:
    known = remembered()
    assert list(find_silent(known)) == []
    (told,) = find_silent(merge(known, look(at(300)), rules()))
    assert told.startswith("nats:4222/interlink.resources.cnaf: not seen since 2026-01-31T12:00:00+00:00")


def test_quota_that_was_not_seen_is_not_over_committed() -> None:
    flavor = "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: nodes}}\n"
    spec = spec_of(flavor, queue("q", quota("cpu", {"cpu": "100%"})))
    seen = CapacityLook(START, usage={UsePlace(EAST, "q", "cpu"): amounts(cpu=8)})
    assert conditions_of(compute_desired(spec, Observations(pools=())), seen) == ()
    none = {FlavorPlace(cluster.name, "cpu"): amounts(cpu=0) for cluster in spec.clusters}
    (condition,) = conditions_of(compute_desired(spec, Observations(none, pools=())), seen)
    assert "8 cpu are in use, the quota is 0" in condition
