"""Owners of fields in shapes that are seldom: namespaces, subresources, maps that are owned as a whole."""

from typing import Any

import pytest

from reconciler.objects import Manifest
from reconciler.state.managed_fields import is_settled, owners_at
from reconciler.state.manual_edits import (
    CLIENT_SIDE,
    abandoned_fields,
    drop_manual_owners,
    is_manual_manager,
    shared_fields,
)
from tests.unit.state.server import applied, entry_of, merged

KUEUE = "kueue.x-k8s.io/v1beta2"
STOP = ("f:spec", "f:stopPolicy")
NEAR = ("f:spec", "f:admissionChecksStrategy", "f:admissionChecks", 'k:{"name":"near"}')
SHELL: dict[str, Any] = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "night"}}
CHECKS = ("spec", "admissionChecksStrategy", "admissionChecks")
HELD = {**SHELL, "spec": {"stopPolicy": "Hold"}}
OPEN = {**SHELL, "spec": {}}


def checked(checks: Any) -> Manifest:
    return {"admissionChecksStrategy": {"admissionChecks": checks}}


def owned_by(manifest: Manifest, *entries: Manifest) -> Manifest:
    found: Manifest = merged(manifest, {"metadata": {"managedFields": list(entries)}})
    return found


def entry(manager: str, *paths: tuple[str, ...], operation: str = "Update", **more: str) -> Manifest:
    return {**entry_of(manager, operation, KUEUE, paths), **more}


def test_is_settled_for_an_object_in_a_namespace() -> None:
    queue = {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "main", "namespace": "team1", "labels": {"team": "a"}},
        "spec": {"clusterQueue": "night"},
    }
    assert is_settled(applied(queue).manifest, queue, "kfleet")


def test_owners_at_names_who_owns_the_map_around_a_field() -> None:
    live = owned_by(HELD, {**entry("kubectl-edit"), "fieldsV1": {"f:metadata": {"f:annotations": {".": {}}}}})
    assert owners_at(live, ("metadata", "annotations", "team"), but="kfleet") == ("kubectl-edit",)
    assert owners_at(live, ("metadata", "labels", "team"), but="kfleet") == ()


@pytest.mark.parametrize(
    ("manager", "is_manual"),
    [
        ("kubectl-edit", True),
        ("kubectl", True),
        ("k9s", True),
        ("Lens", True),
        ("OpenLens", True),
        ("headlamp", True),
        ("before-first-apply", True),
        ("kfleet-drain", True),
        ("kfleet", False),
        ("kueue", False),
        ("argocd-controller", False),
        ("", False),
    ],
)
def test_manager_is_a_tool_by_which_people_edit_or_a_program(manager: str, *, is_manual: bool) -> None:
    assert is_manual_manager(manager) is is_manual


def test_field_that_only_an_entry_of_a_subresource_holds_too_is_not_shared() -> None:
    scaled = entry("kubectl-scale", STOP, subresource="scale")
    live = owned_by(HELD, entry("kfleet", STOP, operation="Apply"), scaled)
    assert list(shared_fields(live, OPEN, "kfleet")) == []
    assert drop_manual_owners(live, OPEN, "kfleet") is None


def test_entry_of_a_subresource_keeps_a_field_that_a_user_lets_go_of() -> None:
    ours, scaled = entry("kfleet", STOP, operation="Apply"), entry("kubectl-scale", STOP, subresource="scale")
    live = owned_by(HELD, ours, scaled, entry("kubectl-edit", STOP))
    assert drop_manual_owners(live, OPEN, "kfleet") == [ours, scaled]


def test_user_keeps_a_field_beside_one_that_goes() -> None:
    strategy = ("f:spec", "f:queueingStrategy")
    live = owned_by(HELD, entry("kfleet", STOP, operation="Apply"), entry("kubectl-edit", STOP, strategy))
    assert drop_manual_owners(live, OPEN, "kfleet") == [
        entry("kfleet", STOP, operation="Apply"),
        entry("kubectl-edit", strategy),
    ]


def test_field_that_the_object_does_not_have_is_not_shared() -> None:
    cohort = ("f:spec", "f:cohortName")
    live = owned_by(HELD, entry("kfleet", STOP, cohort, operation="Apply"), entry("kubectl-edit", STOP, cohort))
    assert [shared.path for shared in shared_fields(live, OPEN, "kfleet")] == [("spec", "stopPolicy")]


