"""`kfleet why` for jobs that kfleet places and real KubeStellar downsyncs: the true reason is in the first line."""

from collections.abc import Iterator
from functools import partial

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.builders import KUEUE, Document, asking, pod_spec
from tests.cluster.kubestellar.downsynced import (
    NAMESPACE,
    QUEUE,
    SPOT,
    WORKERS,
    Downsynced,
    documents,
    downsynced_job,
)
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.cluster.why.situation import Situation, asked, assert_said, said
from tests.support import eventually

LEAST = "kueue.x-k8s.io/job-min-parallelism"
# The CPUs of both nodes. `partly` comes after what takes 22 of them, and has room for two of its 20 pods.
SPOT_CPUS = "32"
# One after the other.
RESERVED = ("runs", "huge", "brought", "partly")
SITUATIONS = [
    said("runs", "runs", "on worker", "placed by kfleet and downsynced by KubeStellar"),
    said("huge", "waits", "no cluster has room for 1 x (cpu 20) on spot", "cpu 16 at most"),
    said("brought", "never", "it has the label kubestellar.io/cluster=worker1, which only kfleet"),
    said("partly", "never", "Kueue reserved quota for", "KubeStellar carries a job whole or not at all"),
    said("alone", "never", "its job is no job of a kind that it could carry"),
    said("toolarge", "never", f"of queue {QUEUE} on manager", "can never get more than"),
    said("memory", "never", "the queue has no quota for memory"),
    said("nolabel", "not queued", "on manager, it names no queue"),
    said("typo", "never", f"there is no LocalQueue {NAMESPACE}/mian on manager; did you mean main?"),
    said("later", "waits", "kfleet places it on worker", "next"),
]


def labelled(manifest: Document, **labels: str) -> Document:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def lone_workload() -> Document:
    pods = {"name": "main", "count": 1, "template": {"spec": pod_spec(asking(cpu="1"))}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": "alone", "namespace": NAMESPACE},
        "spec": {"queueName": "main", "podSets": [pods]},
    }


def first() -> list[Document]:
    partly = downsynced_job("partly", cpu="5", count=20, selector=SPOT)
    partly["metadata"]["annotations"] = {LEAST: "1"}
    unlabelled = downsynced_job("nolabel", cpu="1")
    unlabelled["metadata"]["labels"] = {}
    return [
        downsynced_job("runs", cpu="1", seconds=3600, selector=SPOT),
        downsynced_job("huge", cpu="20", selector=SPOT),
        labelled(downsynced_job("brought", cpu="1", selector=SPOT), **{"kubestellar.io/cluster": "worker1"}),
        partly,
        lone_workload(),
        downsynced_job("toolarge", cpu="4000", selector=SPOT),
        downsynced_job("memory", cpu="1", memory="1Gi", selector=SPOT),
        unlabelled,
        labelled(downsynced_job("typo", cpu="1"), **{"kueue.x-k8s.io/queue-name": "mian"}),
    ]


@pytest.fixture(scope="module")
def explained(kubestellar: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Downsynced]:
    """All situations at once; kfleet places the jobs, and `later` comes after that."""
    contexts = {name: name for name in ("manager", *WORKERS)}
    live_fleet = LiveFleet(kubestellar, tmp_path_factory.mktemp("why") / "repository", "whycarried", contexts)
    live_fleet.commit(*documents())
    fleet = Downsynced(live_fleet)
    eventually(lambda: live_fleet.apply().code == 0 and fleet.quota("spot") == SPOT_CPUS, 60)
    for manifest in first():
        fleet.manager.create(manifest)
        if manifest["metadata"]["name"] in RESERVED:
            eventually(partial(fleet.is_true, manifest["metadata"]["name"], "QuotaReserved"), 60)
    eventually(lambda: live_fleet.apply("--wait", "0").code == 0, 60)
    fleet.manager.create(downsynced_job("later", gpu="1", cpu="1", seconds=3600))
    eventually(lambda: fleet.is_true("later", "QuotaReserved"), 60)
    yield fleet
    fleet.manager.delete(f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/alone")
    for manifest in (*first(), downsynced_job("later", cpu="1")):
        if manifest["kind"] == "Job":
            fleet.remove(manifest["metadata"]["name"])
    fleet.clean()


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_first_line_has_the_true_reason(explained: Downsynced, situation: Situation) -> None:
    assert_said(explained.live_fleet, NAMESPACE, situation)


def test_copy_on_a_worker_has_the_story_of_the_job_on_the_manager(explained: Downsynced) -> None:
    cluster = explained.label("runs")
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    api = explained.live_fleet.api(cluster)
    (pod,) = eventually(lambda: [*api.list(path, "batch.kubernetes.io/job-name=runs")], 60)
    names = (pod["metadata"]["name"], "runs")
    eventually(lambda: len({asked(explained.live_fleet, NAMESPACE, name) for name in names}) == 1)


def test_stopped_queue_is_the_reason_of_a_new_job(explained: Downsynced) -> None:
    """Last, because the queue takes no job from here on."""
    explained.manager.patch(f"/apis/{KUEUE}/clusterqueues/{QUEUE}", {"spec": {"stopPolicy": "Hold"}})
    explained.manager.create(downsynced_job("held", cpu="1"))
    try:
        text = f"ClusterQueue {QUEUE} is stopped (Hold) on manager"
        assert_said(explained.live_fleet, NAMESPACE, said("held", "waits", text))
    finally:
        explained.remove("held")
