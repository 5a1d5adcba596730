"""`kfleet check --live`: what the clusters say, where they can be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.kinds import KINDS
from reconciler.pipeline.admission import ObservedAdmission, observe_admission
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.model import Cluster
from tests import fast_yaml
from tests.builders import (
    Document,
    asking,
    cluster_document,
    flavor,
    job,
    main_tenant,
    open_queue,
    pod_spec,
    sent_queue,
    spec_of,
)
from tests.cluster.accounts import RBAC, account
from tests.cluster.admission.case_queues import reservation
from tests.cluster.kueue_config.configured_live_fleet import ConfiguredLiveFleet
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

CLUSTERS = ("manager", "worker1", "worker2")


@pytest.fixture
def live_fleet(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[LiveFleet]:
    """A queue that the manager sends to two workers, of which the second has an older Kueue."""
    made = LiveFleet(fleet, tmp_path / unique, unique, {f"{unique}-{name}": name for name in CLUSTERS})
    made.commit(*documents(unique))
    yield made
    made.clean()


def documents(name: str) -> tuple[Document, ...]:
    return flavor(name), sent_queue(name, name), main_tenant(name, name)


def checked(live_fleet: LiveFleet, manifest: Document, *options: str) -> tuple[int, Document]:
    path = live_fleet.folder.parent / "job.yaml"
    path.write_text(fast_yaml.safe_dump(manifest))
    answer = live_fleet.run("check", str(path), "--live", "-o", "json", *options)
    (record,) = answer.record["jobs"]
    return answer.code, record["answers"][0]


def small(live_fleet: LiveFleet, cpu: str = "1") -> Document:
    return job("a", pod_spec(asking(cpu=cpu)), namespace=live_fleet.name, queue="main")


def test_live_check_follows_a_job_to_its_workers(live_fleet: LiveFleet) -> None:
    code, before = checked(live_fleet, small(live_fleet))
    assert (code, before["issues"][0]["reason"]) == (3, "no local queue")
    assert live_fleet.apply("--wait", "60").code == 0
    code, found = checked(live_fleet, small(live_fleet))
    workers = [f"{live_fleet.name}-worker1", f"{live_fleet.name}-worker2"]
    assert (code, found["verdict"], found["runsOn"]) == (0, "admitted", workers)
    code, large = checked(live_fleet, small(live_fleet, cpu="10"))
    assert (code, [one["reason"] for one in large["issues"]]) == (3, ["no worker takes it"])
    manager = live_fleet.api(f"{live_fleet.name}-manager")
    manager.create(small(live_fleet))
    path = f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads"
    went = eventually(lambda: next(iter(manager.list(path)), {}).get("status", {}).get("clusterName"), 60)
    assert went in found["runsOn"]
    manager.delete(f"/apis/batch/v1/namespaces/{live_fleet.name}/jobs/a")


def test_live_check_decides_by_the_release_that_runs_there(fleet: Sandbox, tmp_path: Path, unique: str) -> None:
    """Which holds a flavor without labels against those of its neighbour; newer ones do not."""
    live_fleet = ConfiguredLiveFleet(fleet, tmp_path / unique, unique, {"one": "worker2"})
    live_fleet.show_image("kueue:v0.16.2")
    quota = [{"flavor": name, "resources": {"cpu": "9"}} for name in (f"{unique}-labelled", f"{unique}-bare")]
    live_fleet.commit(
        flavor(f"{unique}-labelled", nodeLabels={"pool": "cpu"}),
        flavor(f"{unique}-bare"),
        {**open_queue(unique, unique), "spec": {"quota": quota, "namespaceSelector": {}}},
        main_tenant(unique, unique),
    )
    assert live_fleet.apply("--wait", "60").code == 0
    manifest = small(live_fleet)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    code, found = checked(live_fleet, manifest)
    assert (code, [one["reason"] for one in found["issues"]]) == (3, ["no matching flavor"])
    live_fleet.api("one").create(manifest)
    path = f"{KUEUE_ROOT}/namespaces/{unique}/workloads"
    message = eventually(lambda: reservation(next(iter(live_fleet.api("one").list(path)), {}))[1], 60)
    assert message.count("doesn't match node affinity") == 2
    live_fleet.api("one").delete(f"/apis/batch/v1/namespaces/{unique}/jobs/a")
    live_fleet.show_image("kueue")
    live_fleet.clean()


def test_live_check_does_not_guess_about_a_cluster_that_is_not_there(live_fleet: LiveFleet) -> None:
    access = {"context": "mars", "kubeconfig": str(live_fleet.sandbox.state.kubeconfig)}
    live_fleet.write(*documents(live_fleet.name), cluster_document("mars", "standalone", access=access))
    code, found = checked(live_fleet, small(live_fleet), "--cluster", "mars")
    assert (code, found["verdict"], found["issues"][0]["reason"]) == (4, "unknown", "not known")


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


def look_at(cluster: Cluster, port: ApiServer) -> ObservedAdmission:
    return observe_admission([cluster], {cluster.name: port})[cluster.name]
