from typing import Any

import pytest

from reconciler.objects import Manifest
from reconciler.state.managed_fields import applied_by, has_applied, is_settled, owned_paths, owners_at
from tests.unit.state.server import applied, edited, merged

KUEUE = "kueue.x-k8s.io/v1beta2"
# As a server with Kueue 0.19 keeps a ClusterQueue that was applied: lists with one owner are leaves, checks have keys.
TREE: dict[str, Any] = {
    "f:metadata": {
        "f:annotations": {"f:kfleet.dev/wanted": {}},
        "f:labels": {"f:applyset.kubernetes.io/part-of": {}},
    },
    "f:spec": {
        "f:admissionChecksStrategy": {
            "f:admissionChecks": {
                'k:{"name":"far"}': {".": {}, "f:name": {}, "f:onFlavors": {'v:"cpu"': {}, 'v:"gpu"': {}}},
                'k:{"name":"near"}': {".": {}, "f:name": {}},
            }
        },
        "f:cohortName": {},
        "f:namespaceSelector": {},
        "f:resourceGroups": {},
    },
}
GROUPS = [
    {"coveredResources": ["cpu"], "flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": "9"}]}]}
]
CHECK_ITEMS = [{"name": "near"}, {"name": "far", "onFlavors": ["gpu", "cpu"]}]
WANTED: dict[str, Any] = {
    "apiVersion": KUEUE,
    "kind": "ClusterQueue",
    "metadata": {
        "name": "night",
        "labels": {"applyset.kubernetes.io/part-of": "applyset-a-v1"},
        "annotations": {"kfleet.dev/wanted": "0123"},
    },
    "spec": {
        "cohortName": "science",
        "namespaceSelector": {},
        "resourceGroups": GROUPS,
        "admissionChecksStrategy": {
            "admissionChecks": [{"name": "near"}, {"name": "far", "onFlavors": ["gpu", "cpu"]}]
        },
    },
}
STATUS_ENTRY = {
    "manager": "kfleet",
    "operation": "Apply",
    "apiVersion": KUEUE,
    "subresource": "status",
    "fieldsV1": {"f:status": {"f:pendingWorkloads": {}}},
}
LIVE = applied(WANTED).manifest


def settled(live: Manifest, wanted: Manifest = WANTED) -> bool:
    return is_settled(live, wanted, "kfleet")


def with_quota(value: Any) -> dict[str, Any]:
    resources = [{"name": "cpu", "nominalQuota": value}]
    return {
        "spec": {
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "cpu", "resources": resources}]}]
        }
    }


def with_tree(tree: dict[str, Any], **entry: Any) -> Manifest:
    kept = {"manager": "kfleet", "operation": "Apply", "apiVersion": KUEUE, "fieldsV1": tree, **entry}
    found: Manifest = merged(LIVE, {"metadata": {"managedFields": [kept]}})
    return found


def test_server_of_the_tests_keeps_fields_in_the_shape_of_a_real_one() -> None:
    (entry,) = LIVE["metadata"]["managedFields"]
    assert entry["fieldsV1"] == TREE


def test_is_settled_for_an_object_as_it_was_applied() -> None:
    assert settled(LIVE)


def test_is_settled_ignores_the_order_of_keyed_lists_and_sets() -> None:
    checks = [{"name": "far", "onFlavors": ["cpu", "gpu"]}, {"name": "near"}]
    assert settled(merged(LIVE, {"spec": {"admissionChecksStrategy": {"admissionChecks": checks}}}))


def test_is_settled_ignores_defaults_and_fields_of_others() -> None:
    held = edited(LIVE, {"spec": {"stopPolicy": "Hold"}, "metadata": {"labels": {"note": "mine"}}})
    assert held["spec"]["stopPolicy"] == "Hold"
    assert settled(held)


@pytest.mark.parametrize("value", ["9", 9, "9000m", "9.0", "9e0"])
def test_is_settled_compares_quantities_by_value(value: Any) -> None:
    assert settled(merged(LIVE, with_quota(value)))


@pytest.mark.parametrize("value", ["90", 90, "9m", "nine", True, None])
def test_is_settled_sees_another_quantity(value: Any) -> None:
    live = merged(LIVE, with_quota("9"))
    live["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = value
    assert not settled(live)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"cohortName": "other"}},
        {"spec": {"cohortName": None}},
        {"spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"resourceGroups": []}},
        {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "near"}]}}},
        {
            "spec": {
                "admissionChecksStrategy": {
                    "admissionChecks": [{"name": "near"}, {"name": "far", "onFlavors": ["cpu"]}]
                }
            }
        },
        {"spec": {"admissionChecksStrategy": None}},
        {"metadata": {"labels": {"applyset.kubernetes.io/part-of": "applyset-b-v1"}}},
        {"metadata": {"labels": None}},
        {"metadata": {"annotations": {"kfleet.dev/wanted": "4567"}}},
    ],
    ids=str,
)
def test_is_settled_sees_a_changed_value_even_where_ownership_is_unchanged(change: Manifest) -> None:
    assert not settled(merged(LIVE, change))


@pytest.mark.parametrize(
    "wanted",
    [
        merged(WANTED, {"spec": {"stopPolicy": "None"}}),
        merged(WANTED, {"spec": {"cohortName": None}}),
        merged(WANTED, {"metadata": {"labels": {"team": "a"}}}),
        merged(WANTED, {"metadata": {"annotations": None}}),
        merged(WANTED, {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "near"}]}}}),
        merged(WANTED, {"spec": {"admissionChecksStrategy": {"admissionChecks": [*CHECK_ITEMS, {"name": "third"}]}}}),
        merged(WANTED, {"apiVersion": "kueue.x-k8s.io/v1beta1"}),
    ],
    ids=["new-field", "dropped-field", "new-label", "dropped-annotation", "dropped-item", "new-item", "other-version"],
)
def test_is_settled_sees_a_field_that_is_not_owned_or_not_wanted(wanted: Manifest) -> None:
    assert not settled(LIVE, wanted)


