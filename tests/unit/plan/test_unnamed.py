"""Fields of Kueue's objects that git does not mention: they are as Kueue's defaults say, whoever set them otherwise."""

from typing import Any

import pytest

from reconciler.plan.model import Cause, Change, Plan, Reason, Refused
from reconciler.state.manual_edits import removals
from tests.unit.plan.paper_clusters import (
    HUB,
    POLICY,
    QUEUE,
    PaperClusters,
    applied_clusters,
    parse,
    plan_of,
    read_manifest,
)

NIGHT, DAY, CPU = "hub/ClusterQueue/night", "hub/LocalQueue/team/day", "hub/ResourceFlavor/cpu"
FLEET = f"""{QUEUE}---
kind: LocalQueue
metadata: {{name: day, namespace: team}}
spec: {{clusterQueue: night}}
---
kind: Cohort
metadata: {{name: science}}
spec: {{}}
"""
OLD = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: standalone, kueue: {version: '0.14'}}\n"


def plan_after(edit: dict[str, Any], name: str, manager: str = "kubectl-edit", *more: str) -> Plan:
    spec = parse(FLEET, *more)
    return plan_of(spec, applied_clusters(spec).edited(name, {"spec": edit}, manager))


def only_write(plan: Plan) -> Change:
    (change,) = plan.writes
    return change


DEFAULTED = [
    (NIGHT, {"stopPolicy": "Hold"}, "spec.stopPolicy", "None"),
    (NIGHT, {"queueingStrategy": "StrictFIFO"}, "spec.queueingStrategy", "BestEffortFIFO"),
    (NIGHT, {"preemption": {"withinClusterQueue": "Any"}}, "spec.preemption.withinClusterQueue", "Never"),
    (NIGHT, {"preemption": {"reclaimWithinCohort": "Any"}}, "spec.preemption.reclaimWithinCohort", "Never"),
    (DAY, {"stopPolicy": "HoldAndDrain"}, "spec.stopPolicy", "None"),
]
WITHOUT_DEFAULT = [
    (NIGHT, {"fairSharing": {"weight": "5"}}, "spec.fairSharing"),
    (NIGHT, {"admissionScope": {"admissionMode": "NoAdmissionFairSharing"}}, "spec.admissionScope"),
    (NIGHT, {"admissionChecksStrategy": {"admissionChecks": [{"name": "slow"}]}}, "spec.admissionChecksStrategy"),
    (NIGHT, {"flavorFungibility": {"preference": "PreemptionOverBorrowing"}}, "spec.flavorFungibility.preference"),
    (DAY, {"fairSharing": {"weight": "5"}}, "spec.fairSharing"),
    (CPU, {"nodeTaints": [{"key": "gpu", "effect": "NoSchedule"}]}, "spec.nodeTaints"),
    (CPU, {"nodeLabels": {"pool": "a"}}, "spec.nodeLabels"),
    (CPU, {"tolerations": [{"operator": "Exists"}]}, "spec.tolerations"),
    ("hub/Cohort/science", {"parentName": "all"}, "spec.parentName"),
]


@pytest.mark.parametrize("more", [(), (OLD,)], ids=["v1beta2", "v1beta1"])
@pytest.mark.parametrize(("name", "edit", "path", "default"), DEFAULTED)
def test_manual_edit_of_a_field_with_a_default_is_put_right(
    name: str, edit: dict[str, Any], path: str, default: str, more: tuple[str, ...]
) -> None:
    change = only_write(plan_after(edit, name, "kubectl-edit", *more))
    (field,) = change.fields
    assert (str(change.ref), change.is_forced, field.path, field.new) == (name, True, path, default)
    assert (field.cause, field.owner) == (Cause.DRIFT, "kubectl-edit")


@pytest.mark.parametrize(("name", "edit", "path"), WITHOUT_DEFAULT)
def test_manual_edit_of_a_field_without_a_default_is_removed(name: str, edit: dict[str, Any], path: str) -> None:
    change = only_write(plan_after(edit, name))
    (field,) = change.fields
    assert (str(change.ref), change.reason, field.path, field.new) == (name, Reason.CHANGED, path, None)
    assert (field.cause, field.owner) == (Cause.DRIFT, "kubectl-edit")


def test_field_that_an_older_version_calls_otherwise_is_removed_there_too() -> None:
    alone = parse(FLEET.replace("  cohortName: science\n", ""), OLD)
    change = only_write(plan_of(alone, applied_clusters(alone).edited(NIGHT, {"spec": {"cohort": "other"}})))
    assert [field.path for field in change.fields] == ["spec.cohort"]


