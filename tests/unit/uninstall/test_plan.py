"""The plan that ends a fleet: what is released or deleted, what is refused, and why it has not ended yet."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.objects import ClusterName, Gap
from reconciler.plan.model import Action, ClusterOutcome, Outcome, Plan, Reason, Refused, Waiting
from reconciler.spec.model import FleetSpec
from reconciler.uninstall.plan import Ending, ending_plan, find_remarks, left_over, without_documents
from tests.unit.plan.paper_clusters import (
    HUB,
    HUB_AND_EAST,
    QUEUE,
    PaperClusters,
    applied_clusters,
    change_in,
    cluster_in,
    parse,
    plan_of,
    view_of,
)

EAST = ClusterName("east")
TWO = (
    *HUB_AND_EAST,
    QUEUE.replace("metadata: {name: cpu}", "metadata: {name: cpu, annotations: {kfleet.dev/clusters: all}}"),
)
NIGHT, CPU = "hub/ClusterQueue/night", "hub/ResourceFlavor/cpu"
USED = {"status": {"reservingWorkloads": 2, "flavorsReservation": [], "conditions": []}}


def end(spec: FleetSpec, clusters: PaperClusters, ending: Ending, confirmed: int | None = None) -> Plan:
    empty = without_documents(spec)
    views = [view_of(empty, cluster, clusters) for cluster in empty.clusters]
    return ending_plan(empty, plan_of(empty, clusters), views, ending, confirmed)


def actions(plan: Plan) -> Mapping[str, tuple[Action, Reason]]:
    return {str(change.ref): (change.action, change.reason) for change in plan.changes}


def test_release_changes_no_field() -> None:
    spec = parse(QUEUE)
    plan = end(spec, applied_clusters(spec), Ending.RELEASE)
    assert actions(plan) == dict.fromkeys((NIGHT, CPU), (Action.UPDATE, Reason.RELEASED))
    assert not plan.refusals and not any(change.fields for change in plan.changes)
    assert left_over(spec, plan, ()) == ()


def test_release_does_not_touch_what_others_wrote() -> None:
    spec = parse(QUEUE)
    other = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "gpu"}, "spec": {}}
    plan = end(spec, applied_clusters(spec).holding(other), Ending.RELEASE)
    assert set(actions(plan)) == {NIGHT, CPU}


def test_release_of_a_stopped_queue_says_that_it_stays_stopped() -> None:
    spec = parse(QUEUE)
    plan = end(spec, applied_clusters(spec).stopped(NIGHT, "Hold"), Ending.RELEASE)
    assert "stays stopped" in change_in(plan, NIGHT).notes[0]


def test_only_other_clusters_lose_their_inventory_with_their_objects() -> None:
    """That of the home cluster is deleted when nothing else is left."""
    spec = parse(*TWO)
    for ending in Ending:
        plan = end(spec, applied_clusters(spec), ending, confirmed=3)
        assert not plan.refusals
        assert {part.name: part.is_ending for part in plan.clusters} == {HUB: False, EAST: True}


def test_delete_wants_the_number_of_deletes_however_small_it_is() -> None:
    spec = parse(QUEUE)
    clusters = applied_clusters(spec)
    (refusal,) = end(spec, clusters, Ending.DELETE).refusals
    assert refusal.reason is Refused.TOO_MANY and refusal.problem.endswith("--confirm-deletes 2")
    (refusal,) = end(spec, clusters, Ending.DELETE, confirmed=1).refusals
    assert refusal.problem == "1 were confirmed, but there are 2; check the plan, then repeat with --confirm-deletes 2"
    plan = end(spec, clusters, Ending.DELETE, confirmed=2)
    assert actions(plan) == dict.fromkeys((NIGHT, CPU), (Action.DELETE, Reason.GONE))
    assert plan.refusals == () and left_over(spec, plan, ()) == ()


def test_delete_of_a_queue_in_use_waits() -> None:
    spec = parse(QUEUE)
    plan = end(spec, applied_clusters(spec).patched(NIGHT, USED), Ending.DELETE, confirmed=2)
    assert actions(plan)[NIGHT] == (Action.UPDATE, Reason.STOPPED)
    assert actions(plan)[CPU] == (Action.HOLD, Reason.IN_USE)
    assert left_over(spec, plan, ()) == (f"hub: 2 objects of the fleet cannot go yet: {CPU}: still in use",)


@pytest.mark.parametrize("ending", Ending)
def test_cluster_that_does_not_answer_keeps_what_it_has(ending: Ending) -> None:
    spec = parse(*TWO)
    clusters = replace(applied_clusters(spec), unreachable=frozenset({EAST}))
    plan = end(spec, clusters, ending, confirmed=2)
    assert {part.name for part in plan.clusters} == {HUB} and not plan.refusals
    left = left_over(spec, plan, [ClusterOutcome(HUB)])
    assert left == ("east: was not observed (the cluster: connection refused): what is there stays",)


@pytest.mark.parametrize("ending", Ending)
def test_kind_that_was_not_listed_keeps_the_inventory(ending: Ending) -> None:
    spec = parse(*TWO)
    clusters = applied_clusters(spec).unseen("ResourceFlavor.kueue.x-k8s.io", EAST)
    plan = end(spec, clusters, ending, confirmed=2)
    part = cluster_in(plan, EAST)
    assert not (part.is_ending or part.is_complete)
    (left,) = left_over(spec, plan, ())
    assert left.startswith("east: was not observed (ResourceFlavor.kueue.x-k8s.io: 403 forbidden)")


@pytest.mark.parametrize("ending", Ending)
def test_cluster_that_is_another_one_is_refused(ending: Ending) -> None:
    spec = parse(QUEUE)
    plan = end(spec, replace(applied_clusters(spec), uids={HUB: "another"}), ending, confirmed=2)
    assert [refusal.reason for refusal in plan.refusals] == [Refused.MOVED] and plan.is_refused(HUB)
    assert left_over(spec, plan, ())[0].startswith("hub: refused: its uid is another")


def test_suspended_fleet_releases_nothing() -> None:
    spec = parse(QUEUE)
    spec = replace(spec, fleet=replace(spec.fleet, suspend=True))
    plan = end(spec, applied_clusters(parse(QUEUE)), Ending.RELEASE)
    assert set(actions(plan).values()) == {(Action.HOLD, Reason.SUSPENDED)}
    assert left_over(spec, plan, ())


def test_what_failed_and_what_waits_is_left() -> None:
    spec = parse(QUEUE)
    plan = end(spec, applied_clusters(spec), Ending.DELETE, confirmed=2)
    failed = ClusterOutcome(HUB, (Outcome(change_in(plan, NIGHT).ref, Action.DELETE, "still there"),))
    assert left_over(spec, plan, [failed]) == ("hub: not all changes were made",)
    waiting = replace(plan, waiting=(Waiting(EAST, "1 of the manager's workloads still run there"),))
    assert left_over(spec, waiting, [ClusterOutcome(HUB)]) == ("east: 1 of the manager's workloads still run there",)


def test_gap_beside_objects_keeps_a_fleet_from_ending() -> None:
    spec = parse(QUEUE)
    plan = replace(end(spec, applied_clusters(spec), Ending.RELEASE), gaps=(Gap(HUB, "jobs", "timeout"),))
    assert left_over(spec, plan, ()) == ("hub: was not observed (jobs: timeout): what is there stays",)


def test_remarks_name_what_stays_and_what_to_end() -> None:
    namespace = "kind: Namespace\napiVersion: v1\nmetadata: {name: team, annotations: {kfleet.dev/clusters: all}}\n"
    spec = parse(QUEUE, namespace)
    views = [view_of(spec, cluster, applied_clusters(spec)) for cluster in spec.clusters]
    *rest, last = find_remarks(spec, views, Ending.DELETE)
    assert rest == ["no Namespace is deleted, nor what is in it: hub/Namespace/team"]
    assert last.startswith("end what still applies this fleet")
    assert find_remarks(spec, views, Ending.RELEASE) == (last,)
