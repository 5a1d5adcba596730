"""Two teams with plain pods on real Kueue: one queue for both, and a queue for each in a cohort."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_MAP
from tests.cluster.kueue_config.configured_live_fleet import kept_configuration
from tests.cluster.live_fleet import SYSTEM
from tests.cluster.skypilot.example_live_fleet import ExampleLiveFleet
from tests.support import eventually

TEAMS = ("team1", "team2")


@pytest.fixture(scope="module", autouse=True)
def _kept_configuration(fleet: Sandbox, restartable: ClusterName) -> Iterator[None]:
    """Others expect the cluster as it was, without the integration of pods."""
    with kept_configuration(fleet.api(restartable)):
        yield


@pytest.fixture
def live_fleet(fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path) -> Iterator[ExampleLiveFleet]:
    live_fleet = ExampleLiveFleet(fleet, tmp_path / "repo", unique, {"research": restartable})
    yield live_fleet
    api = live_fleet.api("research")
    for team in TEAMS:
        for pod in list(api.list(f"/api/v1/namespaces/{team}/pods")):
            path = f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}"
            with suppress(ClusterError):  # some are on their way out
                api.patch(path, {"metadata": {"finalizers": None}})
                api.delete(path)
    live_fleet.clean()
    eventually(lambda: not any(api.find(f"/api/v1/namespaces/{team}") for team in TEAMS), 60)


def test_teams_of_one_queue_share_its_quota(live_fleet: ExampleLiveFleet) -> None:
    live_fleet.take("skypilot-shared")
    live_fleet.converge()
    text = live_fleet.api("research").get(f"/api/v1/namespaces/{SYSTEM}/configmaps/{CONFIG_MAP}")["data"]
    assert "- pod" in str(text)
    live_fleet.run_pod("team1", "train", 40)
    assert live_fleet.admitting_queue("team1", "train") == "skypilot"
    live_fleet.run_pod("team2", "train", 40)
    assert "insufficient unused quota" in live_fleet.waits_for("team2", "train")
    live_fleet.run_pod("team2", "small", 20)
    assert live_fleet.admitting_queue("team2", "small") == "skypilot"
    assert eventually(lambda: live_fleet.use("skypilot")["total"] == "60")


def test_pods_of_one_launch_start_together_or_not_at_all(live_fleet: ExampleLiveFleet) -> None:
    """But those of a server that does not know of Kueue are queued one by one."""
    live_fleet.take("skypilot-shared", {"team2": "0.9.3"})
    live_fleet.converge()
    live_fleet.launch("team1", "train", 20, ["train-head", "train-worker1"])
    assert {live_fleet.admitting_queue("team1", pod) for pod in ("train-head", "train-worker1")} == {"skypilot"}
    live_fleet.launch("team1", "more", 20, ["more-head", "more-worker1"])
    for pod in ("more-head", "more-worker1"):
        assert "insufficient unused quota" in live_fleet.waits_for("team1", pod)
    assert live_fleet.workloads("team1") == 2
    live_fleet.launch("team2", "old", 20, ["old-head", "old-worker1"])
    assert live_fleet.admitting_queue("team2", "old-head") == "skypilot"
    assert "insufficient unused quota" in live_fleet.waits_for("team2", "old-worker1")
    assert live_fleet.workloads("team2") == 2


def test_teams_with_queues_of_their_own_have_their_halves_and_borrow(live_fleet: ExampleLiveFleet) -> None:
    live_fleet.take("skypilot-cohort")
    live_fleet.converge()
    for team in TEAMS:
        live_fleet.run_pod(team, "own", 20)
        assert live_fleet.admitting_queue(team, "own") == team
    live_fleet.run_pod("team1", "more", 20)
    assert live_fleet.admitting_queue("team1", "more") == "team1"
    assert eventually(lambda: live_fleet.use("team1") == {"total": "40", "borrowed": "8"})
    live_fleet.run_pod("team2", "rest", 10)
    # Kueue ends what was borrowed by deleting a pod: the last that came, or either where both came in one second.
    assert eventually(lambda: any(live_fleet.has_stopped("team1", name) for name in ("own", "more")), 60)
    assert live_fleet.admitting_queue("team2", "rest") == "team2"
