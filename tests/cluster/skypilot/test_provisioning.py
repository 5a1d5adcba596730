"""Checks that ask for nodes, on real Kueue."""

from pathlib import Path
from typing import Any

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.documents import flavor, queue, tenant
from tests.support import eventually


def test_check_that_asks_for_nodes_is_taken_and_named_by_the_queue(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    """Nobody serves ProvisioningRequests here, so that the queue waits for its check, and says so."""
    world = World(fleet, tmp_path / "repo", unique)
    wish = {"className": "queued-provisioning.gke.io", "managedResources": ["cpu"], "parameters": {"a": "b"}}
    team = tenant(unique, unique, skypilot={"provisioning": wish})
    world.commit(flavor(unique), queue(unique, unique), team)
    world.converge()
    name = f"skypilot-{unique}"
    config = world.api().get(f"{KUEUE_ROOT}/provisioningrequestconfigs/{name}")
    assert config["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert world.api().get(f"{KUEUE_ROOT}/admissionchecks/{name}")["spec"]["parameters"]["name"] == name

    def active() -> dict[str, Any]:
        conditions = world.queue(unique).get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == "Active"), {})

    condition = eventually(active, 60)
    assert condition["status"] == "False" and name in condition["message"]
    world.api().delete(f"{KUEUE_ROOT}/provisioningrequestconfigs/{name}")
    world.clean()
