"""Nodes, ClusterMetrics and MasterQueues of real clusters become quota, and a recorded look stands in for them."""

import json
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import yaml

from reconciler import cli
from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.observations.metrics import find_report
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.nodes import node_manifest
from tests.cluster.capacity.nats_servers import running
from tests.cluster.capacity.pools import LEDGER, SHORT, PoolWorld
from tests.cluster.engine.conftest import MakeWorld
from tests.cluster.engine.worlds import World
from tests.documents import job, tenant
from tests.support import eventually, kfleet_program
from tests.unit.capacity.documents import announcement, master_queue, observed_flavor, share_queue

METRICS = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
CRDS = Path(cli.__file__).parents[1] / "crds"


@pytest.fixture(autouse=True)
def _clean_ledger(world: World) -> Iterator[None]:
    yield
    if world.api().find(LEDGER.format(world.name)):
        world.api().delete(LEDGER.format(world.name))


@pytest.fixture
def nodes(fleet: Sandbox, unique: str) -> Iterator[list[str]]:
    """Two nodes of 8 cpus that only this test selects."""
    names = [f"{unique}-a", f"{unique}-b"]
    shape = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    fleet.add_nodes("worker1", [node_manifest(name, shape, {"test": unique}) for name in names])
    api = fleet.api("worker1")
    for name in names:
        eventually(lambda path=f"/api/v1/nodes/{name}": _is_ready(api.get(path)))
    yield names
    for name in names:
        if api.find(f"/api/v1/nodes/{name}"):
            api.delete(f"/api/v1/nodes/{name}")


def _is_ready(node: dict[str, object]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())  # type: ignore[attr-defined]
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return is_ready and not node["spec"].get("taints")  # type: ignore[index]


