"""What stands in for the controllers of jobs and checks writes, and when."""

from typing import Any

from reconciler.simulate.stand_in import Eviction, eviction_of, patch_of
from tests.builders import Document
from tests.unit.view.live_objects import ADMITTED, NOW, condition, live_workload


def patched(workload: Document) -> dict[str, Any]:
    """The values of a patch by their paths; a removed one is None."""
    workload["metadata"] |= {"resourceVersion": "12"}
    return {one["path"]: one.get("value") for one in patch_of(workload, NOW)}


def evicted(reason: str, *more: Document, **status: Any) -> Document:
    return live_workload(
        "one", *ADMITTED, condition("Evicted", "True", reason, "said"), *more, held={"cpu": "2"}, status=status
    )


def test_preempted_workload_gives_its_quota_back_and_queues_again() -> None:
    found = patched(evicted("Preempted", admissionChecks=[{"name": "c", "state": "Ready"}]))
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in found["/status/conditions"]}
    assert conditions == {
        "Evicted": ("True", "Preempted", "said"),
        "QuotaReserved": ("False", "Pending", "said"),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
        "Requeued": ("True", "Preempted", "said"),
    }
    assert found["/status/admission"] is None
    assert found["/status/admissionChecks"][0]["state"] == "Pending"
    assert found["/metadata/resourceVersion"] == "12"


def test_workload_of_a_stopped_queue_waits_for_kueue_to_requeue_it() -> None:
    found = patched(evicted("ClusterQueueStopped"))
    assert next(one for one in found["/status/conditions"] if one["type"] == "Requeued")["status"] == "False"


def test_checks_of_a_workload_with_quota_become_ready() -> None:
    checks = [{"name": "a", "state": "Pending"}, {"name": "b", "state": "Rejected"}]
    reserved = live_workload("one", condition("QuotaReserved"), status={"admissionChecks": checks})
    found = patched(reserved)["/status/admissionChecks"]
    assert [one["state"] for one in found] == ["Ready", "Rejected"]


def test_nothing_is_patched_for_others() -> None:
    checks = {"admissionChecks": [{"name": "a", "state": "Pending"}]}
    assert patched(live_workload("waits", status=checks)) == {}
    assert patched(live_workload("runs", *ADMITTED)) == {}
    assert patched(live_workload("ended", *ADMITTED, condition("Finished"), status=checks)) == {}
    assert patched(live_workload("was", condition("Evicted"), condition("QuotaReserved", "False"))) == {}


def test_eviction_says_why_in_the_words_of_kueue() -> None:
    preempted = evicted("Preempted", condition("Preempted", "True", "InCohortReclamation"))
    assert eviction_of(preempted) == Eviction("Preempted: InCohortReclamation", "said")
    assert eviction_of(evicted("ClusterQueueStopped")) == Eviction("ClusterQueueStopped", "said")
    assert eviction_of(live_workload("runs", *ADMITTED)) is None
