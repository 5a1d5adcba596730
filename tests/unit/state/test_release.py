"""An object that is released keeps every value, and nothing of kfleet."""

from typing import Any

from reconciler.state.tracking import RELEASED, release_operations

OURS = {"manager": "kfleet", "operation": "Apply", "fieldsV1": {"f:spec": {"f:cohortName": {}}}}
DRAIN = {"manager": "kfleet-drain", "operation": "Apply", "fieldsV1": {"f:spec": {"f:stopPolicy": {}}}}
KUEUE = {"manager": "kueue", "operation": "Update", "subresource": "status"}
MEMBER = "applyset.kubernetes.io/part-of"


def queue(owners: list[dict[str, Any]], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "night", "managedFields": owners, **metadata},
        "spec": {"cohortName": "science"},
    }


def test_release_removes_only_the_marks_of_kfleet() -> None:
    marks = {"kfleet.dev/wanted": "abc", "team": "physics"}
    live = queue([KUEUE], labels={MEMBER: "applyset-x", "site": "cnaf"}, annotations=marks)
    assert release_operations(live) == [
        {"op": "remove", "path": "/metadata/labels/applyset.kubernetes.io~1part-of"},
        {"op": "remove", "path": "/metadata/annotations/kfleet.dev~1wanted"},
    ]


def test_release_leaves_the_fields_of_other_managers() -> None:
    assert release_operations(queue([OURS, KUEUE, DRAIN])) == [
        {"op": "replace", "path": "/metadata/managedFields", "value": [KUEUE]}
    ]


def test_release_of_an_object_without_another_owner_leaves_an_owner_of_nothing() -> None:
    """Without any entry the API server would give all fields to before-first-apply."""
    (operation,) = release_operations(queue([OURS]))
    (owner,) = operation["value"]
    assert (owner["manager"], owner["operation"], owner["fieldsV1"]) == (RELEASED, "Update", {"f:metadata": {}})


def test_released_object_has_nothing_left_to_release() -> None:
    (operation,) = release_operations(queue([OURS]))
    assert release_operations(queue([*operation["value"]])) == []