def cpu_of(world: World, cluster: str = "worker1") -> str:
    (group,) = world.queue(world.name, cluster)["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def test_quota_follows_the_nodes_up_and_down(world: World, nodes: list[str]) -> None:
    flavor = observed_flavor(world.name, "nodes", nodeLabels={"test": world.name}, capacity={"headroom": "25%"})
    policy = {"capacity": {"shrinkDelay": "0s"}}
    world.commit(flavor, share_queue(world.name, world.name, cpu="100%"), policy=policy)
    world.converge()
    assert cpu_of(world) == "12"
    world.api().patch(f"/api/v1/nodes/{nodes[0]}", {"spec": {"unschedulable": True}})
    smaller = world.plan()
    (field,) = smaller.fields(f"worker1/ClusterQueue/{world.name}").values()
    assert (field["old"], field["new"], field["cause"]) == ("12", "6", "observation")
    whole = share_queue(world.name, world.name, cpu="100%")
    world.commit(flavor, {**whole, "spec": {**whole["spec"], "cohort": world.name}}, policy=policy)
    fields = world.plan().fields(f"worker1/ClusterQueue/{world.name}")
    assert {path.rpartition(".")[2]: field["cause"] for path, field in fields.items()} == {
        "cohortName": "spec",
        "nominalQuota": "observation",
    }
    assert world.apply().code == 0
    assert cpu_of(world) == "6"
    world.api().patch(f"/api/v1/nodes/{nodes[0]}", {"spec": {"unschedulable": None}})
    # Its taint is taken off by a controller.
    eventually(lambda: not world.api().get(f"/api/v1/nodes/{nodes[0]}")["spec"].get("taints"))
    assert world.apply().code == 0
    assert cpu_of(world) == "12"


def test_shrinking_waits_and_the_ledger_remembers_since_when(world: World, nodes: list[str]) -> None:
    flavor = observed_flavor(world.name, "nodes", nodeLabels={"test": world.name})
    documents = (flavor, share_queue(world.name, world.name, cpu="100%"))
    world.commit(*documents, policy={"capacity": {"shrinkDelay": "1h"}})
    world.converge()
    world.api().delete(f"/api/v1/nodes/{nodes[0]}")
    assert world.apply().code == 0
    assert cpu_of(world) == "16"
    ledger = json.loads(world.api().get(LEDGER.format(world.name))["data"]["ledger.json"])
    assert ledger["sources"][0]["lowerSince"].keys() >= {"cpu"}
    world.commit(*documents, policy={"capacity": {"shrinkDelay": "0s"}})
    assert world.apply().code == 0
    assert cpu_of(world) == "8"


def test_what_runs_outside_of_kueue_is_taken_off(world: World, nodes: list[str], namespace: str) -> None:
    flavor = observed_flavor(world.name, "nodes", nodeLabels={"test": world.name}, capacity={"subtractOther": True})
    world.commit(flavor, share_queue(world.name, world.name, cpu="100%"))
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
    world.api().create(pod)
    assert world.apply().code == 0
    assert cpu_of(world) == "13"


@pytest.mark.parametrize("cluster", ["worker1", "worker2"])
def test_what_kueue_admitted_is_not_taken_off(
    make_world: MakeWorld, fleet: Sandbox, unique: str, namespace: str, cluster: str
) -> None:
    """On today's Kueue and on an older one: both must mark the pods of what they admit."""
    world, api, node = make_world(unique, {cluster: cluster}), fleet.api(cluster), f"{unique}-node"
    fleet.add_nodes(cluster, [node_manifest(node, {"cpu": "8", "pods": "110"}, {"test": unique})])
    try:
        eventually(lambda: _is_ready(api.get(f"/api/v1/nodes/{node}")))
        flavor = observed_flavor(unique, "nodes", nodeLabels={"test": unique}, capacity={"subtractOther": True})
        world.commit(flavor, share_queue(unique, unique, cpu="100%"), tenant(unique, unique, namespace))
        assert world.apply().code == 0
        api.create(job("mine", namespace, cpu="3"))
        pods = f"/api/v1/namespaces/{namespace}/pods"
        eventually(lambda: [pod for pod in api.list(pods) if pod["spec"].get("nodeName") == node], 60)
        applied = world.apply()
        assert applied.code == 0, applied.out + applied.err
        assert cpu_of(world, cluster) == "8"
        api.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/mine")
    finally:
        api.delete(f"/api/v1/nodes/{node}")
        if api.find(LEDGER.format(unique)):
            api.delete(LEDGER.format(unique))


def test_login_of_a_bus_is_read_from_a_secret(pool_world: PoolWorld, tmp_path: Path, namespace: str) -> None:
    world = pool_world.world
    with running(tmp_path, 'authorization: { user: kueue, password: "hunter2" }') as server:
        world.write(master_queue(world.name, f"nats://{server.address}", pool_world.subject, pools=["cnaf"]))
        path = world.folder / "fleet" / "fleet.yaml"
        documents = list(yaml.safe_load_all(path.read_text()))
        password = {"secretRef": {"namespace": namespace, "name": "bus", "key": "password"}}
        documents[0]["spec"]["nats"] = [{"servers": [server.address], "user": "kueue", "password": password}]
        path.write_text(yaml.safe_dump_all(documents))
        world.commit_all()
        missing = world.plan("--observe-for", "1")
        assert missing.code == 4 and f"secret {namespace}/bus" in str(missing.record["gaps"])
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bus", "namespace": namespace}}
        world.api().create({**secret, "stringData": {"password": "hunter2"}})
        heard = world.plan("--observe-for", "1")
        assert heard.code == 2 and "hunter2" not in heard.out + heard.err, heard.out + heard.err


def test_fleet_without_live_capacity_asks_for_nothing(world: World) -> None:
    world.commit(share_queue(world.name, world.name, cpu="4"), _static(world.name))
    world.converge()
    assert world.api().find(LEDGER.format(world.name)) is None
    observed = world.run("observe")
    assert (observed.code, observed.out) == (0, "nothing of this fleet is observed\n")


def _static(name: str) -> dict[str, object]:
    return observed_flavor(name, "static", capacity={"resources": {"cpu": "8"}})


@pytest.mark.usefixtures("definitions")
def test_metrics_are_published_and_read_again(wide_world: World) -> None:
    """One worker is read directly and published; the quota of a flavor then comes from what was published."""
    manager, worker, _ = wide_world.contexts
    wide_world.write(
        observed_flavor(wide_world.name, "clusterMetrics", clusters={"names": [worker]}),
        {**share_queue(wide_world.name, wide_world.name, cpu="50%")},
    )
    path = wide_world.folder / "fleet" / "fleet.yaml"
    documents = list(yaml.safe_load_all(path.read_text()))
    for document in documents:
        if document["kind"] == "Cluster" and document["metadata"]["name"] == worker:
            document["spec"]["publishMetrics"] = True
        if document["kind"] == "Queue":
            document["spec"]["clusters"] = {"names": [worker]}
    path.write_text(yaml.safe_dump_all(documents))
    wide_world.commit_all()
    wide_world.apply()
    report = wide_world.api(manager).get(f"{METRICS}/{worker}")
    nodes = {node["metadata"]["name"]: node for node in wide_world.api(worker).list("/api/v1/nodes")}
    assert [node["name"] for node in report["status"]["nodes"]] == sorted(nodes)
    assert all(
        node["allocatableResources"] == nodes[node["name"]]["status"]["allocatable"]
        for node in report["status"]["nodes"]
    )
    applied = wide_world.apply()
    assert applied.code == 0, applied.out + applied.err
    total = sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes.values())
    assert int(cpu_of(wide_world, worker)) == total // 2
    assert wide_world.api(manager).get(f"{METRICS}/{worker}")["metadata"]["generation"] == 1
    wide_world.api(manager).delete(LEDGER.format(wide_world.name))


