"""Kubeconfig files of sandbox clusters."""

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from reconciler.sandbox.state import SandboxCluster


def write_kubeconfig(path: Path, clusters: Iterable[SandboxCluster]) -> None:
    """Whole or not at all: parts of a sandbox come and go while somebody reads it."""
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
    return {
        "client-certificate-data": _encoded(cluster.access.client_certificate),
        "client-key-data": _encoded(cluster.access.client_key),
    }


def _context(cluster: SandboxCluster) -> dict[str, Any]:
    return {"cluster": str(cluster.name), "user": str(cluster.name), "namespace": "default"}


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
