"""What happens to one wanted object: whose it is, who else touched it, and what cannot be told."""

from typing import Any

import pytest

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.references import referrers
from reconciler.objects import Gap
from reconciler.plan.model import Action, Change, Reason, Refusal, Refused
from reconciler.plan.objects import PlanContext, decide
from reconciler.render.compute import compute_desired
from reconciler.spec.enums import Adopt, Conflicts, Policy
from reconciler.state.manual_edits import CLIENT_SIDE, PYTHON_CLIENT
from reconciler.state.model import Prediction
from tests.unit.plan.paper_clusters import (
    HUB,
    QUEUE,
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    predictions_of,
    read_manifest,
    view_of,
)
from tests.unit.state.server import entry_of, merged

NIGHT = "hub/ClusterQueue/night"
THEIRS = read_manifest(
    "kind: ClusterQueue\nmetadata: {name: night}\nspec: {namespaceSelector: {}, cohortName: other}\n"
)
SPEC = parse(QUEUE)


def decision_on(
    paper_clusters: PaperClusters, name: str = NIGHT, policy: Policy | None = None, **changed: Any
) -> Change | Refusal:
    """What is decided about one object of the clusters."""
    (cluster,) = SPEC.clusters
    view = view_of(SPEC, cluster, paper_clusters)
    predictions = {str(one.ref): one for one in predictions_of(SPEC, compute_desired(SPEC).objects, view)}
    context = PlanContext(policy or SPEC.fleet.policy, view, frozenset(referrers(paper_clusters.objects.values())))
    return decide(predictions[name]._replace(**changed), context)


def change_of(decided: Change | Refusal) -> Change:
    assert isinstance(decided, Change), decided
    return decided


def refusal_of(decided: Change | Refusal) -> Refusal:
    assert isinstance(decided, Refusal), decided
    return decided


@pytest.mark.parametrize("hand", ["kubectl", "kubectl-edit", "kubectl-client-side-apply", "k9s", "Lens", "headlamp"])
def test_decide_puts_right_what_a_hand_did(hand: str) -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, hand)
    change = change_of(decision_on(paper_clusters))
    assert (change.action, change.reason, change.is_forced) == (Action.UPDATE, Reason.CHANGED, True)
    assert [(field.path, field.owner) for field in change.fields] == [("spec.cohortName", hand)]


@pytest.mark.parametrize("manager", ["quota-tuner", "kueue", "my-kubectl", "flux"])
def test_decide_does_not_fight_a_program(manager: str) -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, manager)
    refusal = refusal_of(decision_on(paper_clusters))
    assert refusal.reason is Refused.CONTESTED
    assert f"spec.cohortName ({manager})" in refusal.problem


MARKS = {
    "argocd-controller": ("annotations", "argocd.argoproj.io/tracking-id"),
    "argocd-application-controller": ("labels", "app.kubernetes.io/instance"),
    "kustomize-controller": ("labels", "kustomize.toolkit.fluxcd.io/name"),
    "helm": ("annotations", "meta.helm.sh/release-name"),
}


@pytest.mark.parametrize("manager", MARKS)
def test_decide_does_not_fight_a_tool_whose_mark_is_on_the_object(manager: str) -> None:
    part, mark = MARKS[manager]
    edited = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, manager)
    refusal = refusal_of(decision_on(edited.patched(NIGHT, {"metadata": {part: {mark: "queues"}}})))
    assert refusal.reason is Refused.CONTESTED


@pytest.mark.parametrize("manager", MARKS)
def test_decide_changes_what_a_tool_wrote_that_has_left_the_object(manager: str) -> None:
    edited = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, manager)
    change = change_of(decision_on(edited))
    assert (change.action, change.reason, change.is_forced) == (Action.UPDATE, Reason.CHANGED, True)
    # Before the fleet has adopted the object, its fields belong to the tool.
    theirs = PaperClusters().holding(THEIRS).edited(NIGHT, {"spec": {"cohortName": "third"}}, manager)
    assert refusal_of(decision_on(theirs)).reason is Refused.UNADOPTED


def test_decide_takes_from_a_program_where_the_policy_says_so() -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "other"}}, "quota-tuner")
    change = change_of(decision_on(paper_clusters, policy=Policy(conflicts=Conflicts.TAKE)))
    assert (change.action, change.reason, change.is_forced) == (Action.UPDATE, Reason.TAKEN, True)


def test_decide_never_forces_without_a_conflict() -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": None}})
    assert not change_of(decision_on(paper_clusters)).is_forced


