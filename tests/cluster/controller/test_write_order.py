"""`kfleet apply` and the controller write in the same order."""

import json
from collections.abc import Callable

import pytest

from reconciler.clients.kubernetes import ApiServer
from tests.builders import observed_flavor, open_queue
from tests.cluster.controller.conftest import StartController
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.support import eventually

CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
QUEUES = f"{KUEUE_ROOT}/clusterqueues"


@pytest.fixture
def by_apply(live_fleet: LiveFleet) -> Callable[[], None]:
    return live_fleet.converge


@pytest.fixture
def by_run(live_fleet: LiveFleet, start: StartController) -> Callable[[], None]:
    def run() -> None:
        start()
        eventually(lambda: live_fleet.finds("clusterqueues", live_fleet.name))
        eventually(lambda: live_fleet.api().find(f"{CONFIG_MAPS}/kfleet-{live_fleet.name}-ledger"))

    return run


@pytest.mark.parametrize("way", ["by_apply", "by_run"])
def test_ledger_is_written_before_the_quotas_that_stand_on_it(
    live_fleet: LiveFleet, way: str, request: pytest.FixtureRequest
) -> None:
    """A crash in between must not leave quotas whose capacity no run has recorded."""
    name, api = live_fleet.name, live_fleet.api()
    live_fleet.commit(observed_flavor(name, "nodes"), open_queue(name, name, {"cpu": "100%"}))
    versions = {path: api.get(f"{path}?limit=1")["metadata"]["resourceVersion"] for path in (CONFIG_MAPS, QUEUES)}
    request.getfixturevalue(way)()
    ledger = created_at(api, CONFIG_MAPS, versions[CONFIG_MAPS], f"kfleet-{name}-ledger")
    queue = created_at(api, QUEUES, versions[QUEUES], name)
    assert ledger < queue


def created_at(api: ApiServer, path: str, since: str, name: str) -> int:
    """The resourceVersion with which an object was created: the versions of a cluster count all of its writes."""
    watched = api.read_text(f"{path}?watch=true&resourceVersion={since}&timeoutSeconds=1")
    for event in map(json.loads, watched.splitlines()):
        if event["type"] == "ADDED" and event["object"]["metadata"]["name"] == name:
            return int(event["object"]["metadata"]["resourceVersion"])
    raise AssertionError(f"{name} was not created")