@pytest.mark.parametrize(("name", "edit", "path"), [entry[:3] for entry in (*DEFAULTED, *WITHOUT_DEFAULT)])
def test_program_that_sets_such_a_field_is_named_and_refused(name: str, edit: dict[str, Any], path: str) -> None:
    plan = plan_after(edit, name, "tuner")
    (refusal,) = plan.refusals
    assert (refusal.reason, str(refusal.ref)) == (Refused.CONTESTED, name)
    assert f"{path} (tuner)" in refusal.problem and not plan.writes


def test_field_is_taken_from_a_program_where_the_policy_says_so() -> None:
    take = POLICY.replace("{prune:", "{conflicts: take, prune:")
    change = only_write(plan_after({"fairSharing": {"weight": "5"}}, DAY, "tuner", take))
    assert (change.reason, change.removed) == (Reason.TAKEN, (("f:spec", "f:fairSharing"),))


def test_field_that_git_comes_to_drop_is_a_change_of_git() -> None:
    said = parse(FLEET.replace("{clusterQueue: night}", "{clusterQueue: night, fairSharing: {weight: 5}}"))
    by_hand = applied_clusters(parse(FLEET)).edited(DAY, {"spec": {"fairSharing": {"weight": "5"}}})
    change = only_write(plan_of(parse(FLEET), applied_clusters(said, by_hand)))
    assert [(field.path, field.new, field.cause) for field in change.fields] == [("spec.fairSharing", None, Cause.SPEC)]


def test_item_that_a_user_added_to_a_list_with_keys_is_removed_alone() -> None:
    checks = {"admissionChecks": [{"name": "near"}, {"name": "slow"}, {"name": "far"}]}
    wanted = FLEET.replace(
        "  cohortName: science", "  admissionChecksStrategy: {admissionChecks: [{name: near}, {name: far}]}"
    )
    clusters = applied_clusters(parse(wanted)).edited(NIGHT, {"spec": {"admissionChecksStrategy": checks}})
    change = only_write(plan_of(parse(wanted), clusters))
    assert [field.path for field in change.fields] == ["spec.admissionChecksStrategy.admissionChecks[1]"]
    live = clusters.objects[clusters.find(NIGHT)]
    assert removals(live, change.removed) == [
        {"op": "remove", "path": "/spec/admissionChecksStrategy/admissionChecks/1"}
    ]
    moved = {**live, "spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "slow"}]}}}
    assert removals(moved, change.removed)[0]["path"].endswith("/0")
    assert not removals({**live, "spec": {}}, change.removed)


def test_last_items_of_a_list_are_removed_first() -> None:
    live = {"spec": {"items": [{"name": name} for name in "abcdefghijkl"]}}
    fields = [("f:spec", "f:items", f'k:{{"name":"{name}"}}') for name in "bkc"]
    assert [one["path"] for one in removals(live, fields)] == ["/spec/items/10", "/spec/items/2", "/spec/items/1"]


def test_field_that_no_release_of_kueue_has_is_left_alone() -> None:
    assert not plan_after({"newIdea": "x", "preemption": {"newIdea": "x"}}, NIGHT).writes


def test_field_of_a_created_object_that_git_does_not_name_goes_when_it_is_adopted() -> None:
    content = "spec: {clusterQueue: night, fairSharing: {weight: 9}}"
    theirs = read_manifest(f"kind: LocalQueue\nmetadata: {{name: day, namespace: team}}\n{content}\n")
    change = only_write(plan_of(parse(FLEET), without_local_queue().holding(theirs, cluster=HUB)))
    assert (change.reason, [field.path for field in change.fields]) == (Reason.ADOPTED, ["spec.fairSharing"])


def without_local_queue() -> PaperClusters:
    return applied_clusters(parse(FLEET)).without(DAY)


def test_objects_written_before_defaults_were_are_recorded_once() -> None:
    """As an older kfleet left them: the same values, and no owner of the defaults."""
    spec = parse(FLEET)
    clusters = applied_clusters(spec)
    live = clusters.objects[clusters.find(NIGHT)]
    (entry,) = live["metadata"]["managedFields"]
    tree = {**entry["fieldsV1"], "f:spec": {"f:cohortName": {}, "f:namespaceSelector": {}, "f:resourceGroups": {}}}
    older = clusters.patched(NIGHT, {"metadata": {"managedFields": [{**entry, "fieldsV1": tree}]}})
    change = only_write(plan_of(spec, older))
    assert (str(change.ref), change.reason, change.fields) == (NIGHT, Reason.UNRECORDED, ())
    assert not plan_of(spec, applied_clusters(spec, older)).writes