def test_decide_leaves_labels_that_the_fleet_does_not_name() -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"metadata": {"labels": {"team": "a"}}}, "quota-tuner")
    assert change_of(decision_on(paper_clusters)).action is Action.KEEP


@pytest.mark.parametrize(
    ("metadata", "claimant"),
    [
        ({"ownerReferences": [{"kind": "MasterQueue", "name": "main", "uid": "1"}]}, "MasterQueue main"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "app"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "queues"}}, "Flux"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "queues"}}, "Flux"),
        ({"annotations": {"meta.helm.sh/release-name": "queues"}}, "Helm"),
        ({"managedFields": [entry_of("argocd-controller", "Update", "v1", [("f:spec",)])]}, "Argo CD"),
        ({"managedFields": [entry_of("terraform", "Apply", "v1", [("f:spec",)])]}, "terraform"),
    ],
)
def test_decide_adopts_nothing_that_another_tool_claims(metadata: dict[str, Any], claimant: str) -> None:
    paper_clusters = PaperClusters().holding(THEIRS).patched(NIGHT, {"metadata": metadata})
    refusal = refusal_of(decision_on(paper_clusters))
    assert refusal.reason is Refused.UNADOPTED
    assert refusal.problem == f"{claimant} owns it; remove it there first, or set policy.adopt to always"
    taken = change_of(decision_on(paper_clusters, policy=Policy(adopt=Adopt.ALWAYS)))
    assert taken.action is Action.UPDATE


def test_decide_does_not_adopt_what_a_program_keeps_otherwise() -> None:
    """It only updates: nothing but the field that both want tells that it is there."""
    paper_clusters = PaperClusters().holding(THEIRS, manager="quota-tuner")
    refusal = refusal_of(decision_on(paper_clusters))
    assert refusal.reason is Refused.CONTESTED
    assert refusal.problem.startswith("spec.cohortName (quota-tuner); ")
    for policy in (Policy(Conflicts.TAKE), Policy(adopt=Adopt.ALWAYS)):
        taken = change_of(decision_on(paper_clusters, policy=policy))
        assert (taken.action, taken.reason, taken.is_forced) == (Action.UPDATE, Reason.TAKEN, True)


def test_decide_adopts_what_the_controller_of_its_own_document_kept_otherwise() -> None:
    (_, queue) = compute_desired(SPEC).objects
    owner = {"kind": queue.document.kind, "name": queue.document.name, "uid": "1"}
    paper_clusters = (
        PaperClusters()
        .holding(THEIRS, manager=PYTHON_CLIENT)
        .patched(NIGHT, {"metadata": {"ownerReferences": [owner]}})
    )
    change = change_of(decision_on(paper_clusters))
    assert (change.action, change.is_taken_over) == (Action.UPDATE, True)
    refusal = refusal_of(decision_on(PaperClusters().holding(THEIRS, manager=PYTHON_CLIENT)))
    assert refusal.reason is Refused.CONTESTED


@pytest.mark.parametrize(
    "entry",
    [
        entry_of("kubectl", "Apply", "v1", [("f:spec",)]),
        entry_of("kfleet", "Apply", "v1", [("f:spec",)]),
        entry_of("quota-tuner", "Update", "v1", [("f:spec",)]),
        {**entry_of("kueue", "Apply", "v1", [("f:status",)]), "subresource": "status"},
    ],
    ids=["by-hand", "our-own", "updater", "status"],
)
def test_decide_adopts_what_no_tool_claims(entry: dict[str, Any]) -> None:
    paper_clusters = PaperClusters().holding(THEIRS).patched(NIGHT, {"metadata": {"managedFields": [entry]}})
    change = change_of(decision_on(paper_clusters))
    assert change.action is Action.UPDATE


def test_decide_adopts_without_a_difference() -> None:
    (_, queue) = compute_desired(SPEC).objects
    change = change_of(decision_on(PaperClusters().holding(queue.manifest)))
    assert (change.action, change.reason, change.fields) == (Action.UPDATE, Reason.ADOPTED, ())
    assert change.notes == ("only labels are added",)


@pytest.mark.parametrize(("count", "note"), [(1, "1 workload runs on"), (2, "2 workloads run on")])
def test_decide_says_of_an_adopted_queue_that_its_workloads_run_on(count: int, note: str) -> None:
    (_, queue) = compute_desired(SPEC).objects
    live = PaperClusters().holding(queue.manifest).patched(NIGHT, {"status": {"reservingWorkloads": count}})
    assert change_of(decision_on(live)).notes == ("only labels are added", note)


