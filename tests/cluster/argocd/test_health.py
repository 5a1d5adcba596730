"""deploy/argocd/health.lua, as evaluated by Argo CD's own interpreter, on the conditions that Kueue sets."""

import json
from typing import Any

import pytest

from reconciler.kueue.health import REASONS, ConditionReason
from reconciler.sandbox.fleet import Sandbox
from tests.builders import KUEUE, cpu_group, native, resource_flavor
from tests.cluster.argocd.servers import PLUGIN, argocd
from tests.support import eventually

pytestmark = pytest.mark.usefixtures("_programs")

SCRIPT = str(PLUGIN / "health.lua")
TRUE_ALTHOUGH_UNWELL = {"SomeActiveClusters"}
# Degraded would end the sync before the waves that follow.
STATES = {
    "Stopped": "Healthy",
    "ClusterQueueIsInactive": "Healthy",
    "AdmissionCheckInactive": "Healthy",
    "SomeActiveClusters": "Healthy",
    "NoUsableClusters": "Healthy",
    "BadKubeConfig": "Healthy",
    "InsecureKubeConfig": "Healthy",
    "BadClusterProfile": "Healthy",
    "BadRestConfig": "Healthy",
    "ClientConnectionFailed": "Healthy",
    "Terminating": "Progressing",
    "NotFound": "Progressing",
}


def decision_on(manifest: dict[str, Any]) -> dict[str, str]:
    answer = argocd("health", SCRIPT, given=json.dumps(manifest))
    assert answer.returncode == 0, answer.stderr
    found: dict[str, str] = json.loads(answer.stdout)
    return found


def with_condition(kind: str, **condition: Any) -> dict[str, Any]:
    active = {"type": "Active", "message": "because", **condition}
    metadata = {"name": "one", "generation": 3}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "status": {"conditions": [active]}}


@pytest.mark.parametrize("known", REASONS, ids=lambda known: f"{known.kind}-{known.reason}")
def test_health_of_every_reason_of_kueue(known: ConditionReason) -> None:
    is_true = known.is_healthy or known.reason in TRUE_ALTHOUGH_UNWELL
    found = decision_on(with_condition(known.kind, status=str(is_true), reason=known.reason))
    assert found["status"] == ("Healthy" if known.is_healthy else STATES.get(known.reason, "Degraded"))
    assert found["message"] == f"{known.reason}: because"


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "one"}},
        with_condition("ClusterQueue", status="True", reason="Ready", observedGeneration=2),
        with_condition("LocalQueue", status="True", reason="Ready", observedGeneration=2),
        with_condition("ClusterQueue", status="Unknown", reason="Later"),
    ],
    ids=["no status", "an older ClusterQueue", "an older LocalQueue", "unknown"],
)
def test_health_waits_for_kueue(manifest: dict[str, Any]) -> None:
    assert decision_on(manifest)["status"] == "Progressing"


@pytest.mark.parametrize("kind", ["AdmissionCheck", "MultiKueueCluster"])
def test_health_takes_a_condition_that_kueue_does_not_write_again(kind: str) -> None:
    found = decision_on(with_condition(kind, status="True", reason="Active", observedGeneration=2))
    assert found["status"] == "Healthy"


def test_health_of_real_objects(fleet: Sandbox, unique: str) -> None:
    api = fleet.api("worker1")
    flavor = resource_flavor(unique)
    queue = native("ClusterQueue", unique, {"resourceGroups": [cpu_group("1", of=unique)]})
    path = api.path_of(queue)
    api.create(queue)
    eventually(lambda: decision_on(api.get(path))["status"] == "Degraded")
    assert decision_on(api.get(path))["message"].startswith("FlavorNotFound: ")
    api.create(flavor)
    eventually(lambda: decision_on(api.get(path))["status"] == "Healthy")
    api.patch(path, {"spec": {"stopPolicy": "Hold"}})
    eventually(lambda: decision_on(api.get(path))["message"].startswith("Stopped: "))
    assert decision_on(api.get(path))["status"] == "Healthy"
    api.delete(path)
    eventually(lambda: api.find(path) is None)
    api.delete(api.path_of(flavor))
