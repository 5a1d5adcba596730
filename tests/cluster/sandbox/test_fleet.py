"""The sandbox as the tests use it: one shared fleet."""

import asyncio
import threading
from collections.abc import Callable

import nats

from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import node_manifest
from tests.builders import native
from tests.support import OLD_KUEUE, eventually


def test_fleet_runs_the_chosen_kueue_per_cluster(fleet: Sandbox) -> None:
    assert fleet.state.cluster("worker2").kueue == OLD_KUEUE
    assert f'"gitVersion":"v{OLD_KUEUE}"' in fleet.state.part("worker2/kueue").log.read_text()
    # The older Kueue's kinds lack what came later: the field exists in 0.19 only.
    field = _config_fields(fleet, "worker1"), _config_fields(fleet, "worker2")
    assert "quotaManagement" in field[0]
    assert "quotaManagement" not in field[1]


def test_fleet_serves_kueues_webhooks(fleet: Sandbox, unique: str) -> None:
    for cluster in ("manager", "worker2"):
        flavor = native("ResourceFlavor", unique)
        created = fleet.api(cluster).create(flavor)
        # Only Kueue's mutating webhook adds this.
        assert created["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
        fleet.api(cluster).delete(fleet.api(cluster).path_of(flavor))


def test_fleet_converts_between_api_versions(fleet: Sandbox, unique: str) -> None:
    api = fleet.api("worker1")
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": unique},
        "spec": {"cohort": "c", "namespaceSelector": {}},
    }
    api.create(queue)
    newer = api.get(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{unique}")
    assert newer["spec"]["cohortName"] == "c"
    api.delete(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{unique}")


def test_fleet_survives_a_restart_of_an_api_server_and_of_kueue(fleet: Sandbox, unique: str) -> None:
    flavor = native("ResourceFlavor", unique)
    fleet.api("worker1").create(flavor)
    fleet.kill("worker1/kube-apiserver")
    fleet.restart("worker1/kube-apiserver")
    fleet.stop("worker1/kueue")
    fleet.restart("worker1/kueue")
    api = fleet.api("worker1")
    assert api.get(api.path_of(flavor))["metadata"]["name"] == unique
    api.delete(api.path_of(flavor))


def test_fleet_makes_added_nodes_ready(fleet: Sandbox, unique: str) -> None:
    fleet.add_nodes(
        "worker1", [node_manifest(unique, {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "5"})]
    )
    api = fleet.api("worker1")

    def ready() -> bool:
        node = api.get(f"/api/v1/nodes/{unique}")
        conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and node["status"]["allocatable"]["nvidia.com/gpu"] == "2"

    assert eventually(ready)
    api.delete(f"/api/v1/nodes/{unique}")


def test_fleet_adds_an_empty_cluster(fleet: Sandbox, empty_cluster: ClusterName) -> None:
    api = fleet.api(empty_cluster)
    names = {entry["metadata"]["name"] for entry in api.list("/api/v1/namespaces")}
    assert "kube-system" in names and "kueue-system" not in names
    assert api.kinds("kueue.x-k8s.io/v1beta2") == ()


def _config_fields(fleet: Sandbox, cluster: str) -> set[str]:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/multikueueconfigs.kueue.x-k8s.io"
    versions = fleet.api(cluster).get(path)["spec"]["versions"]
    schema = next(entry for entry in versions if entry["name"] == "v1beta2")["schema"]["openAPIV3Schema"]
    return set(schema["properties"]["spec"]["properties"])


def test_fleet_delivers_messages_on_nats(fleet: Sandbox, publish: Callable[[str, bytes], None], unique: str) -> None:
    received: list[bytes] = []

    async def listen(is_listening: threading.Event) -> None:
        connection = await nats.connect(fleet.state.nats_url)
        subscription = await connection.subscribe(f"{unique}.*")
        await connection.flush()
        is_listening.set()
        message = await subscription.next_msg(timeout=30)
        received.append(message.data)
        await connection.close()

    is_listening = threading.Event()
    listener = threading.Thread(target=lambda: asyncio.run(listen(is_listening)))
    listener.start()
    assert is_listening.wait(30)
    publish(f"{unique}.pool", b"hello")
    listener.join(60)
    assert received == [b"hello"]
