"""Kubeconfig files of sandbox clusters."""

import subprocess
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import SandboxError
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxCluster, SandboxState


def write_kubeconfig(path: Path, clusters: Iterable[SandboxCluster]) -> None:
    """Written whole or not at all: clients read it while parts of the sandbox come and go."""
    partial = path.with_suffix(".partial")
    partial.touch(mode=0o600)
    partial.write_text(kubeconfig_text(clusters))
    partial.rename(path)


def kubeconfig_text(clusters: Iterable[SandboxCluster]) -> str:
    """One context per cluster, named as the cluster; the first is the current one."""
    known = tuple(clusters)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": known[0].name if known else "",
        "clusters": [{"name": entry.name, "cluster": _server(entry)} for entry in known],
        "users": [{"name": entry.name, "user": _user(entry)} for entry in known],
        "contexts": [{"name": entry.name, "context": _context(entry)} for entry in known],
    }
    return yaml.safe_dump(content, sort_keys=False)


def _server(cluster: SandboxCluster) -> dict[str, Any]:
    return {"server": cluster.access.server, "certificate-authority-data": _encoded(cluster.access.ca)}


def _user(cluster: SandboxCluster) -> dict[str, Any]:
    return {"token": cluster.access.token}


def _context(cluster: SandboxCluster) -> dict[str, Any]:
    return {"cluster": str(cluster.name), "user": str(cluster.name), "namespace": "default"}


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


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
