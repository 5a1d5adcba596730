"""Queues of a worker open again only when nothing is left there that the manager runs elsewhere."""

from typing import Any

import pytest

from reconciler.objects import ClusterName, Manifest
from reconciler.plan.model import Action, Change, Reason
from tests.builders import local_queue, native
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, applied_clusters, parse, plan_of

EAST, HUB = ClusterName("east"), ClusterName("hub")
QUEUE = """\
kind: ClusterQueue
metadata: {name: night, annotations: {kfleet.dev/clusters: east}}
spec: {namespaceSelector: {}, stopPolicy: POLICY}
"""


def workload(*, sent: bool = False, owner: str = "", **status: Any) -> Manifest:
    made = native("Workload", "w", {"queueName": "main"})
    labels = {"kueue.x-k8s.io/multikueue-origin": "multikueue"} if sent else {}
    owners = [{"name": owner}] if owner else []
    metadata = {"name": "w", "namespace": "team1", "labels": labels, "ownerReferences": owners}
    return {**made, "metadata": metadata, "status": status}


def held(copy: Manifest | None, known: Manifest | None = None) -> PaperClusters:
    clusters = applied_clusters(parse(*HUB_AND_EAST, QUEUE.replace("POLICY", "Hold")))
    clusters = clusters.holding(local_queue("main", "team1", "night"), cluster=EAST)
    if copy:
        owners = {"metadata": {"ownerReferences": copy["metadata"]["ownerReferences"]}}
        clusters = clusters.holding(copy, cluster=EAST).patched("east/Workload/team1/w", owners)
    return clusters.holding(known, cluster=HUB) if known else clusters


def opened(clusters: PaperClusters) -> Change:
    plan = plan_of(parse(*HUB_AND_EAST, QUEUE.replace("POLICY", "'None'")), clusters)
    return next(change for change in plan.changes if change.ref.kind == "ClusterQueue")


ENDED = [{"type": "Finished", "status": "True"}]


@pytest.mark.parametrize(
    ("copy", "known"),
    [
        (workload(sent=True), None),
        (workload(sent=True), workload(clusterName="west")),
        (workload(sent=True), workload(clusterName="east", conditions=ENDED)),
        (workload(sent=True, owner="job"), workload()),
        (workload(sent=True, conditions=[{"type": "Evicted", "status": "True"}]), workload()),
    ],
)
def test_queue_stays_closed_while_workloads_would_start_that_the_manager_does_not_expect(
    copy: Manifest, known: Manifest | None
) -> None:
    change = opened(held(copy, known))
    assert (change.action, change.reason) == (Action.HOLD, Reason.IN_USE)
    assert change.notes[0].startswith("1 workloads that the manager runs elsewhere, or no longer runs")


@pytest.mark.parametrize(
    ("copy", "known"),
    [
        (None, None),
        (workload(), None),
        (workload(sent=True), workload()),
        (workload(sent=True, owner="job"), workload(clusterName="east")),
        (workload(sent=True, conditions=ENDED), None),
    ],
)
def test_queue_opens_for_what_may_run_there(copy: Manifest | None, known: Manifest | None) -> None:
    assert opened(held(copy, known)).action is Action.UPDATE


def test_queue_stays_closed_while_the_manager_does_not_say_what_it_sent() -> None:
    change = opened(held(workload(sent=True), workload()).unseen("Workload.kueue.x-k8s.io", HUB))
    assert change.notes == (
        "1 workloads of the manager are here, and the manager's own workloads could not be observed",
    )
