"""Nodes, ClusterMetrics and MasterQueues of real clusters become quota, and a recorded look stands in for them."""

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from reconciler import cli
from reconciler.capacity.nodes import find_report
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.controller.connections import Clusters
from reconciler.controller.cycle import Cycle
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import node_manifest
from tests import fast_yaml
from tests.builders import announcement, main_job, main_tenant, master_queue, observed_flavor, open_queue
from tests.cluster.capacity.nats_servers import running
from tests.cluster.capacity.pool_live_fleet import LEDGER, SHORT, PoolLiveFleet
from tests.cluster.conftest import is_node_ready
from tests.cluster.live_fleet import LiveFleet, MakeLiveFleet
from tests.support import eventually, kfleet_program

METRICS = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
CRDS = Path(cli.__file__).parents[1] / "crds"


@pytest.fixture(autouse=True)
def _clean_ledger(live_fleet: LiveFleet) -> Iterator[None]:
    yield
    if live_fleet.api().find(LEDGER.format(live_fleet.name)):
        live_fleet.api().delete(LEDGER.format(live_fleet.name))


def cpu_of(live_fleet: LiveFleet, cluster: str = "worker1") -> str:
    (group,) = live_fleet.queue(live_fleet.name, cluster)["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def test_quota_follows_the_nodes_up_and_down(live_fleet: LiveFleet, nodes: list[str]) -> None:
    flavor = observed_flavor(
        live_fleet.name, "nodes", nodeLabels={"test": live_fleet.name}, capacity={"headroom": "25%"}
    )
    policy = {"capacity": {"shrinkDelay": "0s"}}
    live_fleet.commit(flavor, open_queue(live_fleet.name, live_fleet.name, {"cpu": "100%"}), policy=policy)
    live_fleet.converge()
    assert cpu_of(live_fleet) == "12"
    live_fleet.api().patch(f"/api/v1/nodes/{nodes[0]}", {"spec": {"unschedulable": True}})
    smaller = live_fleet.plan()
    (field,) = smaller.fields(f"worker1/ClusterQueue/{live_fleet.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("12", "6", "observation")
    whole = open_queue(live_fleet.name, live_fleet.name, {"cpu": "100%"})
    live_fleet.commit(flavor, {**whole, "spec": {**whole["spec"], "cohort": live_fleet.name}}, policy=policy)
    fields = live_fleet.plan().fields(f"worker1/ClusterQueue/{live_fleet.name}")
    assert {path.rpartition(".")[2]: field["cause"] for path, field in fields.items()} == {
        "cohortName": "spec",
        "nominalQuota": "observation",
    }
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "6"
    live_fleet.api().patch(f"/api/v1/nodes/{nodes[0]}", {"spec": {"unschedulable": None}})
    # Its taint is taken off by a controller.
    eventually(lambda: not live_fleet.api().get(f"/api/v1/nodes/{nodes[0]}")["spec"].get("taints"))
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "12"


def test_shrinking_waits_and_the_ledger_remembers_since_when(live_fleet: LiveFleet, nodes: list[str]) -> None:
    flavor = observed_flavor(live_fleet.name, "nodes", nodeLabels={"test": live_fleet.name})
    documents = (flavor, open_queue(live_fleet.name, live_fleet.name, {"cpu": "100%"}))
    live_fleet.commit(*documents, policy={"capacity": {"shrinkDelay": "1h"}})
    live_fleet.converge()
    live_fleet.api().delete(f"/api/v1/nodes/{nodes[0]}")
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "16"
    ledger = json.loads(live_fleet.api().get(LEDGER.format(live_fleet.name))["data"]["ledger.json"])
    assert ledger["sources"][0]["shrinkPendingSince"].keys() >= {"cpu"}
    live_fleet.commit(*documents, policy={"capacity": {"shrinkDelay": "0s"}})
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "8"


def test_what_runs_outside_of_kueue_is_taken_off(live_fleet: LiveFleet, nodes: list[str], namespace: str) -> None:
    flavor = observed_flavor(
        live_fleet.name, "nodes", nodeLabels={"test": live_fleet.name}, capacity={"subtractOther": True}
    )
    live_fleet.commit(flavor, open_queue(live_fleet.name, live_fleet.name, {"cpu": "100%"}))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "stranger",
            "namespace": namespace,
            "annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"},
        },
        "spec": {
            "nodeName": nodes[0],
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}],
        },
    }
    live_fleet.api().create(pod)
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "13"


