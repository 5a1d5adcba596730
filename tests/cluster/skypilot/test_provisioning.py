"""Checks that ask for nodes, on real Kueue."""

from pathlib import Path
from typing import Any

from reconciler.sandbox.fleet import Sandbox
from tests.builders import flavor, main_tenant, open_queue
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually


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
