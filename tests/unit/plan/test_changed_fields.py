from typing import Any

import pytest

from reconciler.plan.fields import differences, path_text
from reconciler.plan.model import Cause
from reconciler.state.values import content, digest
from tests.unit.plan.paper_clusters import QUEUE, applied_clusters, parse, plan_of
from tests.unit.state.server import merged

NIGHT = "hub/ClusterQueue/night"
QUOTA = {"resourceGroups": [{"flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": "9"}]}]}]}


def named(name: str, value: int) -> dict[str, Any]:
    return {"name": name, "b": value}


def rows(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    return [(path_text(path), before, after) for path, before, after in differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({}, {"a": {"b": 1}}, [("a", None, {"b": 1})]),
        ({"a": "x"}, {}, [("a", "x", None)]),
        ({"a": None}, {"a": "x"}, [("a", None, "x")]),
        ({"a": "1"}, {"a": 1}, [("a", "1", 1)]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        ({"a": {"b": 1}}, {"a": [1]}, [("a", {"b": 1}, [1])]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [("a[1]", 2, None)]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [("a[1]", None, "y")]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [("a[0].b", 1, 2)]),
        ({"a": "not present"}, {"a": "x"}, [("a", "not present", "x")]),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}, [("a (order)", ["x", "y"], ["y", "x"])]),
        ({"a": [named("x", 1)]}, {"a": [named("x", 2)]}, [("a[x].b", 1, 2)]),
        ({"a": [named("y", 2)]}, {"a": [named("x", 1), named("y", 2)]}, [("a[x]", None, named("x", 1))]),
        (
            {"a": [named("x", 1), named("y", 2)]},
            {"a": [named("y", 3)]},
            [("a[x]", named("x", 1), None), ("a[y].b", 2, 3)],
        ),
        (
            {"a": [named("x", 1), named("y", 2)]},
            {"a": [named("y", 2), named("x", 3)]},
            [("a (order)", ["x", "y"], ["y", "x"]), ("a[x].b", 1, 3)],
        ),
        ({"a": [named("x", 1), named("x", 2)]}, {"a": [named("x", 1), named("x", 3)]}, [("a[1].b", 2, 3)]),
        ({"a": [{"name": 1, "b": 1}]}, {"a": [{"name": 1, "b": 2}]}, [("a[0].b", 1, 2)]),
    ],
)
def test_differences(old: Any, new: Any, found: list[tuple[str, Any, Any]]) -> None:
    assert rows(old, new) == found


def test_differences_come_in_the_order_of_fields_and_items() -> None:
    old = {"b": 1, "a": list(range(12))}
    new = {"b": 2, "a": [number + 100 for number in range(12)]}
    assert [path for path, _, _ in rows(old, new)] == [*(f"a[{number}]" for number in range(12)), "b"]


@pytest.mark.parametrize("value", [9, "9000m", "9.0"])
def test_differences_compare_quantities_by_value(value: Any) -> None:
    other = [{"flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": value}]}]}]
    assert not rows({"spec": QUOTA}, {"spec": {"resourceGroups": other}})


def test_differences_of_equal_quantities_hide_no_other_difference() -> None:
    old = {"spec": {"nominalQuota": "9", "borrowingLimit": "1"}}
    assert rows(old, {"spec": {"nominalQuota": 9, "borrowingLimit": "2"}}) == [("spec.borrowingLimit", "1", "2")]


def test_differences_name_the_flavor_and_the_resource() -> None:
    other = [{"flavors": [{"name": "cpu", "resources": [{"name": "cpu", "nominalQuota": 12}]}]}]
    path = "spec.resourceGroups[0].flavors[cpu].resources[cpu].nominalQuota"
    assert rows({"spec": QUOTA}, {"spec": {"resourceGroups": other}}) == [(path, "9", 12)]


def test_path_text_brackets_what_is_not_a_plain_word() -> None:
    assert path_text(("metadata", "labels", "example.com/team")) == "metadata.labels[example.com/team]"
    assert path_text(("spec", "groups", 0, "node-labels")) == "spec.groups[0].node-labels"


def test_content_is_what_an_object_says() -> None:
    live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "uid": "1",
            "resourceVersion": "7",
            "labels": {"a": "b"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "c": "d"},
        },
        "data": {"x": "y"},
        "status": {"z": 1},
    }
    assert content(live) == {"data": {"x": "y"}, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    touched = merged(live, {"metadata": {"resourceVersion": "8"}, "status": {"z": 2}})
    assert digest(content(live)) == digest(content(touched))
    assert digest(content(live)) != digest(content(merged(live, {"data": {"x": "z"}})))


def test_changed_fields_say_drift_while_git_says_the_same() -> None:
    spec = parse(QUEUE)
    plan = plan_of(spec, applied_clusters(spec).edited(NIGHT, {"spec": {"cohortName": "x"}}))
    (field,) = plan.writes[0].fields
    assert (field.cause, field.owner) == (Cause.DRIFT, "kubectl-edit")


def test_changed_fields_say_spec_once_git_says_something_else() -> None:
    before, after = parse(QUEUE), parse(QUEUE.replace("science", "art"))
    (field,) = plan_of(after, applied_clusters(before)).writes[0].fields
    assert (field.path, field.old, field.new, field.cause) == ("spec.cohortName", "science", "art", Cause.SPEC)


def test_changed_fields_show_no_book_keeping() -> None:
    spec = parse(QUEUE)
    (_, queue) = plan_of(spec, applied_clusters(spec)).changes
    assert not queue.fields
    bare = {"metadata": {"labels": None, "annotations": None}}
    (adopted,) = plan_of(spec, applied_clusters(spec).edited(NIGHT, bare)).writes
    assert not adopted.fields


@pytest.mark.parametrize("key", ["_", "-", "", "a b", "a/b", "a.b"])
def test_path_text_brackets_a_key_that_could_be_taken_for_something_else(key: str) -> None:
    assert path_text(("data", key, "x")) == f"data[{key}].x"
