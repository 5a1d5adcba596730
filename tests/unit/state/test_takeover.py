from typing import Any

from reconciler.state.managed_fields import applied_by, owners_at
from reconciler.state.manual_edits import CLIENT_SIDE, PYTHON_CLIENT, abandoned_fields, moved_fields, predecessor_of
from reconciler.state.values import LAST_APPLIED
from tests.unit.state.server import applied, edited, entry_of, merged

KUEUE = "kueue.x-k8s.io/v1beta2"
OLD_KUEUE = "kueue.x-k8s.io/v1beta1"
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
# The same object, where kubectl has written some of it in the words of that time.
OLD = merged(
    {**THEIRS, "spec": {**THEIRS["spec"], "stopPolicy": "None"}},
    {
        "metadata": {
            "labels": None,
            "managedFields": [
                entry_of(CLIENT_SIDE, "Update", OLD_KUEUE, [("f:spec", "f:cohort"), ("f:spec", "f:admissionChecks")])
            ],
        }
    },
)


def test_abandoned_fields_are_those_of_kubectl_that_the_fleet_does_not_name() -> None:
    checks = ("spec", "admissionChecksStrategy", "admissionChecks")
    assert dict(abandoned_fields(LIVE, OURS)) == {
        ("spec", "stopPolicy"): "Hold",
        (*checks, 0): {"name": "near"},
        (*checks, 1, "onFlavors"): ["cpu"],
    }


def test_abandoned_fields_are_none_without_client_side_apply() -> None:
    assert not list(abandoned_fields(edited(SHELL, THEIRS, "kubectl-create"), OURS))


def test_predecessor_is_not_an_entry_of_a_subresource() -> None:
    (entry,) = LIVE["metadata"]["managedFields"]
    assert predecessor_of(LIVE) == CLIENT_SIDE
    on_status = merged(LIVE, {"metadata": {"managedFields": [{**entry, "subresource": "status"}]}})
    assert not predecessor_of(on_status)


