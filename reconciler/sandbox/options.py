"""Nodes of worker clusters: real Node objects whose kubelet is kwok."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import SandboxError
from reconciler.objects import ClusterName, Manifest
from reconciler.sandbox import kubestellar, kueue
from reconciler.sandbox.programs import DEFAULT_KUEUE, KUEUE_VERSIONS, PROGRAMS, Program
from reconciler.sandbox.state import ITS, MANAGER, sandbox_folder

CLUSTERS_ANNOTATION = "kfleet.dev/clusters"
DEFAULT_COUNT = 3
DEFAULT_SHAPE = {"cpu": "32", "memory": "128Gi", "pods": "110"}
COMPLETE_DELAY = '.metadata.annotations["pod-complete.stage.kwok.x-k8s.io/delay"]'
NO_KUEUE = "none"
MAX_WORKERS = 50


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


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What `up` should bring up.

    `kueue_by_cluster` says which version runs where; the others get the default. Beside KubeStellar only the manager
    has one by default: a worker's Kueue would hold the jobs that arrive there.
    """

    name: str = "default"
    workers: int = 2
    default_kueue: str = DEFAULT_KUEUE
    kueue_by_cluster: Mapping[str, str] = field(default_factory=dict)
    nodes: str = str(DEFAULT_COUNT)
    frameworks: tuple[str, ...] = kueue.FRAMEWORKS
    has_kubestellar: bool = False
    is_owned: bool = False

    @property
    def worker_names(self) -> tuple[ClusterName, ...]:
        return tuple(ClusterName(f"worker{index + 1}") for index in range(self.workers))

    @property
    def cluster_names(self) -> tuple[ClusterName, ...]:
        return (MANAGER, *self.worker_names, *((ITS,) if self.has_kubestellar else ()))

    def kueue_of(self, cluster: str) -> str:
        default = NO_KUEUE if self.has_kubestellar and cluster != MANAGER else self.default_kueue
        version = self.kueue_by_cluster.get(cluster, default)
        return "" if version == NO_KUEUE else version

    @property
    def programs(self) -> tuple[Program, ...]:
        """The Go programs that this sandbox is made of."""
        versions = sorted({self.kueue_of(cluster) for cluster in self.cluster_names} - {""}, reverse=True)
        names = ["etcd", "kubernetes", "kwok", *(f"kueue-{version}" for version in versions)]
        return tuple(PROGRAMS[name] for name in (*names, *(kubestellar.PROGRAM_NAMES if self.has_kubestellar else ())))


def check_options(options: SandboxOptions) -> None:
    """Refuse what cannot be brought up."""
    sandbox_folder(options.name)
    if not 0 <= options.workers <= MAX_WORKERS:
        raise SandboxError("--workers", f"{options.workers} is out of range: 0 to {MAX_WORKERS}")
    for cluster in options.kueue_by_cluster:
        if cluster not in options.cluster_names:
            raise SandboxError("--kueue", f"no cluster {cluster!r}; there will be: {', '.join(options.cluster_names)}")
    for version in (options.default_kueue, *options.kueue_by_cluster.values()):
        if version not in (*KUEUE_VERSIONS, NO_KUEUE):
            raise SandboxError(
                "--kueue", f"no version {version!r}; there are: {', '.join((*KUEUE_VERSIONS, NO_KUEUE))}"
            )
    read_nodes(options.nodes, options.worker_names)
