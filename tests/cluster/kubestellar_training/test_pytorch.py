"""A PyTorchJob of the training operator, with its real definition: placed by kfleet, carried by real KubeStellar."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import FRAMEWORKS
from reconciler.sandbox.options import SandboxOptions
from tests.builders import asking, pod_spec, pytorch_job
from tests.cluster.definitions import held_definitions
from tests.cluster.go_modules import definition_in
from tests.cluster.kubestellar.conftest import NODES
from tests.cluster.kubestellar.downsynced import NAMESPACE, WORKERS, documents
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

MODULE = "github.com/kubeflow/training-operator@v1.8.1"
DEFINITION = "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"


@pytest.fixture(scope="module")
def sandbox(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """KubeStellar, with a Kueue that manages PyTorchJobs, and their kind on each cluster. The operator is not here."""
    frameworks = (*FRAMEWORKS, "kubeflow.org/pytorchjob")
    options = SandboxOptions("training", nodes=str(NODES), has_kubestellar=True, frameworks=frameworks, is_owned=True)
    running = sandbox_fleet.up(options)
    with ExitStack() as stack:
        for cluster in ("manager", *WORKERS):
            definition = definition_in(MODULE, DEFINITION)
            stack.enter_context(held_definitions(running.api(cluster), [definition]))
        yield running
    running.discard()


@pytest.fixture
def live_fleet(sandbox: Sandbox, tmp_path: Path) -> LiveFleet:
    made = LiveFleet(sandbox, tmp_path / "repository", "training", {name: name for name in ("manager", *WORKERS)})
    made.commit(*documents())
    applied = made.apply()
    assert applied.code == 0, applied
    return made


def test_pytorch_job_is_placed_runs_on_one_worker_and_frees_its_quota(live_fleet: LiveFleet) -> None:
    submit(live_fleet)
    planned = live_fleet.plan().record["placements"]
    assert [step["verb"] for step in planned] == ["place"], planned
    assert live_fleet.apply("--wait", "0").code == 0
    chosen = live_fleet.api("manager").get(f"{JOBS}/mnist")["metadata"]["labels"]["kubestellar.io/cluster"]
    copy = eventually(lambda: live_fleet.api(chosen).find(f"{JOBS}/mnist"), 60)
    assert_runs(copy["spec"])
    (other,) = set(WORKERS) - {chosen}
    assert live_fleet.api(other).find(f"{JOBS}/mnist") is None
    assert chosen in live_fleet.run(f"why {NAMESPACE}/mnist").out.splitlines()[0]
    finish(live_fleet, chosen)
    live_fleet.api("manager").delete(f"{JOBS}/mnist")
    eventually(lambda: live_fleet.api(chosen).find(f"{JOBS}/mnist") is None, 60)


def submit(live_fleet: LiveFleet) -> None:
    """Create the job, which Kueue suspends and gives quota."""
    manager, each = live_fleet.api("manager"), pod_spec(asking(cpu="1"))
    job = pytorch_job("mnist", Master=(1, each), Worker=(2, each))
    job["metadata"] |= {"namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "main"}}
    manager.create(job)
    assert manager.get(f"{JOBS}/mnist")["spec"]["runPolicy"]["suspend"] is True
    eventually(lambda: is_true(workload(live_fleet), "QuotaReserved"), 60)


def assert_runs(spec: dict[str, Any]) -> None:
    """The copy is not suspended, complete, and goes to the nodes of the flavor."""
    assert not spec["runPolicy"].get("suspend")
    roles = spec["pytorchReplicaSpecs"]
    assert {role: one["replicas"] for role, one in roles.items()} == {"Master": 1, "Worker": 2}
    assert all(one["template"]["spec"]["nodeSelector"] == {"instance": "spot"} for one in roles.values())


def finish(live_fleet: LiveFleet, cluster: str) -> None:
    """Say on the worker what the operator says there when all pods have ended."""
    end = {"type": "Succeeded", "status": "True", "reason": "PyTorchJobSucceeded", "message": "done"}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [{**end, **times}], "replicaStatuses": {"Worker": {"succeeded": 2}}}
    live_fleet.api(cluster).patch(f"{JOBS}/mnist/status", {"status": status})

    def is_finished() -> bool:
        live_fleet.apply("--wait", "0")
        return is_true(workload(live_fleet), "Finished")

    eventually(is_finished, 60)
    eventually(lambda: not live_fleet.queue("science", "manager")["status"].get("reservingWorkloads"), 60)


def workload(live_fleet: LiveFleet) -> dict[str, Any]:
    return next(live_fleet.api("manager").list(f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads"), {})


def is_true(found: dict[str, Any], condition: str) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