@pytest.mark.parametrize("manager", ["kubectl-create", "terraform"])
def test_decide_adopts_nothing_where_the_policy_says_never(manager: str) -> None:
    refusal = refusal_of(
        decision_on(PaperClusters().holding(THEIRS, manager=manager), policy=Policy(adopt=Adopt.NEVER))
    )
    assert refusal.reason is Refused.UNADOPTED
    assert refusal.problem == "set policy.adopt to unowned, or delete the object"


@pytest.mark.parametrize("adopt", list(Adopt))
def test_decide_never_touches_a_member_of_another_applyset(adopt: Adopt) -> None:
    label = {"applyset.kubernetes.io/part-of": "applyset-other-v1"}
    paper_clusters = applied_clusters(SPEC).edited(
        NIGHT, {"metadata": {"labels": label}, "spec": {"cohortName": "other"}}
    )
    refusal = refusal_of(decision_on(paper_clusters, policy=Policy(Conflicts.TAKE, adopt)))
    assert refusal.reason is Refused.FOREIGN
    assert refusal.problem.startswith("applyset-other-v1, by its label") and "another name" in refusal.problem


def test_decide_writes_nothing_blindly() -> None:
    gap = Gap(HUB, "ClusterQueue.kueue.x-k8s.io", "503", kind=(GROUP, "ClusterQueue"))
    assert change_of(decision_on(PaperClusters(gaps=(gap,)))).action is Action.HOLD
    assert change_of(decision_on(PaperClusters(gaps=(gap,)), "hub/ResourceFlavor/cpu")).action is Action.CREATE


def test_decide_waits_for_an_object_that_is_being_deleted() -> None:
    ending = {"metadata": {"deletionTimestamp": "2026-01-31T12:00:00Z"}}
    settled = applied_clusters(SPEC).patched(NIGHT, ending)
    drifted = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "x"}}).patched(NIGHT, ending)
    for paper_clusters in (settled, drifted):
        change = change_of(decision_on(paper_clusters))
        assert (change.action, change.reason) == (Action.HOLD, Reason.ENDING)


def test_decide_makes_nothing_in_a_namespace_that_is_being_deleted() -> None:
    tenant = "kind: LocalQueue\nmetadata: {name: main, namespace: team}\nspec: {clusterQueue: night}\n"
    namespace = "kind: Namespace\napiVersion: v1\nmetadata: {name: team}\n"
    spec = parse(f"{namespace}---\n{tenant}")
    ending = {"metadata": {"deletionTimestamp": "2026-01-31T12:00:00Z"}}
    paper_clusters = applied_clusters(spec).without("hub/LocalQueue/team/main").patched("hub/Namespace/team", ending)
    found = {str(change.ref): (change.action, change.reason) for change in plan_of(spec, paper_clusters).changes}
    assert found == {
        "hub/Namespace/team": (Action.HOLD, Reason.ENDING),
        "hub/LocalQueue/team/main": (Action.HOLD, Reason.ENDING),
    }


def test_decide_records_what_another_version_wrote() -> None:
    paper_clusters = applied_clusters(SPEC)
    (entry,) = paper_clusters.objects[paper_clusters.find(NIGHT)]["metadata"]["managedFields"]
    old = [{**entry, "apiVersion": "kueue.x-k8s.io/v1beta1"}]
    change = change_of(decision_on(paper_clusters.patched(NIGHT, {"metadata": {"managedFields": old}})))
    assert (change.action, change.reason, change.fields) == (Action.UPDATE, Reason.UNRECORDED, ())


def test_decide_keeps_what_the_server_would_not_change() -> None:
    (cluster,) = SPEC.clusters
    view = view_of(SPEC, cluster, applied_clusters(SPEC))
    (prediction, _) = predictions_of(SPEC, compute_desired(SPEC).objects, view)
    asked = prediction._replace(is_settled=False, result=prediction.live)
    change = change_of(decide(asked, PlanContext(SPEC.fleet.policy, view, frozenset())))
    assert (change.action, change.reason) == (Action.KEEP, Reason.SAME)


def test_decide_refuses_an_update_that_the_server_refuses() -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "x"}})
    refusal = refusal_of(decision_on(paper_clusters, result=None, problem="spec: too long"))
    assert (refusal.reason, refusal.problem) == (Refused.INVALID, "spec: too long")


def test_decide_compares_statically_what_cannot_be_asked() -> None:
    paper_clusters = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "x", "stopPolicy": "Hold"}})
    change = change_of(decision_on(paper_clusters, result=None, conflicts=(), is_static=True))
    assert change.is_static
    assert [(field.path, field.old, field.new) for field in change.fields] == [
        ("spec.cohortName", "x", "science"),
        ("spec.stopPolicy", "Hold", "None"),
    ]