@pytest.mark.parametrize("cluster", ["worker1", "worker2"])
def test_what_kueue_admitted_is_not_taken_off(
    make_live_fleet: MakeLiveFleet, fleet: Sandbox, unique: str, namespace: str, cluster: str
) -> None:
    """On today's Kueue and on an older one: both must mark the pods of what they admit."""
    live_fleet, api, node = make_live_fleet(unique, {cluster: cluster}), fleet.api(cluster), f"{unique}-node"
    fleet.add_nodes(cluster, [node_manifest(node, {"cpu": "8", "pods": "110"}, {"test": unique})])
    try:
        eventually(lambda: is_node_ready(api, node))
        flavor = observed_flavor(unique, "nodes", nodeLabels={"test": unique}, capacity={"subtractOther": True})
        live_fleet.commit(flavor, open_queue(unique, unique, {"cpu": "100%"}), main_tenant(unique, unique, namespace))
        assert live_fleet.apply().code == 0
        api.create(main_job("mine", namespace, cpu="3"))
        pods = f"/api/v1/namespaces/{namespace}/pods"
        eventually(lambda: [pod for pod in api.list(pods) if pod["spec"].get("nodeName") == node], 60)
        applied = live_fleet.apply()
        assert applied.code == 0, applied.out + applied.err
        assert cpu_of(live_fleet, cluster) == "8"
        api.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/mine")
    finally:
        api.delete(f"/api/v1/nodes/{node}")
        if api.find(LEDGER.format(unique)):
            api.delete(LEDGER.format(unique))


def test_login_of_a_bus_is_read_from_a_secret(pool_live_fleet: PoolLiveFleet, tmp_path: Path, namespace: str) -> None:
    live_fleet = pool_live_fleet.live_fleet
    with running(tmp_path, 'authorization: { user: kueue, password: "hunter2" }') as server:
        live_fleet.write(
            master_queue(live_fleet.name, f"nats://{server.address}", pool_live_fleet.subject, pools=["cnaf"])
        )
        path = live_fleet.folder / "fleet" / "fleet.yaml"
        documents = list(fast_yaml.safe_load_all(path.read_text()))
        password = {"secretRef": {"namespace": namespace, "name": "bus", "key": "password"}}
        documents[0]["spec"]["nats"] = [{"servers": [server.address], "user": "kueue", "password": password}]
        path.write_text(fast_yaml.safe_dump_all(documents))
        live_fleet.commit_all()
        missing = live_fleet.plan("--observe-for", "1")
        assert missing.code == 4 and f"secret {namespace}/bus" in str(missing.record["gaps"])
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus", "namespace": namespace}}
        live_fleet.api().create({**secret, "stringData": {"password": "hunter2"}})
        heard = live_fleet.plan("--observe-for", "1")
        assert heard.code == 2 and "hunter2" not in heard.out + heard.err, heard.out + heard.err


def test_fleet_without_live_capacity_asks_for_nothing(live_fleet: LiveFleet) -> None:
    live_fleet.commit(open_queue(live_fleet.name, live_fleet.name, {"cpu": "4"}), _static(live_fleet.name))
    live_fleet.converge()
    assert live_fleet.api().find(LEDGER.format(live_fleet.name)) is None
    observed = live_fleet.run("observe")
    assert (observed.code, observed.out) == (0, "no capacity of this fleet is observed\n")


def _static(name: str) -> dict[str, object]:
    return observed_flavor(name, "static", capacity={"resources": {"cpu": "8"}})


