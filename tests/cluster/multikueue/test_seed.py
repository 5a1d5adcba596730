"""The objects of a MultiKueue walkthrough as they are written there, in a fleet: a job goes to the worker and back."""

from base64 import b64encode
from collections.abc import Iterator

import pytest

from reconciler.sandbox.options import node_manifest
from tests import fast_yaml
from tests.builders import CLUSTERS, Document, asking, job, pod_spec
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet, MakeLiveFleet
from tests.support import SEEDS, eventually

SEED = SEEDS / "multikueue"
LINK = "multikueue-test-worker1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets"


@pytest.fixture
def seed_live_fleet(make_live_fleet: MakeLiveFleet, unique: str) -> Iterator[LiveFleet]:
    """Two clusters as the walkthrough names them; the manager has the worker's kubeconfig in a Secret made by hand."""
    live_fleet = make_live_fleet(unique, {"cluster-01": "manager", "cluster-02": "worker1"})
    manager = live_fleet.api("cluster-01")
    data = {"kubeconfig": b64encode(kubeconfig_of(live_fleet, "worker1").encode()).decode()}
    metadata = {"name": "worker1-secret", "namespace": SYSTEM}
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    shape = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2", "pods": "10"}
    live_fleet.sandbox.add_nodes("worker1", [node_manifest(unique, shape)])
    yield live_fleet
    live_fleet.api("cluster-02").delete(f"/api/v1/nodes/{unique}")
    if manager.find(f"{JOBS}/{live_fleet.name}"):
        manager.delete(f"{JOBS}/{live_fleet.name}?propagationPolicy=Background")
    manager.delete(f"{SECRET}/worker1-secret")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_objects_of_the_walkthrough_send_a_job_to_the_worker_and_back(seed_live_fleet: LiveFleet, version: str) -> None:
    live_fleet, name = seed_live_fleet, seed_live_fleet.name
    live_fleet.commit(*seed_documents(version))
    live_fleet.converge()
    assert eventually(lambda: is_connected(live_fleet))
    preflight = live_fleet.run("preflight")
    assert preflight.code == 0, preflight
    # The job asks for a GPU, as that of the walkthrough does, and its author asks first where it would run.
    submitted = job(name, pod_spec(asking(cpu="1", gpu="1")), namespace="default", queue="user-queue", seconds=1)
    path = live_fleet.folder.parent / "job.yaml"
    path.write_text(fast_yaml.safe_dump(submitted))
    (checked,) = live_fleet.run(f"check {path}", "--live", "-o", "json").record["jobs"]
    (answer,) = checked["answers"]
    assert (checked["verdict"], [one["cluster"] for one in answer["workers"]]) == ("admitted", ["cluster-02"]), checked
    live_fleet.api("cluster-01").create(submitted)
    assert eventually(lambda: live_fleet.api("cluster-01").get(f"{JOBS}/{name}")["status"].get("succeeded"), 60) == 1
    assert eventually(lambda: ran_on(live_fleet, "cluster-02")) and not ran_on(live_fleet, "cluster-01")
    (story,) = live_fleet.run(f"why default/{name}", "-o", "json").record["jobs"]
    assert (story["cluster"], story["runsOn"]) == ("cluster-01", "cluster-02"), story
    assert eventually(lambda: live_fleet.run("status").code == 0)
    left = live_fleet.plan()
    assert (left.code, left.actions) == (0, {}), left


def seed_documents(version: str) -> Iterator[Document]:
    """What the walkthrough gives to the worker and to the manager, which has the same flavor and LocalQueue."""
    for document in fast_yaml.safe_load_all((SEED / "01-worker.yaml").read_text()):
        targets = "workers" if document["kind"] == "ClusterQueue" else "all"
        document["metadata"]["annotations"] = {CLUSTERS: targets}
        yield in_version(with_gpus(document), version)
    for document in fast_yaml.safe_load_all((SEED / "02-manager.yaml").read_text()):
        if document["kind"] != "Secret":
            yield in_version(with_gpus(document), version)


def with_gpus(document: Document) -> Document:
    """The walkthrough's queues have quota for its CPU job alone."""
    for group in document.get("spec", {}).get("resourceGroups", ()):
        group["coveredResources"].append("nvidia.com/gpu")
        group["flavors"][0]["resources"].append({"name": "nvidia.com/gpu", "nominalQuota": 2})
    return document


def in_version(document: Document, version: str) -> Document:
    """A document of v1beta1, as somebody writes it who reads the reference of a version."""
    spec = dict(document.get("spec", {}))
    if version == "v1beta2" and "admissionChecks" in spec:
        names = [{"name": name} for name in spec.pop("admissionChecks")]
        spec["admissionChecksStrategy"] = {"admissionChecks": names}
    if version == "v1beta2" and "kubeConfig" in spec:
        spec["clusterSource"] = {"kubeConfig": spec.pop("kubeConfig")}
    return {**document, "apiVersion": f"kueue.x-k8s.io/{version}", "spec": spec}


def kubeconfig_of(live_fleet: LiveFleet, context: str) -> str:
    """`kubectl config view --minify --flatten` of one cluster of the sandbox."""
    return live_fleet.kubectl("config", "view", "--minify", "--flatten", cluster=context)


def is_connected(live_fleet: LiveFleet) -> bool:
    link = live_fleet.api("cluster-01").get(f"{KUEUE_ROOT}/multikueueclusters/{LINK}")
    conditions = (link.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Active" and entry["status"] == "True" for entry in conditions)


def ran_on(live_fleet: LiveFleet, cluster: str) -> bool:
    events = live_fleet.api(cluster).list("/api/v1/namespaces/default/events")
    return any(
        event["reason"] == "SuccessfulCreate" and event["involvedObject"]["name"] == live_fleet.name for event in events
    )
