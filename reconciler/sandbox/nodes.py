"""Nodes of worker clusters: real Node objects whose kubelet is kwok."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import SandboxError
from reconciler.objects import ClusterName, Manifest
from reconciler.sandbox.programs import PROGRAMS

CLUSTERS_ANNOTATION = "kfleet.dev/clusters"
DEFAULT_COUNT = 3
DEFAULT_SHAPE = {"cpu": "32", "memory": "128Gi", "pods": "110"}
COMPLETE_DELAY = '.metadata.annotations["pod-complete.stage.kwok.x-k8s.io/delay"]'


def node_manifest(name: str, shape: Manifest = DEFAULT_SHAPE, labels: Manifest | None = None) -> Manifest:
    """A node that offers `shape`."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": dict(shape), "capacity": dict(shape)},
    }


def read_nodes(choice: str, clusters: tuple[ClusterName, ...]) -> dict[ClusterName, tuple[Manifest, ...]]:
    """The nodes of each worker: `choice` is a number, or a file with Node documents."""
    if re.fullmatch(r"\d{1,4}", choice):
        return {
            cluster: tuple(node_manifest(f"{cluster}-node-{index + 1}") for index in range(int(choice)))
            for cluster in clusters
        }
    documents = tuple(_read_file(Path(choice)))
    for document in documents:
        if foreign := sorted(_targets(document, clusters) - set(clusters)):
            raise SandboxError(
                f"{choice}: Node {document['metadata']['name']}",
                f"{CLUSTERS_ANNOTATION} names {', '.join(foreign)}; the workers are {', '.join(clusters)}",
            )
    return {
        cluster: tuple(document for document in documents if cluster in _targets(document, clusters))
        for cluster in clusters
    }


def stages() -> list[Manifest]:
    """What kwok plays on nodes and pods; an annotation on a pod says how long it runs (`1m`)."""
    found = PROGRAMS["kwok"].manifests("kustomize/stage/**/*.json")
    return [_with_delay(stage) if stage["metadata"]["name"] == "pod-complete" else stage for stage in found]


def _with_delay(stage: dict[str, Any]) -> Manifest:
    delay = {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": COMPLETE_DELAY}}
    return {**stage, "spec": {**stage["spec"], "delay": delay}}


def _read_file(path: Path) -> Iterator[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SandboxError(str(path), f"cannot be read as YAML: {error}") from error
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != "Node":
            raise SandboxError(str(path), "holds something else than Node documents", "each has `kind: Node`")
        yield document


def _targets(document: Manifest, clusters: tuple[ClusterName, ...]) -> set[str]:
    named = (document["metadata"].get("annotations") or {}).get(CLUSTERS_ANNOTATION)
    return {name.strip() for name in named.split(",")} if named else set(clusters)
