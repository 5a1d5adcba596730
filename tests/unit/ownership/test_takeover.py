from typing import Any

from reconciler.ownership.fields import applied_by
from reconciler.ownership.takeover import CLIENT_SIDE, PYTHON_CLIENT, abandoned_fields, moved_fields, predecessor_of
from tests.unit.ownership.server import applied, edited, entry_of, merged

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
        ("metadata", "labels"): {"team": "a"},
        ("spec", "stopPolicy"): "Hold",
        (*checks, 0): {"name": "near"},
        (*checks, 1, "onFlavors"): ["cpu"],
    }


def test_abandoned_fields_are_none_without_client_side_apply() -> None:
    assert not list(abandoned_fields(edited(SHELL, THEIRS, "kubectl-create"), OURS))


def test_predecessor_is_no_entry_of_a_subresource() -> None:
    (entry,) = LIVE["metadata"]["managedFields"]
    assert predecessor_of(LIVE) == CLIENT_SIDE
    on_status = merged(LIVE, {"metadata": {"managedFields": [{**entry, "subresource": "status"}]}})
    assert not predecessor_of(on_status)


def test_moved_fields_let_the_next_apply_remove_what_is_abandoned() -> None:
    moved = merged(LIVE, {"metadata": {"managedFields": moved_fields(LIVE, "kfleet")}})
    assert not predecessor_of(moved)
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
    moved = merged(both, {"metadata": {"managedFields": moved_fields(both, "kfleet")}})
    (entry,) = moved["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("kfleet", "Apply", KUEUE)
    after = applied(OURS, moved).manifest["spec"]
    assert (after["cohortName"], after["stopPolicy"]) == ("other", "None")
    assert after["admissionChecksStrategy"] == {"admissionChecks": [{"name": "far"}]}


def test_moved_fields_join_what_the_manager_owned_in_an_older_version() -> None:
    both = edited(applied(OURS).manifest, {"spec": {"stopPolicy": "Hold"}}, CLIENT_SIDE)
    _, theirs = both["metadata"]["managedFields"]
    old = entry_of("kfleet", "Apply", OLD_KUEUE, [("f:spec", "f:cohort")])
    moved = moved_fields(merged(both, {"metadata": {"managedFields": [old, theirs]}}), "kfleet")
    assert moved is not None
    (entry,) = moved
    assert entry["fieldsV1"] == {"f:spec": {"f:cohortName": {}, "f:stopPolicy": {}}}


def test_moved_fields_are_none_where_there_is_nothing_to_move_or_versions_differ() -> None:
    assert moved_fields(applied(OURS).manifest, "kfleet") is None
    mine = entry_of("kfleet", "Apply", "example.com/v1", [("f:spec", "f:size")])
    theirs = entry_of(CLIENT_SIDE, "Update", "example.com/v2", [("f:spec", "f:size")])
    live = {"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"managedFields": [mine, theirs]}}
    assert moved_fields(live, "kfleet") is None


def test_moved_fields_are_only_those_of_one_predecessor() -> None:
    """A script may go on to write what it wrote."""
    shared = edited(LIVE, {"spec": {"queueingStrategy": "StrictFIFO"}}, PYTHON_CLIENT)
    moved = moved_fields(shared, "kfleet")
    assert moved is not None
    assert [entry["manager"] for entry in moved] == [PYTHON_CLIENT, "kfleet"]