def test_moved_fields_let_the_next_apply_remove_what_is_abandoned() -> None:
    moved = merged(LIVE, {"metadata": {"managedFields": moved_fields(LIVE, OURS, "kfleet")}})
    after = applied(OURS, moved).manifest
    assert after["spec"]["stopPolicy"] == "None"
    assert after["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "far"}]}


def test_moved_fields_leave_labels_that_git_does_not_name_to_whom_they_belong() -> None:
    record = {"metadata": {"annotations": {LAST_APPLIED: "{}", "note": "mine"}}}
    live = edited(LIVE, record, CLIENT_SIDE)
    ours = {**OURS, "metadata": {"name": "night", "annotations": {"note": "ours"}}}
    moved = merged(live, {"metadata": {"managedFields": moved_fields(live, ours, "kfleet")}})
    assert owners_at(moved, ("metadata", "labels", "team"), but="") == (CLIENT_SIDE,)
    assert owners_at(moved, ("metadata", "annotations", "note"), but="") == ("kfleet",)
    after = applied(ours, moved).manifest["metadata"]
    assert (after["labels"], after["annotations"]) == ({"team": "a"}, {"note": "ours"})
    named = {**OURS, "metadata": {"name": "night", "labels": {"team": "b"}}}
    assert not predecessor_of(merged(LIVE, {"metadata": {"managedFields": moved_fields(LIVE, named, "kfleet")}}))


def test_moved_fields_join_what_the_manager_owned_before() -> None:
    both = edited(applied(OURS).manifest, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    moved = merged(both, {"metadata": {"managedFields": moved_fields(both, OURS, "kfleet")}})
    owner = applied_by(moved, "kfleet")
    assert owner is not None and {"f:stopPolicy", "f:cohortName"} <= owner.tree["f:spec"].keys()
    assert len(moved["metadata"]["managedFields"]) == 1


def test_moved_fields_keep_the_entries_of_others() -> None:
    shared = edited(LIVE, {"metadata": {"labels": {"note": "mine"}}}, "somebody")
    moved = moved_fields(shared, OURS, "kfleet")
    assert moved is not None
    assert [entry["manager"] for entry in moved] == ["somebody", CLIENT_SIDE, "kfleet"]


def test_abandoned_fields_of_an_entry_in_an_older_version() -> None:
    checks = ("spec", "admissionChecksStrategy", "admissionChecks")
    assert dict(abandoned_fields(OLD, OURS)) == {(*checks, 0): {"name": "near"}, (*checks, 1, "onFlavors"): ["cpu"]}
    assert dict(abandoned_fields(OLD, {**SHELL, "spec": {}})) == {
        ("spec", "cohortName"): "science",
        ("spec", "admissionChecksStrategy"): THEIRS["spec"]["admissionChecksStrategy"],
    }


def test_abandoned_fields_of_another_place_in_an_older_version() -> None:
    location = {"location": "east", "locationType": "Secret"}
    shell = {"apiVersion": KUEUE, "kind": "MultiKueueCluster", "metadata": {"name": "east"}}
    live = {**shell, "spec": {"clusterSource": {"kubeConfig": location}}}
    entry = entry_of(CLIENT_SIDE, "Update", OLD_KUEUE, [("f:spec", "f:kubeConfig", "f:location")])
    live = merged(live, {"metadata": {"managedFields": [entry]}})
    wanted = {**shell, "spec": {"clusterSource": {"clusterProfileRef": {"name": "east"}}}}
    assert dict(abandoned_fields(live, wanted)) == {("spec", "clusterSource", "kubeConfig"): location}


def test_moved_fields_are_those_of_all_entries_whatever_their_version() -> None:
    both = edited(OLD, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    assert len(both["metadata"]["managedFields"]) == 2
    moved = merged(both, {"metadata": {"managedFields": moved_fields(both, OURS, "kfleet")}})
    (entry,) = moved["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("kfleet", "Apply", KUEUE)
    after = applied(OURS, moved).manifest["spec"]
    assert (after["cohortName"], after["stopPolicy"]) == ("other", "None")
    assert after["admissionChecksStrategy"] == {"admissionChecks": [{"name": "far"}]}


def test_moved_fields_join_what_the_manager_owned_in_an_older_version() -> None:
    both = edited(applied(OURS).manifest, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    _, theirs = both["metadata"]["managedFields"]
    old = entry_of("kfleet", "Apply", OLD_KUEUE, [("f:spec", "f:cohort")])
    moved = moved_fields(merged(both, {"metadata": {"managedFields": [old, theirs]}}), OURS, "kfleet")
    assert moved is not None
    (entry,) = moved
    assert entry["fieldsV1"] == {"f:spec": {"f:cohortName": {}, "f:stopPolicy": {}}}


def test_moved_fields_are_none_where_there_is_nothing_to_move_or_versions_differ() -> None:
    assert moved_fields(applied(OURS).manifest, OURS, "kfleet") is None
    mine = entry_of("kfleet", "Apply", "example.com/v1", [("f:spec", "f:size")])
    theirs = entry_of(CLIENT_SIDE, "Update", "example.com/v2", [("f:spec", "f:size")])
    live = {"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"managedFields": [mine, theirs]}}
    assert moved_fields(live, OURS, "kfleet") is None


def test_moved_fields_are_only_those_of_one_predecessor() -> None:
    """A script may go on to write what it wrote."""
    shared = edited(LIVE, {"spec": {"queueingStrategy": "StrictFIFO"}}, PYTHON_CLIENT)
    moved = moved_fields(shared, OURS, "kfleet")
    assert moved is not None
    assert [entry["manager"] for entry in moved] == [PYTHON_CLIENT, CLIENT_SIDE, "kfleet"]


def test_empty_spec_stays_with_its_owner() -> None:
    """Without one the API server would remove it, and count that as a change of the object."""
    metadata: dict[str, Any] = {"name": "cpu", "labels": {"team": "a"}}
    wanted: dict[str, Any] = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": metadata}
    entry = entry_of(CLIENT_SIDE, "Update", KUEUE, [("f:metadata", "f:labels", "f:team"), ("f:spec",)])
    live = {**wanted, "spec": {}, "metadata": {**metadata, "managedFields": [entry]}}
    assert list(abandoned_fields(live, wanted)) == []
    moved = moved_fields(live, wanted, "kfleet")
    assert moved is not None
    assert {one["manager"]: one["fieldsV1"] for one in moved} == {
        CLIENT_SIDE: {"f:spec": {}},
        "kfleet": {"f:metadata": {"f:labels": {"f:team": {}}}},
    }