@pytest.mark.usefixtures("definitions")
def test_quota_follows_cluster_metrics(world: World) -> None:
    api = world.api()
    api.create(
        {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": "worker1"}}
    )
    labels = {"instance": world.name}
    report = [
        {"name": "a", "labels": labels, "allocatableResources": {"cpu": "8"}},
        {"name": "b", "labels": labels, "allocatableResources": {"cpu": "4"}, "unschedulable": True},
        {"name": "c", "labels": {}, "allocatableResources": {"cpu": "100"}},
    ]
    api.patch(f"{METRICS}/worker1/status", {"status": {"nodes": report}})
    flavor = observed_flavor(world.name, "clusterMetrics", nodeLabels=labels)
    world.commit(flavor, share_queue(world.name, world.name, cpu="50%"), policy={"capacity": {"shrinkDelay": "0s"}})
    applied = world.apply()
    assert applied.code == 0, applied.out + applied.err
    assert cpu_of(world) == "4"
    assert "1 nodes belong to no flavor: c" in applied.err
    api.patch(f"{METRICS}/worker1/status", {"status": {"nodes": report[1:]}})
    assert world.apply().code == 0
    assert cpu_of(world) == "0"
    api.delete(f"{METRICS}/worker1")
    missing = world.apply()
    assert missing.code == 4 and "ClusterMetrics: no cluster of the fleet has one" in missing.out


@pytest.mark.usefixtures("definitions")
def test_metrics_of_a_cluster_are_found_on_whichever_cluster_they_lie(fleet: Sandbox, unique: str) -> None:
    api, name = fleet.api("worker1"), ClusterName(unique)
    dead = ApiServer(ClusterName("dead"), Access("https://127.0.0.1:1", ""))
    ports = {ClusterName("manager"): fleet.api("manager"), dead.cluster: dead, api.cluster: api}
    report = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": unique}}
    made = api.create(report)
    assert find_report(name, ports, ClusterName("manager")) == made
    api.delete(f"{METRICS}/{unique}")
    # Where somebody did not answer, nobody knows that there is none.
    with pytest.raises(ClusterError):
        find_report(name, ports, ClusterName("manager"))
    del ports[dead.cluster]
    assert find_report(name, ports, ClusterName("manager")) is None
    # Without the manager's word nobody else's counts: it may say something else.
    with pytest.raises(ClusterError):
        find_report(name, {dead.cluster: dead, **ports}, dead.cluster)


@pytest.mark.usefixtures("definitions")
def test_master_queue_is_read_from_the_cluster(pool_world: PoolWorld) -> None:
    world = pool_world.world
    world.api().create(pool_world.master())
    world.write()
    path = world.folder / "fleet" / "fleet.yaml"
    documents = list(yaml.safe_load_all(path.read_text()))
    documents[0]["spec"]["masterQueues"] = {"fromCluster": True}
    path.write_text(yaml.safe_dump_all(documents))
    world.commit_all()
    command = [kfleet_program(), "observe", "--watch", "--repo", str(world.folder)]
    with (
        pool_world.speaking(cnaf=announcement()),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        lines = islice(process.stdout or (), 20)  # without a bus nothing was seen yet, for ever
        assert any(f"{pool_world.subject}.cnaf" in line for line in lines)
        process.terminate()
    applied = pool_world.apply(*SHORT, cnaf=announcement())
    assert applied.code == 0, applied.out + applied.err
    assert pool_world.quotas() == {f"{pool_world.name}-nats-cnaf": "8"}


def test_master_queues_that_cannot_be_listed_stop_the_run(world: World) -> None:
    world.write()
    path = world.folder / "fleet" / "fleet.yaml"
    path.write_text(
        path.read_text().replace("spec:\n  policy", "spec:\n  masterQueues: {fromCluster: true}\n  policy", 1)
    )
    world.commit_all()
    refused = world.apply()
    assert refused.code == 1 and "kfleet crds masterqueues" in refused.err
