"""Policies, transforms, checks and queues of KubeStellar in a plan, while jobs are still on workers."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.kueue.reading import at
from reconciler.multikueue.model import ConfigMembership, WorkerRemovals
from reconciler.objects import ClusterName, Manifest
from reconciler.plan.model import Action, Plan, Reason
from reconciler.snapshot.model import NOTHING_SEEN, ClosingQueue, Downsynced
from tests.builders import Document, cluster_document, labelled_flavor, main_tenant, queue, quota
from tests.unit.plan.paper_clusters import (
    HUB_AND_EAST,
    PaperClusters,
    applied_clusters,
    change_in,
    parse,
    plan_of,
    removed,
)

WEST = ClusterName("west")
POLICY, TRANSFORM = "hub/BindingPolicy/kfleet-west", "hub/CustomTransform/kfleet-jobs.batch"
QUEUE, CHECK, LOCAL = "hub/ClusterQueue/q", "hub/AdmissionCheck/kubestellar-q", "hub/LocalQueue/team/main"


def fleet_of(*clusters: Document, dispatch: str = "kubestellar", **more: Any) -> tuple[Document, ...]:
    flavor = labelled_flavor("cpu", {"cpu": 100})
    return (
        *clusters,
        flavor,
        queue("q", quota("cpu", {"cpu": 10}), dispatch=dispatch, **more),
        main_tenant("team", "q"),
    )


def before() -> PaperClusters:
    return applied_clusters(parse(*fleet_of(*HUB_AND_EAST, cluster_document("west"))))


def planned(paper: PaperClusters, seen: Downsynced, *documents: Document, gone: str = "") -> Plan:
    spec = parse(*documents)
    removals = WorkerRemovals(removed=(removed(spec, paper, gone),)) if gone else None
    return plan_of(spec, paper, removals=removals, seen=replace(NOTHING_SEEN, downsynced=seen))


def queue_of(paper: PaperClusters) -> Manifest:
    return paper.objects[paper.find(QUEUE)]


@pytest.mark.parametrize("documents", [fleet_of(*HUB_AND_EAST), fleet_of(*HUB_AND_EAST, dispatch="multikueue")])
def test_policy_goes_only_when_its_worker_was_seen_free(documents: tuple[Document, ...]) -> None:
    paper = before()
    kept = planned(paper, Downsynced({WEST: "2 jobs are there"}), *documents, gone="west")
    assert (change_in(kept, POLICY).action, change_in(kept, POLICY).reason) == (Action.HOLD, Reason.LEAVING)
    assert [str(one) for one in kept.waiting if one.cluster == WEST] == [
        "west: 2 jobs are there; its BindingPolicy and the fleet's objects there go when it is free of them"
    ]
    assert not any(one.is_ending for one in kept.clusters)
    free = planned(paper, Downsynced(), *documents, gone="west")
    assert change_in(free, POLICY).action is Action.DELETE


def test_worker_that_left_is_remembered_until_it_is_free() -> None:
    """Also where the fleet has nothing there but jobs."""
    documents = fleet_of(*HUB_AND_EAST)
    paper = before()
    empty = replace(
        paper,
        objects={ref: live for ref, live in paper.objects.items() if ref.cluster != WEST},
        inventories={name: one for name, one in paper.inventories.items() if name != WEST},
    )
    first = planned(empty, Downsynced(), *fleet_of(*HUB_AND_EAST, cluster_document("west")))
    memory = next(one.addresses for one in first.clusters if one.name == "hub")
    known = replace(empty.inventories[ClusterName("hub")], addresses=memory)
    empty = replace(empty, inventories={**empty.inventories, ClusterName("hub"): known})

    def remembered(seen: Downsynced) -> bool:
        plan = planned(empty, seen, *documents, gone="west")
        return "west" in next(one.addresses for one in plan.clusters if one.name == "hub")

    assert remembered(Downsynced({WEST: "1 job is there"}))
    assert not remembered(Downsynced())


def test_worker_that_kfleet_never_reached_is_remembered_for_the_jobs_that_kubestellar_brought_there() -> None:
    paper = replace(PaperClusters(), unreachable=frozenset({WEST}))
    plan = planned(paper, Downsynced(), *fleet_of(*HUB_AND_EAST, cluster_document("west")))
    assert "west" in next(one.addresses for one in plan.clusters if one.name == "hub")


def test_plan_says_how_to_forget_a_worker_that_left_and_cannot_be_seen() -> None:
    paper = replace(before(), unreachable=frozenset({WEST}))
    plan = planned(paper, Downsynced({WEST: "it cannot be seen"}), *fleet_of(*HUB_AND_EAST), gone="west")
    (said,) = (one.why for one in plan.waiting if one.cluster == WEST)
    assert "it cannot be seen" in said and "To drop it for good, run on hub: kubectl" in said
    assert change_in(plan, POLICY).action is Action.HOLD


@pytest.mark.parametrize("dispatch", ["multikueue", "none"])
def test_transforms_check_and_local_queues_stay_while_a_queue_closes(dispatch: str) -> None:
    paper = before()
    closing = Downsynced({WEST: "1 job is there"}, (ClosingQueue(queue_of(paper), 1, 1),))
    plan = planned(paper, closing, *fleet_of(*HUB_AND_EAST, cluster_document("west"), dispatch=dispatch))
    assert {change_in(plan, name).action for name in (POLICY, TRANSFORM, CHECK, LOCAL)} <= {Action.HOLD, Action.KEEP}
    held = change_in(plan, QUEUE)
    assert held.action is Action.UPDATE
    assert "namespaceSelector" not in (held.manifest or {})["spec"]
    assert at(held.manifest, "spec", "admissionChecksStrategy", "admissionChecks") == [{"name": "kubestellar-q"}]
    (said,) = (one.why for one in plan.waiting if one.cluster == "hub")
    assert said.startswith("queue q: it changes when its jobs on workers have ended and their copies are gone, now 1;")


@pytest.mark.parametrize(
    ("downsynced", "more", "policy"),
    [(1, {}, "None"), (1, {"drainOnDelete": True}, "HoldAndDrain"), (1, {"stopPolicy": "HoldAndDrain"}, "HoldAndDrain"),
     (0, {}, "Hold")],
)  # fmt: skip
def test_queue_that_closes_is_stopped_when_its_jobs_have_ended_or_shall_be_evicted(
    downsynced: int, more: dict[str, Any], policy: str
) -> None:
    paper = before()
    closing = Downsynced(closing=(ClosingQueue(queue_of(paper), downsynced, 1),))
    documents = fleet_of(*HUB_AND_EAST, cluster_document("west"), dispatch="multikueue", **more)
    assert at(change_in(planned(paper, closing, *documents), QUEUE).manifest, "spec", "stopPolicy") == policy


@pytest.mark.parametrize(("dispatch", "is_said"), [("multikueue", True), ("none", False)])
def test_plan_counts_the_waiting_jobs_that_multikueue_will_reject(dispatch: str, *, is_said: bool) -> None:
    paper = before().patched(QUEUE, {"status": {"pendingWorkloads": 2}})
    closing = Downsynced(closing=(ClosingQueue(queue_of(paper), 1, 1),))
    plan = planned(paper, closing, *fleet_of(*HUB_AND_EAST, cluster_document("west"), dispatch=dispatch))
    (said,) = (one.why for one in plan.waiting if one.cluster == "hub")
    assert ("2 that wait in it have to be submitted again then" in said) is is_said


def test_queue_changes_when_nothing_of_it_is_left() -> None:
    documents = fleet_of(*HUB_AND_EAST, cluster_document("west"), dispatch="multikueue")
    plan = planned(before(), Downsynced(), *documents)
    checks = at(change_in(plan, QUEUE).manifest, "spec", "admissionChecksStrategy", "admissionChecks")
    assert checks == [{"name": "multikueue-q"}]
    assert change_in(plan, TRANSFORM).action is Action.DELETE


@pytest.mark.parametrize(
    ("memberships", "reserving", "selector", "policy"),
    [
        ([(1, True)], 1, None, "None"),
        ([(0, True), (0, False)], 1, None, "None"),
        ([(None, True)], 0, None, "None"),
        ([(0, True)], 1, {}, "Hold"),
        ([], 0, {}, "Hold"),
    ],
)
def test_queue_of_multikueue_is_closed_until_its_workers_are_free(
    memberships: list[tuple[int | None, bool]], reserving: int, selector: Any, policy: str
) -> None:
    """Its workers take no new jobs: one that it would let in could start nowhere."""
    paper, documents = going_over()
    closing = Downsynced(closing=(ClosingQueue(queue_of(paper), reserving=reserving, is_sending=True),))
    plan = plan_of(
        parse(*documents), paper, removals=removals_of(memberships), seen=replace(NOTHING_SEEN, downsynced=closing)
    )
    found = change_in(plan, QUEUE).manifest or queue_of(paper)
    assert at(found, "spec", "admissionChecksStrategy", "admissionChecks") == [{"name": "multikueue-q"}]
    assert (at(found, "spec", "stopPolicy"), at(found, "spec", "namespaceSelector") is None) == (
        policy,
        selector is None,
    )
    assert "queue q: " in next(one.why for one in plan.waiting if one.cluster == "hub")


def going_over() -> tuple[PaperClusters, tuple[Document, ...]]:
    clusters = (*HUB_AND_EAST, cluster_document("west"))
    paper = applied_clusters(parse(*fleet_of(*clusters, dispatch="multikueue")))
    return paper, fleet_of(*clusters)


def removals_of(memberships: list[tuple[int | None, bool]]) -> WorkerRemovals:
    names = [ClusterName("east"), WEST]
    return WorkerRemovals(
        tuple(
            ConfigMembership("multikueue-q", name, running, is_held=is_held, is_busy=True)
            for name, (running, is_held) in zip(names, memberships, strict=False)
        )
    )


def test_queue_of_multikueue_goes_over_when_it_is_stopped_and_nothing_of_it_is_left() -> None:
    paper, documents = going_over()
    stopped = {"conditions": [{"type": "Active", "status": "False", "observedGeneration": 1}]}
    live = {**queue_of(paper), "status": stopped, "spec": {**queue_of(paper)["spec"], "stopPolicy": "Hold"}}
    live["metadata"] = {**live["metadata"], "generation": 1}
    closing = Downsynced(closing=(ClosingQueue(live, is_sending=True),))
    plan = plan_of(parse(*documents), paper, removals=WorkerRemovals(), seen=replace(NOTHING_SEEN, downsynced=closing))
    found = change_in(plan, QUEUE).manifest
    assert at(found, "spec", "admissionChecksStrategy", "admissionChecks") == [{"name": "kubestellar-q"}]
    assert at(found, "spec", "stopPolicy") == "None" and plan.waiting == ()


def test_queue_keeps_its_check_while_quota_is_held_also_where_its_jobs_were_not_seen() -> None:
    paper = before().patched(QUEUE, {"status": {"reservingWorkloads": 3}})
    documents = fleet_of(*HUB_AND_EAST, cluster_document("west"), dispatch="multikueue")
    plan = planned(paper, Downsynced(problem="403 forbidden"), *documents)
    assert (change_in(plan, QUEUE).action, change_in(plan, QUEUE).reason) == (Action.HOLD, Reason.IN_USE)
    assert {change_in(plan, name).action for name in (POLICY, TRANSFORM)} == {Action.HOLD}
    assert plan.waiting == ()
    more = queue("other", quota("cpu", {"cpu": 1}), dispatch="kubestellar")
    plan = planned(paper, Downsynced(problem="403 forbidden"), *documents, more)
    assert "its jobs could not be seen" in next(one.why for one in plan.waiting if one.cluster == "hub")


@pytest.mark.parametrize("count", [2, 0])
def test_local_queue_whose_jobs_run_on_workers_is_neither_stopped_nor_deleted(count: int) -> None:
    """Kueue would take the quota of its jobs, which are reserved and never Admitted, and kfleet would end them."""
    paper = before().patched(LOCAL, {"status": {"reservingWorkloads": count}})
    clusters = (*HUB_AND_EAST, cluster_document("west"))
    change = change_in(planned(paper, Downsynced(), *fleet_of(*clusters)[:-1]), LOCAL)
    assert (change.action, change.reason) == ((Action.HOLD, Reason.IN_USE) if count else (Action.DELETE, Reason.GONE))
    if count:
        why = "2 workloads that KubeStellar runs on workers hold its quota, and would end with it"
        assert change.notes == (f"{why}; it is deleted when they have ended",)


@pytest.mark.parametrize(("count", "action"), [(2, Action.HOLD), (0, Action.REPLACE)])
def test_local_queue_whose_jobs_run_on_workers_does_not_move_to_another_queue(count: int, action: Action) -> None:
    paper = before().patched(LOCAL, {"status": {"reservingWorkloads": count}})
    clusters = (*HUB_AND_EAST, cluster_document("west"))
    other = queue("other", quota("cpu", {"cpu": 1}), dispatch="kubestellar")
    documents = (*fleet_of(*clusters)[:-1], other, main_tenant("team", "other"))
    assert change_in(planned(paper, Downsynced(), *documents), LOCAL).action is action


def test_local_queue_of_a_queue_without_kubestellar_is_stopped() -> None:
    clusters = (*HUB_AND_EAST, cluster_document("west"))
    paper = applied_clusters(parse(*fleet_of(*clusters, dispatch="multikueue")))
    paper = paper.patched(LOCAL, {"status": {"reservingWorkloads": 2}})
    change = change_in(planned(paper, Downsynced(), *fleet_of(*clusters, dispatch="multikueue")[:-1]), LOCAL)
    assert (change.action, change.reason) == (Action.UPDATE, Reason.STOPPED)