def test_is_settled_sees_a_field_that_another_manager_took() -> None:
    taken = edited(LIVE, {"spec": {"cohortName": "other"}}, "quota-tuner")
    assert not settled(edited(taken, {"spec": {"cohortName": "science"}}, "quota-tuner"))


def test_is_settled_needs_an_applied_entry_of_the_object_itself() -> None:
    assert not settled(with_tree(TREE, operation="Update"))
    assert not settled(with_tree(TREE, manager="kfleet-applyset"))
    assert not settled(with_tree(TREE, subresource="status"))
    assert not settled(merged(LIVE, {"metadata": {"managedFields": None}}))


def test_is_settled_ignores_entries_of_subresources() -> None:
    entries = [STATUS_ENTRY, *LIVE["metadata"]["managedFields"]]
    assert settled(merged(LIVE, {"metadata": {"managedFields": entries}}))


def test_is_settled_asks_the_server_about_lists_by_index() -> None:
    tree = {**TREE, "f:spec": {**TREE["f:spec"], "f:resourceGroups": {"i:0": {}}}}
    assert not settled(with_tree(tree))


def test_is_settled_asks_the_server_where_a_map_became_something_else() -> None:
    tree = {**TREE, "f:spec": {**TREE["f:spec"], "f:cohortName": {"f:inner": {}}}}
    assert not settled(with_tree(tree))


def test_is_settled_for_an_empty_spec() -> None:
    flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "cpu"}, "spec": {}}
    live = applied(flavor).manifest
    assert live["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {}}
    assert is_settled(live, flavor, "kfleet")
    assert not is_settled(merged(live, {"spec": {"nodeLabels": {"a": "b"}}}), flavor, "kfleet")


def test_is_settled_sees_an_item_added_to_an_atomic_list_or_map() -> None:
    flavor = {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": {"name": "cpu"},
        "spec": {"nodeLabels": {"type": "cpu"}, "tolerations": [{"key": "gpu"}]},
    }
    live = applied(flavor).manifest
    assert is_settled(live, flavor, "kfleet")
    assert not is_settled(edited(live, {"spec": {"nodeLabels": {"rack": "1"}}}), flavor, "kfleet")
    assert not is_settled(edited(live, {"spec": {"tolerations": [{"key": "gpu"}, {"key": "b"}]}}), flavor, "kfleet")


def test_applied_by_is_none_for_a_manager_that_never_applied() -> None:
    assert applied_by(LIVE, "somebody") is None


def test_owned_paths_are_the_leaves_of_a_tree() -> None:
    assert set(owned_paths(TREE)) >= {
        ("f:spec", "f:cohortName"),
        ("f:spec", "f:admissionChecksStrategy", "f:admissionChecks", 'k:{"name":"near"}', "f:name"),
        ("f:spec", "f:admissionChecksStrategy", "f:admissionChecks", 'k:{"name":"far"}', "f:onFlavors", 'v:"cpu"'),
    }


CHECKS = ("spec", "admissionChecksStrategy", "admissionChecks")


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        (("spec", "cohortName"), ("kfleet",)),
        (("spec", "resourceGroups", 0, "flavors", 0, "name"), ("kfleet",)),
        (("spec",), ("kfleet", "kubectl-edit")),
        (("spec", "stopPolicy"), ("kubectl-edit",)),
        (("spec", "queueingStrategy"), ()),
        ((*CHECKS, 0, "name"), ("kfleet",)),
        ((*CHECKS, 1, "onFlavors", 0), ("kfleet",)),
        ((*CHECKS, 7), ()),
        (("metadata", "labels", "note"), ("kubectl-edit",)),
        (("status", "pendingWorkloads"), ()),
    ],
    ids=str,
)
def test_owners_at_names_who_owns_a_field_or_something_in_or_around_it(
    path: tuple[str | int, ...], owners: tuple[str, ...]
) -> None:
    live = edited(LIVE, {"spec": {"stopPolicy": "Hold"}, "metadata": {"labels": {"note": "mine"}}})
    assert owners_at(live, path, but="nobody") == owners


def test_owners_at_leaves_out_who_asks() -> None:
    assert owners_at(LIVE, ("spec", "cohortName"), but="kfleet") == ()


def test_owners_at_finds_no_owner_in_an_entry_without_fields() -> None:
    assert owners_at(with_tree({}, manager="somebody"), ("spec", "cohortName"), but="kfleet") == ()


@pytest.mark.parametrize(("version", "has"), [("", True), (KUEUE, True), ("kueue.x-k8s.io/v1beta1", False)])
def test_has_applied_in_the_version_that_is_asked_for(version: str, *, has: bool) -> None:
    assert has_applied(LIVE, "kfleet", version) is has
    assert not has_applied(LIVE, "other", version)


@pytest.mark.parametrize("labels", [{}, {"team": "a"}])
def test_is_settled_asks_the_server_where_others_own_fields_in_a_map_that_is_empty_in_git(labels: Manifest) -> None:
    wanted = {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": "c", "labels": {}}}
    entry = {"manager": "kfleet", "operation": "Apply", "apiVersion": KUEUE}
    tree: Manifest = {"f:metadata": {"f:labels": {".": {}}}}
    live = {**wanted, "metadata": {"name": "c", "labels": labels, "managedFields": [{**entry, "fieldsV1": tree}]}}
    assert settled(live, wanted) is not bool(labels)
