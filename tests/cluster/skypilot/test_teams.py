"""Two teams with plain pods on real Kueue: one queue for both, and a queue for each in a cohort."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_MAP
from tests.cluster.engine.worlds import SYSTEM
from tests.cluster.kueueconfig.worlds import kept_configuration
from tests.cluster.skypilot.worlds import ExampleWorld
from tests.support import eventually

TEAMS = ("team1", "team2")


@pytest.fixture(scope="module", autouse=True)
def _kept_configuration(fleet: Sandbox, restartable: ClusterName) -> Iterator[None]:
    """Others expect the cluster as it was, without the integration of pods."""
    with kept_configuration(fleet.api(restartable)):
        yield


@pytest.fixture
def world(fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path) -> Iterator[ExampleWorld]:
    world = ExampleWorld(fleet, tmp_path / "repo", unique, {"research": restartable})
    yield world
    api = world.api("research")
    for team in TEAMS:
        for pod in list(api.list(f"/api/v1/namespaces/{team}/pods")):
            path = f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}"
            with suppress(ClusterError):  # some are on their way out
                api.patch(path, {"metadata": {"finalizers": None}})
                api.delete(path)
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


def test_pods_of_one_launch_start_together_or_not_at_all(world: ExampleWorld) -> None:
    """But those of a server that does not know of Kueue are queued one by one."""
    world.take("skypilot-shared", {"team2": "0.9.3"})
    world.converge()
    world.launch("team1", "train", 20, ["train-head", "train-worker1"])
    assert {world.admitting_queue("team1", pod) for pod in ("train-head", "train-worker1")} == {"skypilot"}
    world.launch("team1", "more", 20, ["more-head", "more-worker1"])
    for pod in ("more-head", "more-worker1"):
        assert "insufficient unused quota" in world.waits_for("team1", pod)
    assert world.workloads("team1") == 2
    world.launch("team2", "old", 20, ["old-head", "old-worker1"])
    assert world.admitting_queue("team2", "old-head") == "skypilot"
    assert "insufficient unused quota" in world.waits_for("team2", "old-worker1")
    assert world.workloads("team2") == 2


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
    # Kueue ends what was borrowed by deleting a pod: the last that came, or either where both came in one second.
    assert eventually(lambda: any(world.has_stopped("team1", name) for name in ("own", "more")), 60)
    assert world.admitting_queue("team2", "rest") == "team2"