@pytest.mark.parametrize(("more", "count"), [((), 1), (((*NEAR, "f:onFlavors"),), 0)])
def test_item_of_a_list_is_shared_where_the_user_added_nothing_to_it(
    more: tuple[tuple[str, ...], ...], count: int
) -> None:
    there = checked([{"name": "near", "onFlavors": ["cpu"]}])
    ours = entry("kfleet", (*NEAR, "f:name"), operation="Apply")
    live = owned_by({**SHELL, "spec": there}, ours, entry("kubectl-edit", (*NEAR, "f:name"), *more))
    assert len(list(shared_fields(live, OPEN, "kfleet"))) == count


def test_abandoned_fields_are_only_those_that_the_object_has() -> None:
    live = owned_by(HELD, entry(CLIENT_SIDE, STOP, ("f:spec", "f:cohortName")))
    assert dict(abandoned_fields(live, OPEN)) == {("spec", "stopPolicy"): "Hold"}


@pytest.mark.parametrize(
    ("path", "there", "wanted", "abandoned"),
    [
        (("f:spec", "f:size", "f:cpu"), {"size": {"cpu": 1}}, {"size": "small"}, ("spec", "size", "cpu")),
        (NEAR, checked([{"name": "near"}]), checked(1), (*CHECKS, 0)),
    ],
    ids=["map", "list"],
)
def test_abandoned_fields_of_a_value_that_becomes_one_of_another_type(
    path: tuple[str, ...], there: Manifest, wanted: Manifest, abandoned: tuple[str | int, ...]
) -> None:
    live = owned_by({**SHELL, "spec": there}, entry(CLIENT_SIDE, path))
    assert [found for found, _ in abandoned_fields(live, {**SHELL, "spec": wanted})] == [abandoned]


def test_abandoned_fields_are_only_those_items_that_the_predecessor_owns() -> None:
    there = {**SHELL, "spec": checked([{"name": "near"}, {"name": "far"}])}
    live = owned_by(there, entry(CLIENT_SIDE, (*NEAR, "f:name")))
    wanted = {**SHELL, "spec": checked([{"name": "third"}])}
    assert [value for _, value in abandoned_fields(live, wanted)] == [{"name": "near"}]


def test_abandoned_fields_of_a_list_that_had_no_keys_in_an_older_version() -> None:
    selectors = [{"key": "a", "valueFromProvisioningClassDetail": "x"}, {"key": "b"}]
    live = {
        "apiVersion": KUEUE,
        "kind": "ProvisioningRequestConfig",
        "metadata": {
            "managedFields": [
                entry_of(
                    CLIENT_SIDE,
                    "Update",
                    "kueue.x-k8s.io/v1beta1",
                    [("f:spec", "f:podSetUpdates", "f:nodeSelector")],
                )
            ]
        },
        "spec": {"podSetUpdates": {"nodeSelector": selectors}},
    }
    wanted = {"spec": {"podSetUpdates": {"nodeSelector": [{"key": "a"}]}}}
    path = ("spec", "podSetUpdates", "nodeSelector")
    assert dict(abandoned_fields(live, wanted)) == {
        (*path, 0, "valueFromProvisioningClassDetail"): "x",
        (*path, 1): {"key": "b"},
    }


@pytest.mark.parametrize(
    ("kind", "field", "there", "abandoned"),
    [
        ("Cohort", "f:parent", {"parentName": "top"}, {("spec", "parentName"): "top"}),
        ("ClusterQueue", "f:cohort", {"cohortName": "top"}, {("spec", "cohortName"): "top"}),
        ("AdmissionCheck", "f:retryDelayMinutes", {"controllerName": "x"}, {}),
        ("ClusterQueue", "f:admissionChecks", {"cohortName": "top"}, {}),
        (
            "MultiKueueCluster",
            "f:kubeConfig",
            {"clusterSource": {"kubeConfig": {"location": "east"}}},
            {("spec", "clusterSource"): {"kubeConfig": {"location": "east"}}},
        ),
    ],
)
def test_abandoned_fields_of_an_older_version_are_found_where_they_are_now(
    kind: str, field: str, there: Manifest, abandoned: dict[tuple[str | int, ...], Any]
) -> None:
    old = entry_of(CLIENT_SIDE, "Update", "kueue.x-k8s.io/v1beta1", [("f:spec", field)])
    live = owned_by({**SHELL, "kind": kind, "spec": there}, old)
    assert dict(abandoned_fields(live, {**SHELL, "kind": kind, "spec": {}})) == abandoned


def test_abandoned_fields_come_in_the_order_of_their_names() -> None:
    names = [f"field{number}" for number in range(8)]
    live = owned_by(
        {**SHELL, "spec": dict.fromkeys(names, 1)},
        entry(CLIENT_SIDE, *(("f:spec", f"f:{name}") for name in names[::2])),
        entry(CLIENT_SIDE, *(("f:spec", f"f:{name}") for name in names[1::2])),
    )
    assert [path[-1] for path, _ in abandoned_fields(live, OPEN)] == names
