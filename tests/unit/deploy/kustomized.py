"""What `kubectl apply -k` would send."""

import subprocess
from functools import cache
from pathlib import Path

from reconciler.objects import Manifest
from reconciler.sandbox.programs import PROGRAMS
from tests import fast_yaml
from tests.support import ROOT

DEPLOY = ROOT / "deploy"


@cache
def kustomized(folder: str) -> tuple[Manifest, ...]:
    return built(DEPLOY / folder)


def combined(folder: Path, resource: str, *components: str) -> tuple[Manifest, ...]:
    """What a folder of somebody's own gives, which lists parts of deploy/."""
    (folder / "deploy").symlink_to(DEPLOY)
    listed = {"resources": [f"deploy/{resource}"], "components": [f"deploy/{name}" for name in components]}
    (folder / "kustomization.yaml").write_text(fast_yaml.safe_dump(listed))
    return built(folder)


def built(folder: Path) -> tuple[Manifest, ...]:
    """Needs the sandbox's kubectl."""
    command = [str(PROGRAMS["kubernetes"].binary), "kubectl", "kustomize", str(folder)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(fast_yaml.safe_load_all(answer.stdout))


def written(path: Path) -> list[Manifest]:
    return [*fast_yaml.safe_load_all(path.read_text())]
