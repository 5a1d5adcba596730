"""The whole way: quota from real Kueue, a cluster from kfleet, carried there by real KubeStellar, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import Document, native, observed_flavor
from tests.cluster.accounts import account
from tests.cluster.kubestellar.downsynced import (
    MANY_DELETES,
    NAMESPACE,
    QUEUE,
    SPOT,
    WORKERS,
    Downsynced,
    documents,
    downsynced_job,
)
from tests.cluster.kubestellar.status_addon import return_status
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import Kfleet, eventually


@pytest.fixture(scope="module")
def downsynced(kubestellar: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Downsynced]:
    folder: Path = tmp_path_factory.mktemp("carried") / "repository"
    live_fleet = LiveFleet(kubestellar, folder, "carried", {name: name for name in ("manager", *WORKERS)})
    live_fleet.commit(*documents())
    applied = live_fleet.apply()
    assert applied.code == 0, applied
    downsynced = Downsynced(live_fleet)
    yield downsynced
    downsynced.clean()


@pytest.fixture
def name(downsynced: Downsynced, unique: str) -> Iterator[str]:
    """A name for a job, which is gone after the test."""
    eventually(lambda: downsynced.reserving() == 0)
    yield unique
    downsynced.remove(unique)


@pytest.fixture
def more_important(downsynced: Downsynced, name: str) -> Iterator[str]:
    """The name of a second job, and of a priority class above that of the first."""
    second = f"{name}-first"
    downsynced.manager.create({**native("WorkloadPriorityClass", second), "value": 1000})
    yield second
    downsynced.remove(second)
    downsynced.manager.delete(f"{KUEUE_ROOT}/workloadpriorityclasses/{second}")


def placed(downsynced: Downsynced, name: str) -> str:
    """Apply once the job has quota, and say where it went."""
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    applied = downsynced.live_fleet.apply("--wait", "0")
    assert applied.code == 0, applied
    return downsynced.label(name)


def is_complete(found: dict[str, Any] | None) -> bool:
    conditions = ((found or {}).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def test_first_apply_brings_up_a_queue_that_takes_jobs_and_leaves_nothing_to_do(downsynced: Downsynced) -> None:
    conditions = downsynced.live_fleet.queue(QUEUE, "manager")["status"]["conditions"]
    assert [one["status"] for one in conditions if one["type"] == "Active"] == ["True"]
    left = downsynced.live_fleet.plan()
    assert (left.code, left.record["placements"]) == (0, [])


def test_job_runs_on_the_chosen_worker_alone_and_its_end_frees_the_quota(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="1", gpu="2", count=2, selector={"kubernetes.io/hostname": "gpu-1"}))
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    uid = downsynced.workload(name)["metadata"]["uid"]
    planned = downsynced.live_fleet.plan()
    assert planned.code == 2
    assert [(step["verb"], step["cluster"]) for step in planned.record["placements"]] == [("place", "worker2")]
    assert not downsynced.label(name)
    assert placed(downsynced, name) == "worker2"
    assert_shown_to_users(downsynced, name, "worker1: no node with instance=a100")
    eventually(lambda: downsynced.nodes_of(name, "worker2") == {"gpu-1"})
    eventually(lambda: is_complete(downsynced.job(name, "worker2")))
    hub = downsynced.job(name)
    assert hub and hub["spec"]["suspend"] is True
    pod = hub["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"instance": "a100", "kubernetes.io/hostname": "gpu-1"}
    assert [one["key"] for one in pod["tolerations"]] == ["gpu"]
    assert downsynced.workload(name)["metadata"]["uid"] == uid
    assert downsynced.job(name, "worker1") is None

    def returned() -> bool:
        return_status(downsynced.live_fleet.sandbox, *WORKERS)
        return downsynced.is_true(name, "Finished")

    eventually(returned)
    eventually(lambda: downsynced.reserving() == 0)
    assert downsynced.live_fleet.apply("--wait", "0").code == 0
    assert not downsynced.label(name)
    eventually(lambda: downsynced.job(name, "worker2") is None)


def assert_shown_to_users(downsynced: Downsynced, name: str, text: str) -> None:
    """In the Workload, and in an Event that Kueue makes of it for users who may not see Workloads."""
    assert text in downsynced.message(name)
    eventually(lambda: any(text in message for message in downsynced.events(name)))


def test_end_is_reported_by_kfleet_where_no_status_comes_back(
    downsynced: Downsynced, name: str, kfleet: Kfleet
) -> None:
    wanted = downsynced_job(name, cpu="1", selector={"instance": "spot"})
    downsynced.submit({**wanted, "spec": {**wanted["spec"], "ttlSecondsAfterFinished": 3600}})
    cluster = placed(downsynced, name)

    def told() -> bool:
        shown = downsynced.live_fleet.run("status", "-o", "json").record["jobs"]
        return [one["state"] for one in shown if one["job"] == f"{NAMESPACE}/{name}"] == ["complete"]

    eventually(told)
    copy = downsynced.job(name, cluster)
    assert copy and "ttlSecondsAfterFinished" not in copy["spec"]
    assert "kueue.x-k8s.io/queue-name" not in copy["metadata"]["labels"]
    assert downsynced.live_fleet.apply("--wait", "0").code == 0
    assert downsynced.is_true(name, "Finished")
    eventually(lambda: downsynced.reserving() == 0)
    assert is_complete(downsynced.job(name))
    assert f"jobs on {cluster}: 1 finished" in downsynced.live_fleet.run("status").out
    assert downsynced.live_fleet.apply("--wait", "0").code == 0
    own = (downsynced.job(name) or {})["metadata"]
    assert not downsynced.label(name) and "kfleet.dev/placement-ended" in own["annotations"]
    eventually(lambda: downsynced.job(name, cluster) is None)
    # Also where the Workload that says so is made again, as after its time to live.
    downsynced.manager.delete(
        f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{downsynced.workload(name)['metadata']['name']}"
    )
    left = downsynced.live_fleet.plan()
    assert (left.code, left.record["placements"]) == (0, [])
    assert "See kfleet why." in " ".join(kfleet("explain", "workload").stdout.split())


def test_evicted_job_leaves_the_worker_and_comes_again_with_quota(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="1", seconds=3600))
    cluster = placed(downsynced, name)

    def is_marked() -> bool:
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
        found = downsynced.job(name) or {}
        return str(found["metadata"]["annotations"].get("kfleet.dev/placement-ran")) == cluster

    eventually(is_marked)
    assert downsynced.label(name) == cluster and downsynced.live_fleet.plan().record["placements"] == []
    path = f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{downsynced.workload(name)['metadata']['name']}"
    downsynced.manager.patch(path, {"spec": {"active": False}})
    eventually(lambda: not downsynced.is_true(name, "QuotaReserved"))
    assert downsynced.live_fleet.apply("--wait", "0").code == 0
    hub = downsynced.job(name)
    assert hub and not downsynced.label(name)
    assert "nodeSelector" not in hub["spec"]["template"]["spec"]
    own = {key: value for key, value in hub["metadata"]["annotations"].items() if key.startswith("kfleet.dev/")}
    assert own == {"kfleet.dev/placement": f'{{"cluster": "{cluster}"}}'}
    eventually(lambda: downsynced.job(name, cluster) is None)
    downsynced.manager.patch(path, {"spec": {"active": True}})
    assert placed(downsynced, name) in WORKERS


def test_preempted_job_leaves_the_worker_to_a_more_important_one(
    downsynced: Downsynced, name: str, more_important: str
) -> None:
    """Kueue takes the quota back while the job runs; the pods of both would fit on the nodes."""
    spot, gpus = {"cpu": "8"}, {"cpu": "100%", "nvidia.com/gpu": "100%"}
    quota = [{"flavor": "spot", "resources": spot}, {"flavor": "a100", "resources": gpus}]
    downsynced.live_fleet.commit(*documents(quota=quota, preemption={"withinClusterQueue": "LowerPriority"}))
    try:
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
        downsynced.submit(downsynced_job(name, cpu="10", seconds=3600, selector={"instance": "spot"}))
        cluster = placed(downsynced, name)
        eventually(lambda: downsynced.job(name, cluster))
        wanted = downsynced_job(more_important, cpu="10", seconds=3600, selector={"instance": "spot"})
        wanted["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = more_important
        downsynced.submit(wanted)
        eventually(lambda: not downsynced.is_true(name, "QuotaReserved"))
        assert downsynced.is_true(name, "Preempted")
        assert placed(downsynced, more_important) in WORKERS
        assert not downsynced.label(name)
        eventually(lambda: downsynced.job(name, cluster) is None)
        eventually(lambda: downsynced.job(more_important, downsynced.label(more_important)))
    finally:
        downsynced.live_fleet.commit(*documents())
        assert downsynced.live_fleet.apply("--wait", "0").code == 0


def renamed() -> tuple[Document, ...]:
    """The same nodes by another flavor."""
    gpus = {"cpu": "100%", "nvidia.com/gpu": "100%"}
    quota = [{"flavor": "cheap", "resources": {"cpu": "100%"}}, {"flavor": "a100", "resources": gpus}]
    _, *rest = documents(quota=quota)
    return (observed_flavor("cheap", "nodes", nodeLabels=SPOT), *rest)


def test_job_with_quota_of_a_flavor_that_got_another_name_goes_to_its_nodes(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="1", seconds=3600))
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    downsynced.live_fleet.commit(*renamed(), policy=MANY_DELETES)
    try:
        assert downsynced.live_fleet.apply("--wait", "0").code in {0, 4}
        cluster = downsynced.label(name)
        assert cluster in WORKERS
        eventually(lambda: downsynced.job(name, cluster))
        hub = downsynced.job(name) or {}
        assert hub["spec"]["template"]["spec"]["nodeSelector"] == SPOT
        assert downsynced.is_true(name, "QuotaReserved")
    finally:
        downsynced.remove(name)
        downsynced.live_fleet.commit(*documents(), policy=MANY_DELETES)
        eventually(lambda: not (downsynced.live_fleet.apply("--wait", "0").code or downsynced.live_fleet.plan().code))


WHERE = {"kubestellar.io/cluster": "worker1"}
MAY_SUBMIT = [{"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["create", "patch"]}]


def refusal_of(user: ApiServer, downsynced: Downsynced, name: str, labels: dict[str, str]) -> str:
    """Why a user may not submit a job with these labels; it names no queue."""
    wanted = downsynced_job(name, cpu="1")
    try:
        user.create({**wanted, "metadata": {**wanted["metadata"], "labels": labels}})
    except ClusterError as error:
        return error.problem
    downsynced.manager.delete(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")
    return ""


def test_label_of_a_cluster_is_set_by_kfleet_alone(downsynced: Downsynced, name: str) -> None:
    with account(downsynced.manager, name, MAY_SUBMIT) as user:
        # A policy is in force a moment after it was written.
        eventually(lambda: "set by kfleet alone" in refusal_of(user, downsynced, name, WHERE))
        assert "set by kfleet alone" in refusal_of(user, downsynced, name, {"kfleet.dev/placed": "true"})
        assert refusal_of(user, downsynced, name, {"team": "x"}) == ""
        eventually(lambda: downsynced.job(name) is None)
        downsynced.submit(downsynced_job(name, cpu="1", seconds=3600, selector={"instance": "spot"}))
        path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
        with pytest.raises(ClusterError, match="set by kfleet alone"):
            user.patch(path, {"metadata": {"labels": WHERE}})
        with pytest.raises(ClusterError, match="set by kfleet alone"):
            user.patch(f"{path}/status", {"metadata": {"labels": {**WHERE, "kfleet.dev/placed": "true"}}})
        assert placed(downsynced, name) in WORKERS
        user.patch(path, {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "mine"}}})
        for changed in ({"kfleet.dev/placement": None}, {"kfleet.dev/placement-ended": "{}"}):
            with pytest.raises(ClusterError, match="changed by kfleet alone"):
                user.patch(path, {"metadata": {"annotations": changed}})
        user.patch(path, {"metadata": {"labels": {"kubestellar.io/cluster": None}}})


def test_job_that_an_administrator_labelled_is_not_downsynced_and_says_what_to_do(
    downsynced: Downsynced, name: str
) -> None:
    wanted = downsynced_job(name, cpu="1", seconds=3600)
    wanted["metadata"]["labels"].update(WHERE)
    downsynced.submit(wanted)
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    assert downsynced.live_fleet.apply("--wait", "0").code == 0
    refused = "it has the label kubestellar.io/cluster=worker1, which only kfleet sets: take it off"
    assert downsynced.message(name) == refused
    assert f"job {NAMESPACE}/{name}: {refused}" in downsynced.live_fleet.run("status").out
    assert downsynced.job(name, "worker1") is None
    downsynced.manager.patch(
        f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}", {"metadata": {"labels": dict.fromkeys(WHERE)}}
    )
    assert placed(downsynced, name) in WORKERS


def test_deleted_job_leaves_the_worker_and_frees_its_quota(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="1", seconds=3600))
    cluster = placed(downsynced, name)
    eventually(lambda: downsynced.job(name, cluster))
    downsynced.manager.delete(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")
    eventually(lambda: downsynced.job(name, cluster) is None)
    eventually(lambda: downsynced.reserving() == 0)


def test_check_tells_what_would_be_downsynced(downsynced: Downsynced, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    for manifest, verdict in (
        (downsynced_job("a", cpu="1"), "admitted"),
        (partly(downsynced_job("a", cpu="10", count=20)), "never"),
    ):
        path.write_text(fast_yaml.safe_dump(manifest))
        (found,) = downsynced.live_fleet.run("check", str(path), "--live", "-o", "json").record["jobs"]
        assert found["verdict"] == verdict, found


def partly(manifest: Document) -> Document:
    """A job that Kueue may start with one pod."""
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def test_job_that_fits_nowhere_waits_and_says_why(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="20", selector={"instance": "spot"}))
    assert placed(downsynced, name) == ""
    assert downsynced.message(name).startswith("no cluster has room for 1 x (cpu 20) on spot")
    left = downsynced.live_fleet.plan()
    assert (left.code, left.record["placements"]) == (0, [])
    explained = downsynced.live_fleet.run(f"why {NAMESPACE}/{name}").out.splitlines()[0]
    assert explained.startswith("waits: no cluster has room for 1 x (cpu 20) on spot")
    assert "worker1: no node is large enough, cpu 16 at most" in explained
    missing = downsynced.live_fleet.run(f"why {NAMESPACE}/unknown-job")
    assert missing.code == 1 and "no cluster of the fleet has a job, Workload or pod of this name" in missing.err


def test_workload_that_no_job_stands_behind_says_why_it_waits(downsynced: Downsynced, name: str) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "template": template}]}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    downsynced.manager.create({**kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
    path = f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{name}"
    try:
        eventually(lambda: downsynced.manager.get(path)["status"]["admissionChecks"])
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
        (check,) = downsynced.manager.get(path)["status"]["admissionChecks"]
        assert check["message"].startswith("its job is no job of a kind that it could carry")
        assert downsynced.live_fleet.plan().record["placements"] == []
    finally:
        downsynced.manager.delete(path)


def test_job_of_a_worker_that_leaves_goes_to_another_one(downsynced: Downsynced, name: str) -> None:
    downsynced.submit(downsynced_job(name, cpu="1", seconds=3600, selector={"instance": "spot"}))
    first = placed(downsynced, name)
    eventually(lambda: downsynced.job(name, first))
    other = next(worker for worker in WORKERS if worker != first)
    downsynced.live_fleet.commit(*documents(clusters={"names": [other]}))
    try:
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
        assert not downsynced.label(name)
        eventually(lambda: not downsynced.job(name, first))
        assert placed(downsynced, name) == other
        eventually(lambda: downsynced.job(name, other))
    finally:
        downsynced.live_fleet.commit(*documents())
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
    assert downsynced.label(name) == other


def test_quota_and_places_follow_cluster_metrics_up_and_down(downsynced: Downsynced, name: str) -> None:
    downsynced.report("worker1", "2")
    downsynced.report("worker2", "3")
    policy = {"capacity": {"shrinkDelay": "0s"}}
    downsynced.live_fleet.commit(*documents("clusterMetrics"), policy=policy)
    try:
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
        assert downsynced.quota("spot") == "5"
        downsynced.submit(downsynced_job(name, cpu="3", seconds=3600, selector={"instance": "spot"}))
        assert placed(downsynced, name) == "worker2"
        assert "worker1: no node is large enough, cpu 2 at most" in downsynced.message(name)
        for first, second, total in (("8", "1", "9"), ("1", "1", "2")):
            downsynced.report("worker1", first)
            downsynced.report("worker2", second)
            assert downsynced.live_fleet.apply("--wait", "0").code == 0
            assert (downsynced.quota("spot"), downsynced.label(name)) == (total, "worker2")
        # The job is reserved and never Admitted, and uses it all the same.
        shown = downsynced.live_fleet.run("status")
        assert "flavor spot: 3 cpu are in use, the quota is 2" in shown.out + shown.err
    finally:
        for worker in WORKERS:
            downsynced.manager.delete(f"/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics/{worker}")
        downsynced.live_fleet.commit(*documents())
        assert downsynced.live_fleet.apply("--wait", "0").code == 0
