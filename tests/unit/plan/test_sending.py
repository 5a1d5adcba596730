"""A queue that shall send its jobs nowhere any more, on values: when it has to go on as it is."""

from dataclasses import replace

import pytest

from reconciler.plan.model import Action
from reconciler.spec.model import FleetSpec
from tests.unit.plan.paper_clusters import PaperClusters, applied_clusters, parse, plan_of

QUEUE = "hub/ClusterQueue/q"
CHECKS = "admissionChecksStrategy: {{admissionChecks: [{{name: {}}}]}}"
CHECK = """\
kind: AdmissionCheck
metadata: {{name: {name}}}
spec: {{controllerName: {controller}, parameters: {{apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: mk}}}}
---
"""
SENDING = "kueue.x-k8s.io/multikueue"


def sending_fleet(check: str = "", controller: str = SENDING) -> FleetSpec:
    checks = CHECKS.format(check) if check else ""
    queue = f"kind: ClusterQueue\nmetadata: {{name: q}}\nspec: {{namespaceSelector: {{}}, {checks}}}\n"
    return parse((CHECK.format(name=check, controller=controller) if check else "") + queue)


def busy(paper_clusters: PaperClusters, count: int) -> PaperClusters:
    return paper_clusters.patched(QUEUE, {"status": {"reservingWorkloads": count}})


def action_of(paper_clusters: PaperClusters) -> tuple[Action, bool]:
    """What happens to the queue, and whether the check behind it goes."""
    changes = {str(change.ref): change for change in plan_of(sending_fleet(), paper_clusters).changes}
    check = changes.get("hub/AdmissionCheck/mk")
    return changes[QUEUE].action, check is not None and check.action is Action.DELETE


@pytest.mark.parametrize(
    ("controller", "count", "found"),
    [
        (SENDING, 3, (Action.HOLD, False)),
        (SENDING, 0, (Action.UPDATE, True)),
        # A job that has passed another check needs it no more.
        ("kueue.x-k8s.io/provisioning-request", 3, (Action.UPDATE, True)),
    ],
)
def test_queue_keeps_its_check_while_jobs_run_on_workers(
    controller: str, count: int, found: tuple[Action, bool]
) -> None:
    before = sending_fleet("mk", controller)
    assert action_of(busy(applied_clusters(before), count)) == found


def test_check_that_could_not_be_seen_may_be_one_that_sends() -> None:
    paper_clusters = busy(applied_clusters(sending_fleet("mk")), 3)
    assert action_of(paper_clusters.unseen("AdmissionCheck.kueue.x-k8s.io"))[0] is Action.HOLD


@pytest.mark.parametrize(
    ("controller", "count", "action"),
    [
        # It would reject jobs that run here, because they were not made for it.
        (SENDING, 3, Action.HOLD),
        (SENDING, 0, Action.UPDATE),
        ("kueue.x-k8s.io/provisioning-request", 3, Action.UPDATE),
    ],
)
def test_queue_gets_no_check_of_multikueue_while_jobs_run_here(controller: str, count: int, action: Action) -> None:
    plan = plan_of(sending_fleet("mk", controller), busy(applied_clusters(sending_fleet()), count))
    changes = {str(change.ref): change for change in plan.changes}
    assert changes[QUEUE].action is action
    assert changes["hub/AdmissionCheck/mk"].action is Action.CREATE


def test_plan_counts_the_waiting_jobs_that_multikueue_rejects() -> None:
    waiting = applied_clusters(sending_fleet()).patched(QUEUE, {"status": {"pendingWorkloads": 4}})
    found = {str(change.ref): change.notes for change in plan_of(sending_fleet("mk"), waiting).changes}
    assert found[QUEUE] == (
        "4 workloads wait in it; MultiKueue rejects jobs that were created before: submit them again",
    )
    other = plan_of(sending_fleet("mk", "kueue.x-k8s.io/provisioning-request"), waiting)
    assert {str(change.ref): change.notes for change in other.changes}[QUEUE] == ()


def test_check_that_was_removed_by_hand_comes_back_while_its_jobs_run() -> None:
    fleet = sending_fleet("mk")
    edited = busy(applied_clusters(fleet), 3).edited(QUEUE, {"spec": {"admissionChecksStrategy": None}})
    changes = {str(change.ref): change for change in plan_of(fleet, edited).changes}
    assert changes[QUEUE].action is Action.UPDATE


def redirected(config: str, clusters: str) -> FleetSpec:
    """The queue's check stays, and points to a config of these clusters."""
    check = CHECK.format(name="mk", controller=SENDING).replace("name: mk}}", f"name: {config}}}}}")
    native = f"kind: MultiKueueConfig\nmetadata: {{name: {config}}}\nspec: {{clusters: {clusters}}}\n---\n"
    queue = f"kind: ClusterQueue\nmetadata: {{name: q}}\nspec: {{namespaceSelector: {{}}, {CHECKS.format('mk')}}}\n"
    return parse(native + check + queue)


@pytest.mark.parametrize(
    ("clusters", "count", "found"),
    [
        ("[east]", 3, Action.HOLD),
        ("[east, north, west]", 3, Action.UPDATE),
        ("[east]", 0, Action.UPDATE),
    ],
)
def test_check_keeps_its_config_while_jobs_run_on_workers_that_the_new_one_does_not_name(
    clusters: str, count: int, found: Action
) -> None:
    before, after = redirected("old", "[east, west]"), redirected("new", clusters)
    paper_clusters = busy(applied_clusters(after, applied_clusters(before)), count)
    check = applied_clusters(before).objects[paper_clusters.find("hub/AdmissionCheck/mk")]
    paper_clusters = replace(
        paper_clusters, objects={**paper_clusters.objects, paper_clusters.find("hub/AdmissionCheck/mk"): check}
    )
    changes = {str(change.ref): change.action for change in plan_of(after, paper_clusters).changes}
    assert changes["hub/AdmissionCheck/mk"] is found
    # What it points to stays with it.
    assert changes["hub/MultiKueueConfig/old"] is (Action.HOLD if found is Action.HOLD else Action.DELETE)


def test_check_waits_until_its_new_config_is_there() -> None:
    paper_clusters = busy(applied_clusters(redirected("old", "[east, west]")), 3)
    changes = {
        str(change.ref): change.action for change in plan_of(redirected("new", "[east, west]"), paper_clusters).changes
    }
    assert changes["hub/MultiKueueConfig/new"] is Action.CREATE
    assert changes["hub/AdmissionCheck/mk"] is Action.HOLD
    unseen = paper_clusters.unseen("ClusterQueue.kueue.x-k8s.io")
    held = {str(change.ref): change.action for change in plan_of(redirected("new", "[east, west]"), unseen).changes}
    assert held["hub/AdmissionCheck/mk"] is Action.HOLD


@pytest.mark.parametrize(
    ("controller", "config"), [("kueue.x-k8s.io/provisioning-request", "new"), (SENDING, "mk")], ids=["other", "same"]
)
def test_check_that_sends_jobs_nowhere_else_does_not_wait_for_what_could_not_be_seen(
    controller: str, config: str
) -> None:
    before = CHECK.format(name="far", controller=controller)
    after = before.replace("name: mk}", f"name: {config}}}").replace("{name: far}", "{name: far, labels: {team: a}}")
    paper_clusters = applied_clusters(parse(before)).unseen("Topology.kueue.x-k8s.io")
    (change,) = plan_of(parse(after), paper_clusters).changes
    assert change.action is Action.UPDATE
