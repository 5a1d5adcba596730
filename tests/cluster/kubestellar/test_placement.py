"""The whole way: quota from real Kueue, a cluster from kfleet, carried there by real KubeStellar, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import Document, native
from tests.cluster.kubestellar.carried import NAMESPACE, QUEUE, WORKERS, Carried, carried_job, documents
from tests.cluster.kubestellar.status_addon import return_status
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import Kfleet, eventually


@pytest.fixture(scope="module")
def carried(kubestellar: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Carried]:
    folder: Path = tmp_path_factory.mktemp("carried") / "repository"
    live_fleet = LiveFleet(kubestellar, folder, "carried", {name: name for name in ("manager", *WORKERS)})
    live_fleet.commit(*documents())
    applied = live_fleet.apply()
    assert applied.code == 0, applied
    carried = Carried(live_fleet)
    yield carried
    carried.clean()


@pytest.fixture
def name(carried: Carried, unique: str) -> Iterator[str]:
    """A name for a job, which is gone after the test."""
    eventually(lambda: carried.reserving() == 0)
    yield unique
    carried.remove(unique)


@pytest.fixture
def more_important(carried: Carried, name: str) -> Iterator[str]:
    """The name of a second job, and of a priority class above that of the first."""
    second = f"{name}-first"
    carried.manager.create({**native("WorkloadPriorityClass", second), "value": 1000})
    yield second
    carried.remove(second)
    carried.manager.delete(f"{KUEUE_ROOT}/workloadpriorityclasses/{second}")


def placed(carried: Carried, name: str) -> str:
    """Apply once the job has quota, and say where it went."""
    eventually(lambda: carried.is_true(name, "QuotaReserved"))
    applied = carried.live_fleet.apply("--wait", "0")
    assert applied.code == 0, applied
    return carried.label(name)


def is_complete(found: dict[str, Any] | None) -> bool:
    conditions = ((found or {}).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def test_first_apply_brings_up_a_queue_that_takes_jobs_and_leaves_nothing_to_do(carried: Carried) -> None:
    conditions = carried.live_fleet.queue(QUEUE, "manager")["status"]["conditions"]
    assert [one["status"] for one in conditions if one["type"] == "Active"] == ["True"]
    left = carried.live_fleet.plan()
    assert (left.code, left.record["placements"]) == (0, [])


def test_job_runs_on_the_chosen_worker_alone_and_its_end_frees_the_quota(carried: Carried, name: str) -> None:
    carried.submit(carried_job(name, cpu="1", gpu="2", count=2, selector={"kubernetes.io/hostname": "gpu-1"}))
    eventually(lambda: carried.is_true(name, "QuotaReserved"))
    uid = carried.workload(name)["metadata"]["uid"]
    planned = carried.live_fleet.plan()
    assert planned.code == 2
    assert [(step["verb"], step["cluster"]) for step in planned.record["placements"]] == [("place", "worker2")]
    assert not carried.label(name)
    assert placed(carried, name) == "worker2"
    assert "worker1: no node with instance=a100" in carried.message(name)
    eventually(lambda: carried.nodes_of(name, "worker2") == {"gpu-1"})
    eventually(lambda: is_complete(carried.job(name, "worker2")))
    hub = carried.job(name)
    assert hub and hub["spec"]["suspend"] is True
    pod = hub["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"instance": "a100", "kubernetes.io/hostname": "gpu-1"}
    assert [one["key"] for one in pod["tolerations"]] == ["gpu"]
    assert carried.workload(name)["metadata"]["uid"] == uid
    assert carried.job(name, "worker1") is None

    def returned() -> bool:
        return_status(carried.live_fleet.sandbox, *WORKERS)
        return carried.is_true(name, "Finished")

    eventually(returned)
    eventually(lambda: carried.reserving() == 0)
    assert carried.live_fleet.apply("--wait", "0").code == 0
    assert not carried.label(name)
    eventually(lambda: carried.job(name, "worker2") is None)


def test_end_is_told_by_kfleet_where_no_status_comes_back(carried: Carried, name: str, kfleet: Kfleet) -> None:
    wanted = carried_job(name, cpu="1", selector={"instance": "spot"})
    carried.submit({**wanted, "spec": {**wanted["spec"], "ttlSecondsAfterFinished": 3600}})
    cluster = placed(carried, name)

    def told() -> bool:
        shown = carried.live_fleet.run("status", "-o", "json").record["jobs"]
        return [one["state"] for one in shown if one["job"] == f"{NAMESPACE}/{name}"] == ["complete"]

    eventually(told)
    copy = carried.job(name, cluster)
    assert copy and "ttlSecondsAfterFinished" not in copy["spec"]
    assert "kueue.x-k8s.io/queue-name" not in copy["metadata"]["labels"]
    assert carried.live_fleet.apply("--wait", "0").code == 0
    assert carried.is_true(name, "Finished")
    eventually(lambda: carried.reserving() == 0)
    text = carried.live_fleet.run("status").out
    assert f"jobs on {cluster}: 1 finished" in text
    # The copy stays for a while, so that its status can come back.
    assert carried.label(name) == cluster and carried.live_fleet.plan().record["placements"] == []
    assert kfleet("explain", "workload").returncode == 1


def test_evicted_job_leaves_the_worker_and_comes_again_with_quota(carried: Carried, name: str) -> None:
    carried.submit(carried_job(name, cpu="1", seconds=3600))
    cluster = placed(carried, name)

    def is_marked() -> bool:
        assert carried.live_fleet.apply("--wait", "0").code == 0
        found = carried.job(name) or {}
        return str(found["metadata"]["annotations"].get("kfleet.dev/placement-ran")) == cluster

    eventually(is_marked)
    assert carried.label(name) == cluster and carried.live_fleet.plan().record["placements"] == []
    path = f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{carried.workload(name)['metadata']['name']}"
    carried.manager.patch(path, {"spec": {"active": False}})
    eventually(lambda: not carried.is_true(name, "QuotaReserved"))
    assert carried.live_fleet.apply("--wait", "0").code == 0
    hub = carried.job(name)
    assert hub and not carried.label(name)
    assert "nodeSelector" not in hub["spec"]["template"]["spec"]
    own = {key: value for key, value in hub["metadata"]["annotations"].items() if key.startswith("kfleet.dev/")}
    assert own == {"kfleet.dev/placement": f'{{"cluster": "{cluster}"}}'}
    eventually(lambda: carried.job(name, cluster) is None)
    carried.manager.patch(path, {"spec": {"active": True}})
    assert placed(carried, name) in WORKERS


def test_preempted_job_leaves_the_worker_to_a_more_important_one(
    carried: Carried, name: str, more_important: str
) -> None:
    """Kueue takes the quota back while the job runs; the pods of both would fit on the nodes."""
    spot, gpus = {"cpu": "8"}, {"cpu": "100%", "nvidia.com/gpu": "100%"}
    quota = [{"flavor": "spot", "resources": spot}, {"flavor": "a100", "resources": gpus}]
    carried.live_fleet.commit(*documents(quota=quota, preemption={"withinClusterQueue": "LowerPriority"}))
    try:
        assert carried.live_fleet.apply("--wait", "0").code == 0
        carried.submit(carried_job(name, cpu="10", seconds=3600, selector={"instance": "spot"}))
        cluster = placed(carried, name)
        eventually(lambda: carried.job(name, cluster))
        wanted = carried_job(more_important, cpu="10", seconds=3600, selector={"instance": "spot"})
        wanted["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = more_important
        carried.submit(wanted)
        eventually(lambda: not carried.is_true(name, "QuotaReserved"))
        assert carried.is_true(name, "Preempted")
        assert placed(carried, more_important) in WORKERS
        assert not carried.label(name)
        eventually(lambda: carried.job(name, cluster) is None)
        eventually(lambda: carried.job(more_important, carried.label(more_important)))
    finally:
        carried.live_fleet.commit(*documents())
        assert carried.live_fleet.apply("--wait", "0").code == 0


def test_deleted_job_leaves_the_worker_and_frees_its_quota(carried: Carried, name: str) -> None:
    carried.submit(carried_job(name, cpu="1", seconds=3600))
    cluster = placed(carried, name)
    eventually(lambda: carried.job(name, cluster))
    carried.manager.delete(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")
    eventually(lambda: carried.job(name, cluster) is None)
    eventually(lambda: carried.reserving() == 0)


def test_check_tells_what_would_be_carried(carried: Carried, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    for manifest, verdict in (
        (carried_job("a", cpu="1"), "admitted"),
        (partly(carried_job("a", cpu="10", count=20)), "never"),
    ):
        path.write_text(fast_yaml.safe_dump(manifest))
        (found,) = carried.live_fleet.run("check", str(path), "--live", "-o", "json").record["jobs"]
        assert found["verdict"] == verdict, found


def partly(manifest: Document) -> Document:
    """A job that Kueue may start with one pod."""
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def test_job_that_fits_nowhere_waits_and_says_why(carried: Carried, name: str) -> None:
    carried.submit(carried_job(name, cpu="20", selector={"instance": "spot"}))
    assert placed(carried, name) == ""
    assert carried.message(name).startswith("no cluster has room for 1 x (cpu 20) on spot")
    left = carried.live_fleet.plan()
    assert (left.code, left.record["placements"]) == (0, [])
    explained = carried.live_fleet.run(f"explain workload {NAMESPACE}/{name}")
    assert "worker1: no node is large enough, cpu 16 at most" in explained.out
    missing = carried.live_fleet.run(f"explain workload {NAMESPACE}/nobody")
    assert missing.code == 1 and "no job of this name has quota" in missing.err


def test_workload_that_no_job_stands_behind_is_told_why_it_waits(carried: Carried, name: str) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "template": template}]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    carried.manager.create({**kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
    path = f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{name}"
    try:
        eventually(lambda: carried.manager.get(path)["status"]["admissionChecks"])
        assert carried.live_fleet.apply("--wait", "0").code == 0
        (check,) = carried.manager.get(path)["status"]["admissionChecks"]
        assert check["message"].startswith("its job is no job of a kind that it could carry")
        assert carried.live_fleet.plan().record["placements"] == []
    finally:
        carried.manager.delete(path)


def test_job_of_a_worker_that_leaves_goes_to_another_one(carried: Carried, name: str) -> None:
    carried.submit(carried_job(name, cpu="1", seconds=3600, selector={"instance": "spot"}))
    first = placed(carried, name)
    eventually(lambda: carried.job(name, first))
    other = next(worker for worker in WORKERS if worker != first)
    carried.live_fleet.commit(*documents(clusters={"names": [other]}))
    try:
        assert carried.live_fleet.apply("--wait", "0").code == 0
        assert not carried.label(name)
        eventually(lambda: not carried.job(name, first))
        assert placed(carried, name) == other
        eventually(lambda: carried.job(name, other))
    finally:
        carried.live_fleet.commit(*documents())
        assert carried.live_fleet.apply("--wait", "0").code == 0
    assert carried.label(name) == other


def test_quota_and_places_follow_cluster_metrics_up_and_down(carried: Carried, name: str) -> None:
    carried.report("worker1", "2")
    carried.report("worker2", "3")
    policy = {"capacity": {"shrinkDelay": "0s"}}
    carried.live_fleet.commit(*documents("clusterMetrics"), policy=policy)
    try:
        assert carried.live_fleet.apply("--wait", "0").code == 0
        assert carried.quota("spot") == "5"
        carried.submit(carried_job(name, cpu="3", seconds=3600, selector={"instance": "spot"}))
        assert placed(carried, name) == "worker2"
        assert "worker1: no node is large enough, cpu 2 at most" in carried.message(name)
        for first, second, total in (("8", "1", "9"), ("1", "1", "2")):
            carried.report("worker1", first)
            carried.report("worker2", second)
            assert carried.live_fleet.apply("--wait", "0").code == 0
            assert (carried.quota("spot"), carried.label(name)) == (total, "worker2")
    finally:
        for worker in WORKERS:
            carried.manager.delete(f"/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics/{worker}")
        carried.live_fleet.commit(*documents())
        assert carried.live_fleet.apply("--wait", "0").code == 0
