"""deploy/observe: what it commits into a real repository, and what the plugin makes of it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import node_manifest
from tests import fast_yaml
from tests.builders import main_tenant, observed_flavor, open_queue
from tests.cluster.argocd.servers import PLUGIN
from tests.cluster.live_fleet import ONE, LiveFleet, MakeLiveFleet
from tests.repositories import git
from tests.support import eventually, kfleet_program

OBSERVE = PLUGIN.parent / "observe"
SHELL = shutil.which("sh") or "sh"
FILE = "observations.json"


@dataclass(frozen=True)
class Forge:
    """A bare repository with a fleet whose quota follows nodes, and the container that looks at it."""

    live_fleet: LiveFleet
    bare: Path

    def push(self) -> None:
        git(self.live_fleet.folder, "push", "--quiet", str(self.bare), "HEAD:refs/heads/main")

    def observe(self, folder: str) -> subprocess.CompletedProcess[str]:
        """The script as the CronJob runs it, with a volume of its own."""
        cache = self.bare.parent / folder
        cache.mkdir()
        settings = {
            **written_settings(),
            "KFLEET_REPO": str(self.bare),
            "KFLEET_REVISION": "main",
            "KFLEET_PATH": "fleet",
            "KFLEET_OVERLAY": "",
            "XDG_CACHE_HOME": str(cache),
            "HOME": str(cache),
            "PATH": f"{Path(kfleet_program()).parent}:{os.environ['PATH']}",
        }
        command = [SHELL, str(OBSERVE / "observe.sh")]
        return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)

    def rewrite(self, old: str, new: str) -> None:
        """Commit what was observed with other times."""
        git(self.live_fleet.folder, "pull", "--quiet", "--no-rebase", str(self.bare), "main")
        path = self.live_fleet.folder / FILE
        path.write_text(re.sub(old, new, path.read_text()))
        self.live_fleet.commit_all()
        self.push()

    def commits(self) -> list[str]:
        return git(self.bare, "log", "--format=%an", "main").splitlines()

    def quota(self) -> str:
        """What Argo CD would write."""
        checkout = self.bare.parent / f"checkout-{len(self.commits())}"
        git(self.bare, "clone", "--quiet", str(self.bare), "--branch", "main", str(checkout))
        settings = {"ARGOCD_APP_SOURCE_PATH": "fleet", "ARGOCD_ENV_SNAPSHOT": FILE}
        done = subprocess.run(
            [kfleet_program(), "argocd", "generate"],
            cwd=checkout / "fleet",
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=True,
        )
        objects = [json.loads(text) for text in done.stdout.split("---\n") if text]
        (queue,) = (entry for entry in objects if entry["kind"] == "ClusterQueue")
        return str(queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def written_settings() -> dict[str, str]:
    manifest = fast_yaml.safe_load((OBSERVE / "cronjob.yaml").read_text())
    (container,) = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "/etc/kfleet/observe/observe.sh"]
    return {entry["name"]: entry["value"] for entry in container["env"]}


@pytest.fixture
def node(fleet: Sandbox, unique: str) -> Iterator[str]:
    """A node of 8 cpus that only this test selects."""
    api, path = fleet.api("worker1"), f"/api/v1/nodes/{unique}"
    shape = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    fleet.add_nodes("worker1", [node_manifest(unique, shape, {"test": unique})])
    eventually(lambda: is_ready(api.get(path)))
    yield path
    api.delete(path)


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions) and not node["spec"].get(
        "taints"
    )


@pytest.fixture
def forge(make_live_fleet: MakeLiveFleet, tmp_path: Path, unique: str, node: str) -> Forge:
    live_fleet = make_live_fleet(unique, ONE)
    assert live_fleet.api().find(node)
    flavor = observed_flavor(unique, "nodes", nodeLabels={"test": unique})
    live_fleet.commit(flavor, open_queue(unique, unique, {"cpu": "50%"}), main_tenant(unique, unique))
    made = Forge(live_fleet, tmp_path / "fleet.git")
    git(tmp_path, "init", "--quiet", "--bare", str(made.bare))
    made.push()
    return made


def test_observation_is_committed_where_it_says_something_new(forge: Forge, node: str) -> None:
    done = forge.observe("first")
    assert done.returncode == 0, done.stderr
    assert forge.commits() == ["kfleet", "Ada"]
    assert forge.quota() == "4"
    # A second time, because a new day may have begun before the first.
    assert adds_nothing(forge, "second") or adds_nothing(forge, "third")
    forge.live_fleet.api().patch(f"{node}/status", {"status": {"allocatable": {"cpu": "10"}}})
    done = forge.observe("fourth")
    assert done.returncode == 0, done.stderr
    assert forge.quota() == "5"


def test_observation_goes_on_from_the_one_that_was_committed(forge: Forge, node: str) -> None:
    """Nothing else knows since when there is less, or a pool is silent."""
    assert forge.observe("first").returncode == 0
    forge.live_fleet.api().patch(f"{node}/status", {"status": {"allocatable": {"cpu": "6"}}})
    assert forge.observe("second").returncode == 0
    assert forge.quota() == "4"
    forge.rewrite(r'"20\d\d-', '"2020-')
    done = forge.observe("third")
    assert done.returncode == 0, done.stderr
    assert forge.quota() == "3"


def adds_nothing(forge: Forge, folder: str) -> bool:
    before = forge.commits()
    done = forge.observe(folder)
    assert done.returncode == 0, done.stderr
    return forge.commits() == before and done.stdout == "nothing new since the last commit\n"


def test_observation_of_another_day_is_committed_again(forge: Forge) -> None:
    assert forge.observe("first").returncode == 0
    forge.rewrite(r'"at": "[^"]*"', '"at": "2026-05-04T03:02:01+00:00"')
    done = forge.observe("second")
    assert done.returncode == 0, done.stderr
    assert forge.commits()[0] == "kfleet"


def test_half_a_look_is_not_committed(forge: Forge) -> None:
    path = forge.live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker1", "context: nowhere"))
    forge.live_fleet.commit_all()
    forge.push()
    done = forge.observe("first")
    assert done.returncode == 4 and "gap: " in done.stderr
    assert forge.commits() == ["Ada", "Ada"]
