"""deploy/ as somebody puts it together: with its components, and with settings that fit each other."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from reconciler.clients.git import SSH
from reconciler.snapshot.recording import unpacked
from tests import fast_yaml
from tests.repositories import GIT, example_repository, git
from tests.support import kfleet_program
from tests.unit.deploy.kustomized import DEPLOY

COMPONENTS = ("monitoring", "kubestellar", "members", "skypilot", "webhook", "page")
LISTED = {path.parent.name for path in DEPLOY.glob("*/kustomization.yaml") if "kind: Component" in path.read_text()}


def test_every_component_for_the_controller_is_tried() -> None:
    """That of Argo CD goes into an installation of Argo CD."""
    assert LISTED - {"argocd"} == set(COMPONENTS)


def test_programs_that_kfleet_calls_are_in_the_image() -> None:
    """Those of procps are called by GitPython, to end a fetch that takes too long."""
    (line,) = re.findall(r"apt-get install (.*) \\", (DEPLOY / "Dockerfile").read_text())
    assert {"git", "openssh-client", "gpg", "ca-certificates", "procps"} <= set(line.split())


JOBS = ("cronjob/cronjob.yaml", "observe/cronjob.yaml", "snapshot/cronjob.yaml")


@pytest.mark.parametrize("path", ["controller/deployment.yaml", *JOBS])
def test_ssh_of_deploy_gives_up_on_silence_like_the_one_of_kfleet(path: str) -> None:
    (command,) = re.findall(r"ssh -o BatchMode.*", (DEPLOY / path).read_text())
    assert command.startswith(SSH)


@pytest.mark.parametrize("name", ["observe", "snapshot"])
def test_script_is_mounted_where_the_job_starts_it(name: str) -> None:
    folder = DEPLOY / name
    (made,) = fast_yaml.safe_load((folder / "kustomization.yaml").read_text())["configMapGenerator"]
    pod = fast_yaml.safe_load((folder / "cronjob.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (volume,) = [one for one in pod["volumes"] if one.get("configMap") == {"name": made["name"]}]
    (container,) = pod["containers"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == volume["name"]]
    assert container["command"] == ["sh", f"{mount['mountPath']}/{made['files'][0]}"]


def test_script_replaces_the_only_snapshot_of_its_branch(tmp_path: Path) -> None:
    repo = example_repository(tmp_path / "fleet.git")
    fleet = {"KFLEET_REPO": str(repo), "KFLEET_REVISION": "main", "KFLEET_PATH": "fleet", "KFLEET_OVERLAY": ""}
    people = {f"GIT_{who}_{what}": "k" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{Path(kfleet_program()).parent}:{os.environ['PATH']}"
    for cache in ("first", "second"):
        (tmp_path / cache).mkdir()
        settings = {**fleet, **people, "KFLEET_SNAPSHOT_BRANCH": "shots", "XDG_CACHE_HOME": str(tmp_path / cache)}
        script = ["sh", str(DEPLOY / "snapshot" / "snapshot.sh")]
        subprocess.run(script, env={**os.environ, **settings, "PATH": path}, check=True, capture_output=True)
    assert git(repo, "ls-tree", "--name-only", "shots") == "world.json.gz"
    assert git(repo, "rev-list", "--count", "shots") == "1"
    shown = subprocess.run([GIT, "show", "shots:world.json.gz"], cwd=repo, check=True, capture_output=True)
    assert unpacked(shown.stdout).fleet == "science"
