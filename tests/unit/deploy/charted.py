"""What `helm install` would send."""

import subprocess
from pathlib import Path

from reconciler.objects import Manifest
from reconciler.sandbox.programs import PROGRAMS
from tests import fast_yaml
from tests.unit.deploy.kustomized import DEPLOY

CHART = DEPLOY / "chart"


def helm(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Needs the helm that the sandbox builds."""
    settings = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = [str(PROGRAMS["helm"].binary), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=settings)


def charted(home: Path, *options: str) -> tuple[Manifest, ...]:
    arguments = ("template", "kfleet", str(CHART), "--namespace=kfleet-system", *options)
    answer = helm(*arguments, home=home)
    assert answer.returncode == 0, answer.stderr
    return tuple(entry for entry in fast_yaml.safe_load_all(answer.stdout) if entry)
