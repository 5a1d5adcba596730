"""Fleets of the tests' own: small ones on one cluster, and wide ones on all three."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import node_manifest
from tests.cluster.live_fleet import ALL, ONE, LiveFleet, MakeLiveFleet
from tests.support import eventually


@pytest.fixture
def make_live_fleet(fleet: Sandbox, tmp_path: Path) -> Iterator[MakeLiveFleet]:
    """A fleet by its name, on some clusters; everything of it is gone after the test."""
    made: list[LiveFleet] = []

    def make(name: str, contexts: dict[str, str]) -> LiveFleet:
        made.append(LiveFleet(fleet, tmp_path / name, name, dict(contexts)))
        return made[-1]

    yield make
    for live_fleet in made:
        live_fleet.clean()


@pytest.fixture
def live_fleet(make_live_fleet: MakeLiveFleet, unique: str) -> LiveFleet:
    """A fleet of one cluster."""
    return make_live_fleet(unique, ONE)


@pytest.fixture
def wide_live_fleet(make_live_fleet: MakeLiveFleet, unique: str) -> LiveFleet:
    """A fleet of a manager and two workers, the second with an older Kueue."""
    return make_live_fleet(unique, {f"{unique}-{context}": context for context in ALL})


@pytest.fixture
def nodes(fleet: Sandbox, unique: str) -> Iterator[list[str]]:
    """Two nodes of 8 cpus that only this test selects."""
    names = [f"{unique}-a", f"{unique}-b"]
    shape = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    fleet.add_nodes("worker1", [node_manifest(name, shape, {"test": unique}) for name in names])
    api = fleet.api("worker1")
    for name in names:
        eventually(partial(is_node_ready, api, name))
    yield names
    for name in names:
        if api.find(f"/api/v1/nodes/{name}"):
            api.delete(f"/api/v1/nodes/{name}")


def is_node_ready(api: ApiServer, name: str) -> bool:
    node = api.get(f"/api/v1/nodes/{name}")
    conditions = node.get("status", {}).get("conditions", ())
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return is_ready and not node["spec"].get("taints")
