"""What Workloads and queues say about what runs where."""

from typing import Any

import pytest

from reconciler.kueue.workloads import is_stopped
from reconciler.multikueue.observe_removal import read_remote, read_sent
from reconciler.objects import Manifest
from tests.builders import live_queue

ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}


def live_workload(name: str, *conditions: str, **more: Any) -> Manifest:
    labels = more.pop("labels", {})
    status = {"conditions": [{"type": one, "status": "True"} for one in conditions], **more}
    return {"metadata": {"namespace": "team", "name": name, "labels": labels}, "status": status}


def queued(workload: Manifest, queue: str = "main", owner: str = "") -> Manifest:
    owners = {"ownerReferences": [{"name": owner}]} if owner else {}
    return {**workload, "metadata": {**workload["metadata"], **owners}, "spec": {"queueName": queue}}


def test_sent_workloads_are_those_that_have_not_ended() -> None:
    admission = {"clusterQueue": "q"}
    running = live_workload("a", "Admitted", admission=admission, clusterName="east")
    ended = live_workload("b", "Admitted", "Finished", admission=admission, clusterName="east")
    pending: Manifest = {"metadata": {"namespace": "team", "name": "c"}}
    found = {entry.address[1]: (entry.queue, entry.cluster) for entry in read_sent([running, ended, pending])}
    assert found == {"a": ("q", "east"), "c": ("", "")}


@pytest.mark.parametrize(
    ("copy", "is_counted"),
    [
        (live_workload("a", "QuotaReserved", labels=ORIGIN, admission={"clusterQueue": "mine"}), True),
        (live_workload("a", "QuotaReserved", "Admitted", labels=ORIGIN, admission={"clusterQueue": "mine"}), True),
        (live_workload("a", "QuotaReserved", labels=ORIGIN), True),
        (live_workload("a", "QuotaReserved", labels=ORIGIN, admission={"clusterQueue": "of-another-manager"}), False),
        (live_workload("a", "QuotaReserved", admission={"clusterQueue": "mine"}), False),
        (live_workload("a", labels=ORIGIN), False),
        # It was evicted and would start again when its queue opens.
        (queued(live_workload("a", "Evicted", labels=ORIGIN)), True),
        (queued(live_workload("a", labels=ORIGIN), owner="job"), True),
        (queued(live_workload("a", labels=ORIGIN)), False),
        (queued(live_workload("a", "Evicted", labels=ORIGIN), queue="of-another-manager"), False),
        (live_workload("a", "Admitted", "Finished", labels=ORIGIN, admission={"clusterQueue": "mine"}), False),
    ],
)
def test_remote_copy_counts_while_it_holds_quota_of_the_fleet(copy: Manifest, *, is_counted: bool) -> None:
    local_queues = {("team", "main"): "mine", ("team", "of-another-manager"): "theirs"}
    seen = read_remote([], frozenset({"mine"}), local_queues, [copy])
    assert bool(seen.reserving) is is_counted


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (live_queue("q", "Hold", is_active=False), True),
        (live_queue("q", "HoldAndDrain", is_active=False), True),
        (live_queue("q", "None", is_active=False), False),
        (live_queue("q", "Hold", is_active=True), False),
        (live_queue("q", "Hold", is_active=False, seen=1), False),
        ({"metadata": {"name": "q"}, "spec": {"stopPolicy": "Hold"}}, False),
        ({"metadata": {"name": "q", "deletionTimestamp": "now"}, "spec": {}}, True),
    ],
)
def test_queue_is_stopped_when_its_kueue_has_understood_it(live: Manifest, *, expected: bool) -> None:
    assert is_stopped(live) is expected