@pytest.mark.usefixtures("definitions")
def test_metrics_are_published_and_read_again(wide_live_fleet: LiveFleet) -> None:
    """One worker is read directly and published; the quota of a flavor then comes from what was published."""
    manager, worker, _ = wide_live_fleet.contexts
    wide_live_fleet.write(
        observed_flavor(wide_live_fleet.name, "clusterMetrics", clusters={"names": [worker]}),
        open_queue(wide_live_fleet.name, wide_live_fleet.name, {"cpu": "50%"}),
    )
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    documents = list(fast_yaml.safe_load_all(path.read_text()))
    for document in documents:
        if document["kind"] == "Cluster" and document["metadata"]["name"] == worker:
            document["spec"]["publishMetrics"] = True
        if document["kind"] == "Queue":
            document["spec"]["clusters"] = {"names": [worker]}
    path.write_text(fast_yaml.safe_dump_all(documents))
    wide_live_fleet.commit_all()
    wide_live_fleet.apply()
    report = wide_live_fleet.api(manager).get(f"{METRICS}/{worker}")
    nodes = {node["metadata"]["name"]: node for node in wide_live_fleet.api(worker).list("/api/v1/nodes")}
    assert [node["name"] for node in report["status"]["nodes"]] == sorted(nodes)
    assert all(
        node["allocatableResources"] == nodes[node["name"]]["status"]["allocatable"]
        for node in report["status"]["nodes"]
    )
    applied = wide_live_fleet.apply()
    assert applied.code == 0, applied.out + applied.err
    total = sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes.values())
    assert int(cpu_of(wide_live_fleet, worker)) == total // 2
    assert wide_live_fleet.api(manager).get(f"{METRICS}/{worker}")["metadata"]["generation"] == 1
    wide_live_fleet.api(manager).delete(LEDGER.format(wide_live_fleet.name))


