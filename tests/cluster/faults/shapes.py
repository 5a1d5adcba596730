"""Shapes of fleets: real repositories whose clusters are reached through the kubeconfig that a test chooses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from git import Actor, Repo

from reconciler.clients.kubernetes import ApiServer
from reconciler.state.applyset import KINDS, MEMBER_LABEL, SetName
from tests.builders import Document, cluster_document, flavor, fleet_document, native, queue, quota, tenant

AUTHOR = Actor("Test", "test@example.com")
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "WorkloadPriorityClass": f"{KUEUE}/workloadpriorityclasses",
    "ResourceFlavor": f"{KUEUE}/resourceflavors",
    "Cohort": f"{KUEUE}/cohorts",
    "ClusterQueue": f"{KUEUE}/clusterqueues",
    "LocalQueue": f"{KUEUE}/localqueues",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A fleet with a queue, a namespace with a LocalQueue, and a priority class per team; all on every worker.

    The manager gets the priority classes only. `priority` and `quota` are what a commit changes.
    """

    name: str
    kubeconfigs: Mapping[str, Path] = field(repr=False)
    teams: tuple[str, ...] = ("a", "b", "c")
    priority: int = 10
    quota: str = "5"

    @property
    def set_name(self) -> SetName:
        return SetName(self.name, "kueue-system")

    def objects(self, cluster: str) -> set[str]:
        """What a cluster should hold, as `Kind/name`."""
        named = [f"{self.name}-{team}" for team in self.teams]
        classes = {f"WorkloadPriorityClass/{name}" for name in named}
        if cluster == "manager":
            return classes
        own = {f"{kind}/{name}" for kind in ("Namespace", "ClusterQueue", "LocalQueue") for name in named}
        shared = {f"Cohort/{self.name}"} if self.teams else set()
        return classes | own | shared | {f"ResourceFlavor/{self.name}"}

    def documents(self) -> list[Document]:
        return [
            fleet_document(self.name, policy={"prune": {"maxDeletes": 1000, "maxPercent": 100}}),
            *(self._cluster(name, path) for name, path in self.kubeconfigs.items()),
            flavor(self.name, {"cpu": "1000"}),
            *(document for team in self.teams for document in self._team(f"{self.name}-{team}")),
        ]

    def _cluster(self, name: str, kubeconfig: Path) -> Document:
        role = "manager" if name == "manager" else "worker"
        return cluster_document(name, role, access={"kubeconfig": str(kubeconfig), "context": name})

    def _team(self, name: str) -> list[Document]:
        return [
            queue(name, quota(self.name, {"cpu": self.quota}), cohort=self.name),
            tenant(name, name, localQueue=name),
            {**native("WorkloadPriorityClass", name, None, "all"), "value": self.priority},
        ]


def commit(folder: Path, shape: Shape) -> Path:
    """Make the fleet the head of a repository."""
    repo = Repo.init(folder)
    path = folder / "fleet" / "all.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n---\n".join(json.dumps(document) for document in shape.documents()))
    repo.index.add([path])
    repo.index.commit("change", author=AUTHOR, committer=AUTHOR)
    repo.close()
    return folder


def members(api: ApiServer, shape: Shape) -> set[str]:
    """What a cluster holds of the fleet, by the label on the objects, as `Kind/name`."""
    selector = f"{MEMBER_LABEL}={shape.set_name.id}"
    return {
        f"{kind}/{entry['metadata']['name']}"
        for kind, collection in COLLECTIONS.items()
        for entry in api.list(collection, selector)
    }


def priorities(api: ApiServer, shape: Shape) -> set[int]:
    selector = f"{MEMBER_LABEL}={shape.set_name.id}"
    return {int(entry["value"]) for entry in api.list(COLLECTIONS["WorkloadPriorityClass"], selector)}


def recorded_kinds(api: ApiServer, shape: Shape) -> set[str]:
    """The kinds that the parent of the ApplySet names."""
    parent = api.get(shape.set_name.path)
    return {text.partition(".")[0] for text in parent["metadata"]["annotations"][KINDS].split(",") if text}
