from typing import Any

from reconciler.ownership.fields import applied_by
from reconciler.ownership.takeover import CLIENT_SIDE, abandoned_fields, moved_fields, predecessor_of
from tests.ownership.server import applied, edited, merged

KUEUE = "kueue.x-k8s.io/v1beta2"
SHELL = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "night"}}
THEIRS: dict[str, Any] = {
    **SHELL,
    "metadata": {"name": "night", "labels": {"team": "a"}},
    "spec": {
        "cohortName": "science",
        "stopPolicy": "Hold",
        "admissionChecksStrategy": {"admissionChecks": [{"name": "near"}, {"name": "far", "onFlavors": ["cpu"]}]},
    },
}
OURS: dict[str, Any] = {
    **SHELL,
    "spec": {"cohortName": "other", "admissionChecksStrategy": {"admissionChecks": [{"name": "far"}]}},
}
LIVE = edited(SHELL, THEIRS, CLIENT_SIDE)


def test_abandoned_fields_are_those_of_kubectl_that_the_fleet_does_not_name() -> None:
    checks = ("spec", "admissionChecksStrategy", "admissionChecks")
    assert dict(abandoned_fields(LIVE, OURS)) == {
        ("metadata", "labels"): {"team": "a"},
        ("spec", "stopPolicy"): "Hold",
        (*checks, 0): {"name": "near"},
        (*checks, 1, "onFlavors"): ["cpu"],
    }


def test_abandoned_fields_are_none_without_client_side_apply() -> None:
    assert not list(abandoned_fields(edited(SHELL, THEIRS, "kubectl-create"), OURS))


def test_predecessor_is_no_entry_of_a_subresource() -> None:
    (entry,) = LIVE["metadata"]["managedFields"]
    assert predecessor_of(LIVE) is not None
    on_status = merged(LIVE, {"metadata": {"managedFields": [{**entry, "subresource": "status"}]}})
    assert predecessor_of(on_status) is None


def test_moved_fields_let_the_next_apply_remove_what_is_abandoned() -> None:
    moved = merged(LIVE, {"metadata": {"managedFields": moved_fields(LIVE, "kfleet")}})
    assert predecessor_of(moved) is None
    after = applied(OURS, moved).manifest
    assert after["spec"]["stopPolicy"] == "None"
    assert after["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "far"}]}
    assert "labels" not in after["metadata"]


def test_moved_fields_join_what_the_manager_owned_before() -> None:
    both = edited(applied(OURS).manifest, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    moved = merged(both, {"metadata": {"managedFields": moved_fields(both, "kfleet")}})
    owner = applied_by(moved, "kfleet")
    assert owner is not None and {"f:stopPolicy", "f:cohortName"} <= owner.tree["f:spec"].keys()
    assert len(moved["metadata"]["managedFields"]) == 1


def test_moved_fields_keep_the_entries_of_others() -> None:
    shared = edited(LIVE, {"metadata": {"labels": {"note": "mine"}}}, "somebody")
    moved = moved_fields(shared, "kfleet")
    assert moved is not None
    assert [entry["manager"] for entry in moved] == ["somebody", "kfleet"]


def test_moved_fields_are_none_where_there_is_nothing_to_move_or_versions_differ() -> None:
    assert moved_fields(applied(OURS).manifest, "kfleet") is None
    both = edited(applied(OURS).manifest, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    mine, theirs = both["metadata"]["managedFields"]
    old = {**mine, "apiVersion": "kueue.x-k8s.io/v1beta1"}
    assert moved_fields(merged(both, {"metadata": {"managedFields": [old, theirs]}}), "kfleet") is None
