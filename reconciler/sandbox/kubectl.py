"""The sandbox's own kubectl, for people and for what is done the way people do it."""

import subprocess
from pathlib import Path

from reconciler.errors import SandboxError
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxState


def kubectl_command(state: SandboxState, cluster: str, *arguments: str) -> list[str]:
    context = state.cluster(cluster).name
    options = (f"--kubeconfig={state.kubeconfig}", f"--context={context}")
    return [str(PROGRAMS["kubernetes"].binary), "kubectl", *options, *arguments]


def kubectl(state: SandboxState, cluster: str, *arguments: str) -> str:
    """Run one kubectl command and return what it printed."""
    answer = subprocess.run(
        kubectl_command(state, cluster, *arguments), capture_output=True, text=True, check=False, cwd=Path("/")
    )
    if answer.returncode != 0:
        raise SandboxError(f"{cluster}: kubectl {' '.join(arguments)}", answer.stderr.strip())
    return answer.stdout
