"""`kfleet run` tells what keeps a fleet from working, and which objects are not well."""

from collections.abc import Iterator

import pytest

from tests.cluster.controller.controllers import Controller
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import commit_sent
from tests.support import eventually

# Nobody listens there.
NOWHERE = "https://127.0.0.1:1"


@pytest.fixture
def controller(wide_live_fleet: LiveFleet) -> Iterator[Controller]:
    """A controller of a fleet whose manager is sent to a wrong address for its first worker."""
    commit_sent(wide_live_fleet, server=NOWHERE)
    started = Controller(wide_live_fleet.folder, ("--interval", "2"))
    yield started
    started.kill()
    path = _status_path(wide_live_fleet)
    if wide_live_fleet.api("manager").find(path):
        wide_live_fleet.api("manager").delete(path)


def _status_path(live_fleet: LiveFleet) -> str:
    return f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{live_fleet.name}-status"


def status(live_fleet: LiveFleet) -> dict[str, str]:
    return dict(live_fleet.api("manager").get(_status_path(live_fleet))["data"])


def told(live_fleet: LiveFleet) -> list[tuple[str, str]]:
    """The reasons and messages of Events about the fleet."""
    events = live_fleet.api("manager").list(f"/api/v1/namespaces/{SYSTEM}/events")
    own = (event for event in events if event["involvedObject"]["name"] == f"kfleet-{live_fleet.name}")
    return [(event["reason"], event["message"]) for event in own]


def about(live_fleet: LiveFleet, reason: str, start: str) -> list[str]:
    return [message for known, message in told(live_fleet) if known == reason and message.startswith(start)]


def test_manager_that_cannot_use_a_worker_is_reported(
    wide_live_fleet: LiveFleet,
    controller: Controller,
) -> None:
    worker, ill = (
        f"{wide_live_fleet.name}-worker1",
        f"{wide_live_fleet.name}-manager/MultiKueueCluster/{wide_live_fleet.name}-worker1",
    )
    eventually(lambda: status(wide_live_fleet)["result"] == "unhealthy", 60)
    eventually(lambda: f"{worker}: unhealthy: {worker}: connection: " in status(wide_live_fleet)["clusters"], 60)
    eventually(lambda: about(wide_live_fleet, "Unhealthy", f"{ill}: ClientConnectionFailed"), 60)
    assert controller.metric(f'kfleet_preflight_issues{{check="connection",cluster="{worker}"}}') == 1
    assert (
        controller.metric(
            'kfleet_unhealthy_objects{cluster="' + f'{wide_live_fleet.name}-manager",kind="MultiKueueCluster"'
        )
        == 1
    )
    assert f"{wide_live_fleet.name}-worker2: applied" in status(wide_live_fleet)["clusters"]
    assert len(about(wide_live_fleet, "PreflightIssue", worker)) == 1
    commit_sent(wide_live_fleet)
    eventually(lambda: status(wide_live_fleet)["result"] == "applied", 60)
