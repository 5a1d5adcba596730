"""Two teams with plain pods on real Kueue: one queue for both, and a queue for each in a cohort."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_MAP
from tests.engine.worlds import SYSTEM
from tests.skypilot.worlds import ExampleWorld
from tests.support import eventually

TEAMS = ("team1", "team2")


@pytest.fixture
def world(fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path) -> Iterator[ExampleWorld]:
    world = ExampleWorld(fleet, tmp_path / "repo", unique, {"research": restartable})
    yield world
    api = world.api("research")
    for team in TEAMS:
        for pod in list(api.list(f"/api/v1/namespaces/{team}/pods")):
            api.patch(f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
            api.delete(f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}")
    world.clean()
    for team in TEAMS:
        eventually(lambda team=team: api.find(f"/api/v1/namespaces/{team}") is None, 60)


def test_teams_of_one_queue_share_its_quota(world: ExampleWorld) -> None:
    world.take("skypilot-shared")
    world.converge()
    text = world.api("research").get(f"/api/v1/namespaces/{SYSTEM}/configmaps/{CONFIG_MAP}")["data"]
    assert "- pod" in str(text)
    world.run_pod("team1", "train", 40)
    assert world.admitting_queue("team1", "train") == "skypilot"
    world.run_pod("team2", "train", 40)
    assert "insufficient unused quota" in world.waits_for("team2", "train")
    world.run_pod("team2", "small", 20)
    assert world.admitting_queue("team2", "small") == "skypilot"
    assert eventually(lambda: world.use("skypilot")["total"] == "60")


def test_teams_with_queues_of_their_own_have_their_halves_and_borrow(world: ExampleWorld) -> None:
    world.take("skypilot-cohort")
    world.converge()
    for team in TEAMS:
        world.run_pod(team, "own", 20)
        assert world.admitting_queue(team, "own") == team
    world.run_pod("team1", "more", 20)
    assert world.admitting_queue("team1", "more") == "team1"
    assert eventually(lambda: world.use("team1") == {"total": "40", "borrowed": "8"})
    world.run_pod("team2", "rest", 10)
    assert eventually(lambda: not _is_there(world, "team1", "more") or not world.is_running("team1", "more"), 60)
    assert world.admitting_queue("team2", "rest") == "team2"


def _is_there(world: ExampleWorld, team: str, name: str) -> bool:
    """Kueue ends what was borrowed by deleting the pod."""
    try:
        return world.api("research").find(f"/api/v1/namespaces/{team}/pods/{name}") is not None
    except ClusterError:
        return True
