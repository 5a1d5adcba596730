"""Checks that ask for nodes, on real Kueue."""

from pathlib import Path
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from tests.builders import flavor, main_job, main_tenant, open_queue
from tests.cluster.go_modules import definition_in
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

# The module from which Kueue has the kind, in the version that Kueue names.
MODULE = "k8s.io/autoscaler/cluster-autoscaler/apis@v0.0.0-20240830133931-adfbe7e45277"
DEFINITION = "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"
CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


def test_check_that_asks_for_nodes_is_taken_and_named_by_the_queue(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    """Nobody serves ProvisioningRequests here, so that the queue waits for its check, and says so."""
    live_fleet = LiveFleet(fleet, tmp_path / "repo", unique)
    options = {"className": "queued-provisioning.gke.io", "managedResources": ["cpu"], "parameters": {"a": "b"}}
    team = main_tenant(unique, unique, skypilot={"provisioning": options})
    live_fleet.commit(flavor(unique), open_queue(unique, unique), team)
    live_fleet.converge()
    name = f"skypilot-{unique}"
    config = live_fleet.api().get(f"{KUEUE_ROOT}/provisioningrequestconfigs/{name}")
    assert config["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert live_fleet.api().get(f"{KUEUE_ROOT}/admissionchecks/{name}")["spec"]["parameters"]["name"] == name

    def active() -> dict[str, Any]:
        conditions = live_fleet.queue(unique).get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == "Active"), {})

    condition = eventually(active, 60)
    assert condition["status"] == "False" and name in condition["message"]
    live_fleet.api().delete(f"{KUEUE_ROOT}/provisioningrequestconfigs/{name}")
    live_fleet.clean()


def test_job_starts_when_its_request_for_nodes_is_answered(
    fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path
) -> None:
    """The autoscaler is the test: it says that the nodes are there."""
    api = fleet.api(restartable)
    serve_requests(fleet, restartable, api)
    live_fleet = LiveFleet(fleet, tmp_path / "repo", unique, {unique: restartable})
    options = {"className": CLASS, "managedResources": ["cpu"], "parameters": {"ValidUntilSeconds": "0"}}
    team = main_tenant(unique, unique, skypilot={"provisioning": options})
    live_fleet.commit(flavor(unique), open_queue(unique, unique), team)
    applied = live_fleet.apply("--wait", "60")
    assert applied.code == 0, applied
    api.create(main_job("train", unique, seconds=1))
    path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{unique}/provisioningrequests"
    (request,) = eventually(lambda: [*api.list(path)], 60)
    assert request["spec"]["provisioningClassName"] == CLASS
    assert request["spec"]["parameters"] == {"ValidUntilSeconds": "0"}
    assert api.get(f"/apis/batch/v1/namespaces/{unique}/jobs/train")["spec"]["suspend"] is True
    waiting = live_fleet.run(f"why {unique}/train").out.splitlines()[0]
    assert waiting.startswith("waits: ") and f"skypilot-{unique}" in waiting, waiting

    answer = {"type": "Provisioned", "status": "True", "reason": "Provisioned", "message": "the nodes are there"}
    condition = {**answer, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    api.patch(f"{path}/{request['metadata']['name']}/status", {"status": {"conditions": [condition]}})
    job = f"/apis/batch/v1/namespaces/{unique}/jobs/train"
    assert eventually(lambda: api.get(job)["status"].get("succeeded"), 60) == 1
    api.delete(f"{job}?propagationPolicy=Background")
    live_fleet.clean()


def serve_requests(fleet: Sandbox, cluster: ClusterName, api: ApiServer) -> None:
    """Create the kind, and restart Kueue, which looks for it when it starts."""
    definition = definition_in(MODULE, DEFINITION)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
    if api.find(path) is None:
        api.create(definition)
        eventually(lambda: any(kind.kind == "ProvisioningRequest" for kind in api.discover()), 30)
        fleet.restart(f"{cluster}/kueue")
