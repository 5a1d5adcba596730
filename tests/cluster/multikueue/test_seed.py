"""The objects of a MultiKueue walkthrough as they are written there, in a fleet: a job goes to the worker and back."""

from base64 import b64encode
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.engine.conftest import MakeWorld
from tests.cluster.engine.worlds import KUEUE_ROOT, SYSTEM, World
from tests.documents import CLUSTERS, Document, job
from tests.support import SEEDS, eventually

SEED = SEEDS / "multikueue"
LINK = "multikueue-test-worker1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets"


@pytest.fixture
def seed_world(make_world: MakeWorld, unique: str) -> Iterator[World]:
    """Two clusters as the walkthrough names them; the manager has the worker's kubeconfig in a Secret made by hand."""
    world = make_world(unique, {"cluster-01": "manager", "cluster-02": "worker1"})
    manager = world.api("cluster-01")
    data = {"kubeconfig": b64encode(kubeconfig_of(world, "worker1").encode()).decode()}
    metadata = {"name": "worker1-secret", "namespace": SYSTEM}
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    yield world
    if manager.find(f"{JOBS}/{world.name}"):
        manager.delete(f"{JOBS}/{world.name}?propagationPolicy=Background")
    manager.delete(f"{SECRET}/worker1-secret")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_objects_of_the_walkthrough_send_a_job_to_the_worker_and_back(seed_world: World, version: str) -> None:
    world, name = seed_world, seed_world.name
    world.commit(*seed_documents(version))
    world.converge()
    assert eventually(lambda: is_connected(world))
    preflight = world.run("preflight")
    assert preflight.code == 0, preflight
    submitted = job(name, "default", seconds=1)
    submitted["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "user-queue"}
    world.api("cluster-01").create(submitted)
    assert eventually(lambda: world.api("cluster-01").get(f"{JOBS}/{name}")["status"].get("succeeded"), 60) == 1
    assert eventually(lambda: ran_on(world, "cluster-02")) and not ran_on(world, "cluster-01")
    assert eventually(lambda: world.run("status").code == 0)
    left = world.plan()
    assert (left.code, left.actions) == (0, {}), left


def seed_documents(version: str) -> Iterator[Document]:
    """What the walkthrough gives to the worker and to the manager, which has the same flavor and LocalQueue."""
    for document in yaml.safe_load_all((SEED / "01-worker.yaml").read_text()):
        targets = "workers" if document["kind"] == "ClusterQueue" else "all"
        document["metadata"]["annotations"] = {CLUSTERS: targets}
        yield in_version(document, version)
    for document in yaml.safe_load_all((SEED / "02-manager.yaml").read_text()):
        if document["kind"] != "Secret":
            yield in_version(document, version)


def in_version(document: Document, version: str) -> Document:
    """A document of v1beta1, as somebody writes it who reads the reference of a version."""
    spec = dict(document.get("spec", {}))
    if version == "v1beta2" and "admissionChecks" in spec:
        names = [{"name": name} for name in spec.pop("admissionChecks")]
        spec["admissionChecksStrategy"] = {"admissionChecks": names}
    if version == "v1beta2" and "kubeConfig" in spec:
        spec["clusterSource"] = {"kubeConfig": spec.pop("kubeConfig")}
    return {**document, "apiVersion": f"kueue.x-k8s.io/{version}", "spec": spec}


def kubeconfig_of(world: World, context: str) -> str:
    """`kubectl config view --minify --flatten` of one cluster of the sandbox."""
    return world.kubectl("config", "view", "--minify", "--flatten", cluster=context)


def is_connected(world: World) -> bool:
    link = world.api("cluster-01").get(f"{KUEUE_ROOT}/multikueueclusters/{LINK}")
    conditions = (link.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Active" and entry["status"] == "True" for entry in conditions)


def ran_on(world: World, cluster: str) -> bool:
    events = world.api(cluster).list("/api/v1/namespaces/default/events")
    return any(
        event["reason"] == "SuccessfulCreate" and event["involvedObject"]["name"] == world.name for event in events
    )
