"""Objects that were there before the fleet keep what git does not name."""

import pytest

from reconciler.plan.model import Action, Change, Reason
from reconciler.state.manual_edits import CLIENT_SIDE
from reconciler.state.values import LAST_APPLIED
from tests.unit.plan.paper_clusters import QUEUE, PaperClusters, after_apply, change_in, parse, plan_of, read_manifest

LABELS = {"pod-security.kubernetes.io/enforce": "restricted", "kubernetes.io/metadata.name": "lab"}
ANNOTATIONS = {"scheduler.alpha.kubernetes.io/node-selector": "pool=a", LAST_APPLIED: "{}"}
MARKS = {"labels": LABELS, "annotations": ANNOTATIONS}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", **MARKS}}
FLEET = parse(
    QUEUE,
    "kind: Namespace\napiVersion: v1\nmetadata: {name: lab, labels: {team: lab}}\n",
)
KEPT = (
    "keeps labels that are not in git: pod-security.kubernetes.io/enforce",
    "keeps annotations that are not in git: scheduler.alpha.kubernetes.io/node-selector",
)


def adopted(clusters: PaperClusters, name: str) -> Change:
    return change_in(plan_of(FLEET, clusters), name)


@pytest.mark.parametrize("manager", [CLIENT_SIDE, "kubectl-create", "rancher"])
def test_adopted_namespace_keeps_what_git_does_not_name(manager: str) -> None:
    clusters = PaperClusters().holding(SPACE, manager=manager)
    change = adopted(clusters, "hub/Namespace/lab")
    assert (change.action, change.reason, change.is_taken_over) == (Action.UPDATE, Reason.ADOPTED, False)
    assert [field.path for field in change.fields] == ["metadata.labels.team"]
    assert change.notes == KEPT
    after = after_apply(change.manifest or {}, clusters.objects[change.ref])["metadata"]
    assert LABELS.items() <= after["labels"].items() and ANNOTATIONS.items() <= after["annotations"].items()


def test_adopted_queue_keeps_labels_and_loses_what_git_does_not_name_of_its_spec() -> None:
    queue = read_manifest(QUEUE.partition("---")[0])
    theirs = {
        **queue,
        "metadata": {"name": "night", **MARKS},
        "spec": {**queue["spec"], "fairSharing": {"weight": "2"}},
    }
    change = adopted(PaperClusters().holding(theirs, manager=CLIENT_SIDE), "hub/ClusterQueue/night")
    assert [field.path for field in change.fields] == ["spec.fairSharing"]
    assert (change.is_taken_over, change.notes) == (True, KEPT)


def test_adopted_object_of_another_kind_keeps_what_git_does_not_name() -> None:
    head = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: limits, namespace: lab}\n"
    spec = parse(QUEUE, f"{head}data: {{mine: '1'}}\n")
    theirs = {**read_manifest(head), "data": {"mine": "1", "theirs": "2"}}
    theirs["metadata"] = {**theirs["metadata"], **MARKS}
    clusters = PaperClusters().holding(theirs, manager=CLIENT_SIDE)
    change = change_in(plan_of(spec, clusters), "hub/ConfigMap/lab/limits")
    assert (change.reason, change.is_taken_over, change.fields) == (Reason.ADOPTED, False, ())
    assert change.notes[: len(KEPT)] == KEPT
    after = after_apply(change.manifest or {}, clusters.objects[change.ref])
    assert after["data"] == theirs["data"] and LABELS.items() <= after["metadata"]["labels"].items()


def test_label_of_a_namespace_that_git_drops_stays_where_a_user_holds_it_too() -> None:
    """It may have been there before the fleet, and decides about everything in the namespace."""
    mine = {**SPACE, "metadata": {"name": "lab", "labels": {"team": "lab"}}}
    clusters = PaperClusters().holding(mine, manager=CLIENT_SIDE)
    change = adopted(clusters, "hub/Namespace/lab")
    live = after_apply(change.manifest or {}, clusters.objects[change.ref])
    bare = parse(QUEUE, "kind: Namespace\napiVersion: v1\nmetadata: {name: lab}\n")
    (later,) = [
        one for one in plan_of(bare, PaperClusters({change.ref: live})).changes if str(one.ref) == "hub/Namespace/lab"
    ]
    assert (later.action, later.is_unshared, later.fields) == (Action.UPDATE, False, ())
    assert after_apply(later.manifest or {}, live)["metadata"]["labels"]["team"] == "lab"