@pytest.mark.usefixtures("definitions")
def test_quota_follows_cluster_metrics(live_fleet: LiveFleet) -> None:
    api = live_fleet.api()
    api.create(
        {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": "worker1"}}
    )
    labels = {"instance": live_fleet.name}
    report = [
        {"name": "a", "labels": labels, "allocatableResources": {"cpu": "8"}},
        {"name": "b", "labels": labels, "allocatableResources": {"cpu": "4"}, "unschedulable": True},
        {"name": "c", "labels": {}, "allocatableResources": {"cpu": "100"}},
    ]
    api.patch(f"{METRICS}/worker1/status", {"status": {"nodes": report}})
    flavor = observed_flavor(live_fleet.name, "clusterMetrics", nodeLabels=labels)
    live_fleet.commit(
        flavor, open_queue(live_fleet.name, live_fleet.name, {"cpu": "50%"}), policy={"capacity": {"shrinkDelay": "0s"}}
    )
    applied = live_fleet.apply()
    assert applied.code == 0, applied.out + applied.err
    assert cpu_of(live_fleet) == "4"
    assert "1 nodes belong to no flavor: c" in applied.err
    api.patch(f"{METRICS}/worker1/status", {"status": {"nodes": report[1:]}})
    assert live_fleet.apply().code == 0
    assert cpu_of(live_fleet) == "0"
    api.patch(f"{METRICS}/worker1/status", {"status": {"nodes": report}})
    assert live_fleet.apply().code == 0
    # A report that is gone is not one of a cluster without nodes.
    api.delete(f"{METRICS}/worker1")
    missing = live_fleet.apply()
    assert missing.code == 4 and "ClusterMetrics: no cluster of the fleet has one" in missing.out
    assert "its capacity stays as it was last seen" in missing.err and cpu_of(live_fleet) == "4"
    # Nor is one that its agent has not written yet, or that came back from a backup without its status.
    api.create(
        {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": "worker1"}}
    )
    silent = live_fleet.apply()
    assert silent.code == 4 and "ClusterMetrics: no cluster of the fleet has one" in silent.out
    assert cpu_of(live_fleet) == "4"
    api.delete(f"{METRICS}/worker1")


@pytest.mark.usefixtures("definitions")
def test_metrics_of_a_cluster_are_found_on_whichever_cluster_they_lie(fleet: Sandbox, unique: str) -> None:
    api, name = fleet.api("worker1"), ClusterName(unique)
    dead = ApiServer(ClusterName("dead"), ClusterLogin("https://127.0.0.1:1", ""))
    clients = {ClusterName("manager"): fleet.api("manager"), dead.cluster: dead, api.cluster: api}
    report = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": unique}}
    api.create(report)
    made = api.patch(f"{METRICS}/{unique}/status", {"status": {"nodes": []}})
    assert find_report(name, clients, ClusterName("manager")) == made
    api.delete(f"{METRICS}/{unique}")
    # Where somebody did not answer, nobody knows that there is none.
    with pytest.raises(ClusterError):
        find_report(name, clients, ClusterName("manager"))
    del clients[dead.cluster]
    assert find_report(name, clients, ClusterName("manager")) is None
    # Without the manager's word nobody else's counts: it may say something else.
    with pytest.raises(ClusterError):
        find_report(name, {dead.cluster: dead, **clients}, dead.cluster)


def with_master_queue_of_the_cluster(pool_live_fleet: PoolLiveFleet) -> LiveFleet:
    live_fleet = pool_live_fleet.live_fleet
    live_fleet.api().create(pool_live_fleet.master())
    live_fleet.write()
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = list(fast_yaml.safe_load_all(path.read_text()))
    documents[0]["spec"]["masterQueues"] = {"fromCluster": True}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()
    return live_fleet


def lists_of_master_queues(caplog: pytest.LogCaptureFixture) -> list[str]:
    paths = [vars(record)["path"] for record in caplog.records if record.msg == "request"]
    return [path for path in paths if "masterqueues" in path and "watch=" not in path]


@pytest.mark.usefixtures("definitions")
def test_plan_and_cycle_read_the_master_queues_once(
    pool_live_fleet: PoolLiveFleet, caplog: pytest.LogCaptureFixture
) -> None:
    live_fleet = with_master_queue_of_the_cluster(pool_live_fleet)
    with caplog.at_level("DEBUG", logger="reconciler.clients.kubernetes"):
        assert live_fleet.plan(*SHORT).code == 2
    assert len(lists_of_master_queues(caplog)) == 1
    caplog.clear()
    clusters = Clusters(timedelta(seconds=30), lambda _reason: None)
    cycle = Cycle(clusters, lambda _reason: None)
    cycle.begin()
    try:
        with caplog.at_level("DEBUG", logger="reconciler.clients.kubernetes"):
            report = cycle.run(live_fleet.computed(), "", lambda: "this test writes nothing")
    finally:
        cycle.close()
        clusters.close()
    assert [queue.name for queue in report.rendered.spec.master_queues] == [live_fleet.name]
    assert len(lists_of_master_queues(caplog)) == 1


@pytest.mark.usefixtures("definitions")
def test_master_queue_is_read_from_the_cluster(pool_live_fleet: PoolLiveFleet) -> None:
    live_fleet = with_master_queue_of_the_cluster(pool_live_fleet)
    command = [kfleet_program(), "observe", "--watch", "--repo", str(live_fleet.folder)]
    with (
        pool_live_fleet.speaking(cnaf=announcement()),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        lines = islice(process.stdout or (), 20)  # without a bus nothing was seen yet, for ever
        assert any(f"{pool_live_fleet.subject}.cnaf" in line for line in lines)
        process.terminate()
    applied = pool_live_fleet.apply(*SHORT, cnaf=announcement())
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "8"}


def test_master_queues_that_cannot_be_listed_stop_the_run(live_fleet: LiveFleet) -> None:
    live_fleet.write()
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(
        path.read_text().replace("spec:\n  policy", "spec:\n  masterQueues: {fromCluster: true}\n  policy", 1)
    )
    live_fleet.commit_all()
    refused = live_fleet.apply()
    assert refused.code == 1 and "kfleet crds masterqueues" in refused.err
