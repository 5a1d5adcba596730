"""`kfleet run` tells what keeps a fleet from working, and which objects are not well."""

from collections.abc import Iterator

import pytest

from tests.cluster.engine.conftest import make_world, wide_world
from tests.cluster.engine.worlds import SYSTEM, World
from tests.cluster.multikueue.worlds import commit_sent
from tests.cluster.run.controllers import Controller
from tests.support import eventually

__all__ = ["make_world", "wide_world"]
# Nobody listens there.
NOWHERE = "https://127.0.0.1:1"


@pytest.fixture
def controller(wide_world: World) -> Iterator[Controller]:
    """A controller of a fleet whose manager is sent to a wrong address for its first worker."""
    commit_sent(wide_world, server=NOWHERE)
    started = Controller(wide_world.folder, ("--interval", "2"))
    yield started
    started.kill()
    path = _status_path(wide_world)
    if wide_world.api("manager").find(path):
        wide_world.api("manager").delete(path)


def _status_path(world: World) -> str:
    return f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{world.name}-status"


def status(world: World) -> dict[str, str]:
    return dict(world.api("manager").get(_status_path(world))["data"])


def told(world: World) -> list[tuple[str, str]]:
    """The reasons and messages of Events about the fleet."""
    events = world.api("manager").list(f"/api/v1/namespaces/{SYSTEM}/events")
    own = (event for event in events if event["involvedObject"]["name"] == f"kfleet-{world.name}")
    return [(event["reason"], event["message"]) for event in own]


def about(world: World, reason: str, start: str) -> list[str]:
    return [message for known, message in told(world) if known == reason and message.startswith(start)]


def test_manager_that_cannot_use_a_worker_is_told(
    wide_world: World,
    controller: Controller,
) -> None:
    worker, ill = f"{wide_world.name}-worker1", f"{wide_world.name}-manager/MultiKueueCluster/{wide_world.name}-worker1"
    eventually(lambda: status(wide_world)["result"] == "unhealthy", 60)
    eventually(lambda: f"{worker}: unhealthy: {worker}: connection: " in status(wide_world)["clusters"], 60)
    eventually(lambda: about(wide_world, "Unhealthy", f"{ill}: ClientConnectionFailed"), 60)
    assert controller.metric(f'kfleet_obstacles{{check="connection",cluster="{worker}"}}') == 1
    assert controller.metric('kfleet_ailments{cluster="' + f'{wide_world.name}-manager",kind="MultiKueueCluster"') == 1
    assert f"{wide_world.name}-worker2: applied" in status(wide_world)["clusters"]
    assert len(about(wide_world, "Obstacle", worker)) == 1
    commit_sent(wide_world)
    eventually(lambda: status(wide_world)["result"] == "applied", 60)
