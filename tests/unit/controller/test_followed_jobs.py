"""Jobs and workloads that are followed for placement: who belongs to a selection, and what is worth a look."""

from typing import Any

import pytest

from reconciler.clients.watch_stream import Collection

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
PATH = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/a"


def item(version: str, labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "team", "resourceVersion": version, "labels": labels or {}}
    return {"metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("selector", "labels", "is_kept"),
    [
        ("", {}, True),
        ("team", {"team": "x"}, True),
        ("team", {}, False),
        ("team=x", {"team": "x"}, True),
        ("team=x", {"team": "y"}, False),
        ("!origin", {}, True),
        ("!origin", {"origin": "x"}, False),
    ],
)
def test_own_write_stays_in_a_collection_that_selects_it(
    selector: str, labels: dict[str, str], *, is_kept: bool
) -> None:
    followed = Collection(WORKLOADS, selector)
    followed.reset("1", [])
    followed.begin_own(PATH)
    followed.end_own(PATH, item("2", labels))
    assert bool(followed.items()) is is_kept


def test_workload_is_worth_a_look_when_its_quota_or_its_conditions_change() -> None:
    followed = Collection(WORKLOADS, "")
    followed.reset("1", [item("1")])
    waiting = [{"type": "QuotaReserved", "status": "False"}]
    reserved = [{"type": "QuotaReserved", "status": "True"}]
    told: dict[str, Any] = {
        "admission": {"clusterQueue": "q"},
        "conditions": reserved,
        "admissionChecks": [{"message": "why"}],
    }
    changes = [
        item("2", conditions=waiting),
        item("3", conditions=reserved, admission={"clusterQueue": "q"}),
        item("4", **told),
    ]
    seen = [followed.take({"type": "MODIFIED", "object": change}) for change in changes]
    assert seen == [True, True, False]


@pytest.mark.parametrize("way", ["listed", "watched", "written"])
def test_owners_of_a_status_are_remembered_without_their_fields(way: str) -> None:
    spec = {"manager": "kfleet", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
    status = {"manager": "kueue", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    seen = item("2")
    seen["metadata"]["managedFields"] = [spec, status]
    followed = Collection(WORKLOADS, "")
    followed.reset("1", [seen] if way == "listed" else [])
    if way == "watched":
        followed.take({"type": "ADDED", "object": seen})
    if way == "written":
        followed.begin_own(PATH)
        followed.end_own(PATH, seen)
    (kept,) = followed.items()
    slim = {"manager": "kueue", "operation": "Update", "subresource": "status"}
    assert kept["metadata"]["managedFields"] == [spec, slim]
    assert seen["metadata"]["managedFields"] == [spec, status], "what was handed in stays as it was"
