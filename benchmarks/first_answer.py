"""The first minutes of a new user: from `pip install` of the wheel to what `kfleet doctor` says of three clusters."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox, up
from reconciler.sandbox.options import SandboxOptions

ROOT = Path(__file__).parent.parent
OLD_KUEUE = "0.16.2"
# On each cluster one thing that is wrong: an answer without it would not be a useful one.
MISTAKE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: night, namespace: default}
spec: {clusterQueue: nowhere}
"""

Row = tuple[str, str, str]


def measure() -> list[Row]:
    sandbox = up(SandboxOptions("bench-first", kueue_by_cluster={"worker2": OLD_KUEUE}, is_owned=True))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return [*_first_answer(sandbox, Path(scratch))]
    finally:
        sandbox.down()


def _first_answer(sandbox: Sandbox, scratch: Path) -> list[Row]:
    for cluster in sandbox.state.clusters:
        _make_mistake(sandbox, cluster.name)
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(scratch), cwd=ROOT)
    (wheel,) = scratch.glob("*.whl")
    python = scratch / "venv" / "bin" / "python"
    made = _timed(sys.executable, "-m", "venv", str(python.parent.parent))
    installed = _timed(str(python), "-m", "pip", "install", "--quiet", str(wheel))
    # The first start compiles the modules, as for every new user.
    first = _doctor(sandbox, python)
    again = _doctor(sandbox, python)
    parts = f"{made:.1f} s venv, {installed:.1f} s pip install, {first:.1f} s doctor"
    return [
        (
            "empty environment, `pip install` of the wheel, `kfleet doctor` of three clusters",
            "60 s",
            f"{made + installed + first:.1f} s ({parts})",
        ),
        ("`kfleet doctor` of three clusters once more", "-", f"{again:.1f} s"),
    ]


def _make_mistake(sandbox: Sandbox, cluster: str) -> None:
    command = kubectl_command(sandbox.state, cluster, "apply", "-f", "-")
    subprocess.run(command, input=MISTAKE, text=True, check=True, capture_output=True)


def _doctor(sandbox: Sandbox, python: Path) -> float:
    environment = os.environ | {"KUBECONFIG": str(sandbox.state.kubeconfig)}
    started = time.perf_counter()
    answer = subprocess.run(
        [str(python.parent / "kfleet"), "doctor", "-o", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - started
    lost = [one for one in json.loads(answer.stdout)["diagnostics"] if one["code"] == "lost-local-queue"]
    assert len(lost) == len(sandbox.state.clusters), answer.stdout
    return took


def _timed(*command: str) -> float:
    started = time.perf_counter()
    _run(*command)
    return time.perf_counter() - started


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL)
