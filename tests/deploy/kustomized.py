"""What `kubectl apply -k` would send."""

import subprocess
from functools import cache
from pathlib import Path

import yaml

from reconciler.objects import Manifest
from reconciler.sandbox.programs import PROGRAMS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@cache
def kustomized(folder: str) -> tuple[Manifest, ...]:
    """Needs the sandbox's kubectl."""
    command = [str(PROGRAMS["kubernetes"].binary), "kubectl", "kustomize", str(DEPLOY / folder)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(yaml.safe_load_all(answer.stdout))


def written(path: Path) -> list[Manifest]:
    return [*yaml.safe_load_all(path.read_text())]
