"""`kfleet check --live`: what the clusters say, where they can be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.edges.kubernetes import ApiServer
from reconciler.kueue.kinds import KINDS
from reconciler.observations.admission import AdmissionLook, observe_admission
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.model import Cluster
from tests.cluster.accounts import RBAC, account
from tests.cluster.checking.worlds import reservation
from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.cluster.kueueconfig.worlds import ConfiguredWorld
from tests.documents import API, flavor, queue, sent_queue, tenant
from tests.support import eventually
from tests.unit.checking.jobs import Document, asking, job, pod_spec
from tests.unit.desired.fleets import spec_of

CLUSTERS = ("manager", "worker1", "worker2")


@pytest.fixture
def world(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[World]:
    """A queue that the manager sends to two workers, of which the second has an older Kueue."""
    made = World(fleet, tmp_path / unique, unique, {f"{unique}-{name}": name for name in CLUSTERS})
    made.commit(*documents(unique))
    yield made
    made.clean()


def documents(name: str) -> tuple[Document, ...]:
    return flavor(name), sent_queue(name, name), tenant(name, name)


def checked(world: World, manifest: Document, *options: str) -> tuple[int, Document]:
    path = world.folder.parent / "job.yaml"
    path.write_text(yaml.safe_dump(manifest))
    answer = world.run("check", str(path), "--live", "-o", "json", *options)
    (record,) = answer.record["jobs"]
    return answer.code, record["answers"][0]


def small(world: World, cpu: str = "1") -> Document:
    manifest = job("a", pod_spec(asking(cpu=cpu)), queue="main")
    manifest["metadata"]["namespace"] = world.name
    return manifest


def test_live_check_follows_a_job_to_its_workers(world: World) -> None:
    code, before = checked(world, small(world))
    assert (code, before["objections"][0]["reason"]) == (3, "no local queue")
    assert world.apply("--wait", "60").code == 0
    code, found = checked(world, small(world))
    workers = [f"{world.name}-worker1", f"{world.name}-worker2"]
    assert (code, found["verdict"], found["runsOn"]) == (0, "admitted", workers)
    code, large = checked(world, small(world, cpu="10"))
    assert (code, [one["reason"] for one in large["objections"]]) == (3, ["no worker takes it"])
    manager = world.api(f"{world.name}-manager")
    manager.create(small(world))
    path = f"{KUEUE_ROOT}/namespaces/{world.name}/workloads"
    went = eventually(lambda: next(iter(manager.list(path)), {}).get("status", {}).get("clusterName"), 60)
    assert went in found["runsOn"]
    manager.delete(f"/apis/batch/v1/namespaces/{world.name}/jobs/a")


def test_live_check_judges_by_the_release_that_runs_there(fleet: Sandbox, tmp_path: Path, unique: str) -> None:
    """Which holds a flavor without labels against those of its neighbour; newer ones do not."""
    world = ConfiguredWorld(fleet, tmp_path / unique, unique, {"one": "worker2"})
    world.show_image("kueue:v0.16.2")
    quota = [{"flavor": name, "resources": {"cpu": "9"}} for name in (f"{unique}-labelled", f"{unique}-bare")]
    world.commit(
        flavor(f"{unique}-labelled", nodeLabels={"pool": "cpu"}),
        flavor(f"{unique}-bare"),
        {**queue(unique, unique), "spec": {"quota": quota, "namespaceSelector": {}}},
        tenant(unique, unique),
    )
    assert world.apply("--wait", "60").code == 0
    manifest = small(world)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    code, found = checked(world, manifest)
    assert (code, [one["reason"] for one in found["objections"]]) == (3, ["no matching flavor"])
    world.api("one").create(manifest)
    path = f"{KUEUE_ROOT}/namespaces/{unique}/workloads"
    message = eventually(lambda: reservation(next(iter(world.api("one").list(path)), {}))[1], 60)
    assert message.count("doesn't match node affinity") == 2
    world.api("one").delete(f"/apis/batch/v1/namespaces/{unique}/jobs/a")
    world.show_image("kueue")
    world.clean()


def test_live_check_does_not_guess_about_a_cluster_that_is_not_there(world: World) -> None:
    lost = {"role": "standalone", "access": {"context": "mars", "kubeconfig": str(world.sandbox.state.kubeconfig)}}
    world.write(
        *documents(world.name), {"apiVersion": API, "kind": "Cluster", "metadata": {"name": "mars"}, "spec": lost}
    )
    code, found = checked(world, small(world), "--cluster", "mars")
    assert (code, found["verdict"], found["objections"][0]["reason"]) == (4, "unknown", "not known")


@pytest.fixture
def visitor(fleet: Sandbox, unique: str) -> Iterator[ApiServer]:
    """Somebody who may look at the queues of a worker and at namespaces, and at nothing else."""
    kinds = [kind.plural for kind in KINDS if not kind.name.startswith("MultiKueue")]
    rules = [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": kinds, "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
    ]
    with account(fleet.api("worker1"), unique, rules) as visiting:
        yield visiting


def test_live_look_does_without_what_few_may_see(visitor: ApiServer) -> None:
    cluster = next(one for one in spec_of().clusters if one.name == "east")
    look = eventually(lambda: (found := look_at(cluster, visitor)) and not found.problem and found)
    assert (look.pod_priorities, look.configuration, look.release) == (None, "", "")
    assert any(manifest["kind"] == "Namespace" for manifest in look.manifests)


def test_live_look_that_is_not_allowed_is_a_problem(visitor: ApiServer, fleet: Sandbox, unique: str) -> None:
    fleet.api("worker1").delete(f"/apis/{RBAC}/clusterroles/{unique}")
    cluster = next(one for one in spec_of().clusters if one.name == "east")
    assert "forbidden" in eventually(lambda: look_at(cluster, visitor).problem)
    fleet.api("worker1").create({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": unique}, "rules": []})


def look_at(cluster: Cluster, port: ApiServer) -> AdmissionLook:
    return observe_admission([cluster], {cluster.name: port})[cluster.name]