CHECK = "kind: AdmissionCheck\nmetadata: {name: far}\nspec: {controllerName: example.com/%s}\n"
CHECKED = "kind: ClusterQueue\nmetadata: {name: q}\nspec: {admissionChecksStrategy: {admissionChecks: [{name: far}]}}\n"


def test_decide_makes_an_unused_check_again() -> None:
    (change,) = plan_of(parse(CHECK % "new"), applied_clusters(parse(CHECK % "old"))).changes
    assert (change.action, change.reason) == (Action.REPLACE, Reason.IMMUTABLE)
    assert change.uid == "uid-of-AdmissionCheck-far"
    (field,) = change.fields
    assert (field.path, field.old, field.new) == ("spec.controllerName", "example.com/old", "example.com/new")


def test_decide_does_not_make_a_check_again_that_a_queue_uses() -> None:
    paper_clusters = applied_clusters(parse(CHECK % "old")).holding(read_manifest(CHECKED))
    plan = plan_of(parse(CHECK % "new"), paper_clusters)
    (refusal,) = plan.refusals
    assert refusal.reason is Refused.FIXED
    assert "spec.controllerName cannot change in place: add another AdmissionCheck with a new name" in refusal.problem
    assert not plan.writes


def test_decide_does_not_make_a_check_again_whose_queues_were_not_seen() -> None:
    paper_clusters = (
        applied_clusters(parse(CHECK % "old")).holding(read_manifest(CHECKED)).unseen("ClusterQueue.kueue.x-k8s.io")
    )
    (change,) = plan_of(parse(CHECK % "new"), paper_clusters).changes
    assert (change.action, change.reason) == (Action.HOLD, Reason.UNSEEN)


def test_decide_names_what_was_seen_and_what_is_wanted_by_their_content() -> None:
    paper_clusters = applied_clusters(SPEC)
    one = change_of(decision_on(paper_clusters.edited(NIGHT, {"spec": {"cohortName": "x"}})))
    same = change_of(decision_on(paper_clusters.edited(NIGHT, {"spec": {"cohortName": "x"}}, "k9s")))
    other = change_of(decision_on(paper_clusters.edited(NIGHT, {"spec": {"cohortName": "y"}})))
    assert (one.seen, one.wanted) == (same.seen, same.wanted)
    assert one.seen != other.seen and one.wanted == other.wanted


def test_prediction_has_the_identity_of_its_object() -> None:
    (flavor, _) = compute_desired(SPEC).objects
    assert Prediction(flavor, merged(flavor.manifest, {})).ref == flavor.ref


def test_fixed_field_that_git_does_not_name_is_refused_with_a_way_out() -> None:
    flavor = "kind: ResourceFlavor\nmetadata: {name: tas}\nspec: {topologyName: t, nodeLabels: {a: b}}\n"
    topology = "kind: Topology\nmetadata: {name: t}\nspec: {levels: [{nodeLabel: kubernetes.io/hostname}]}\n"
    tolerated = {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}}
    paper_clusters = applied_clusters(parse(flavor, topology)).edited("hub/ResourceFlavor/tas", tolerated, "somebody")
    (refusal,) = plan_of(parse(flavor, topology), paper_clusters).refusals
    assert refusal.reason is Refused.FIXED and refusal.problem.startswith("spec.tolerations cannot change in place")


def test_decide_says_that_it_takes_from_a_program_where_a_user_edited_the_object_too() -> None:
    quota = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": []}]}
    paper_clusters = (
        applied_clusters(SPEC)
        .edited(NIGHT, {"spec": {"cohortName": "other"}}, "kubectl-edit")
        .edited(NIGHT, {"spec": quota}, "quota-tuner")
    )
    change = change_of(decision_on(paper_clusters, policy=Policy(conflicts=Conflicts.TAKE)))
    assert (change.reason, change.is_forced) == (Reason.TAKEN, True)


def test_decide_takes_over_nothing_where_there_is_no_predecessor_or_the_object_is_ours() -> None:
    assert not change_of(decision_on(PaperClusters().holding(THEIRS))).is_taken_over
    assert change_of(decision_on(PaperClusters().holding(THEIRS, manager=CLIENT_SIDE))).is_taken_over
    ours = applied_clusters(SPEC).edited(NIGHT, {"spec": {"cohortName": "x", "stopPolicy": "Hold"}}, CLIENT_SIDE)
    change = change_of(decision_on(ours))
    assert (change.reason, change.is_taken_over) == (Reason.CHANGED, False)
