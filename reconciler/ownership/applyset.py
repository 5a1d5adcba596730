"""The ApplySet of a fleet on a cluster: which objects are the fleet's own.

The label on each member is the truth. The parent says in which kinds and namespaces to look for members: it is widened
before the writes and narrowed after full success, so that a crash at any point leaks nothing.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.objects import ClusterName, Manifest, Ref

ID_LABEL = "applyset.kubernetes.io/id"
MEMBER_LABEL = "applyset.kubernetes.io/part-of"
TOOLING = "applyset.kubernetes.io/tooling"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
CLUSTER = "kfleet.dev/cluster"
CLUSTER_UID = "kfleet.dev/cluster-uid"
TOOL = "kfleet"
TOOL_VERSION = f"{TOOL}/v1"


@dataclass(frozen=True, slots=True)
class SetName:
    """Where the parent of a fleet's ApplySet lies."""

    fleet: str
    namespace: str

    @property
    def name(self) -> str:
        return f"kfleet-{self.fleet}"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"

    @property
    def id(self) -> str:
        identity = f"{self.name}.{self.namespace}.ConfigMap."
        digest = urlsafe_b64encode(hashlib.sha256(identity.encode()).digest()).decode().rstrip("=")
        return f"applyset-{digest}-v1"


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the parent says: the kinds (`Kind.group`) and namespaces of members, and whose cluster it believes to be."""

    kinds: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    cluster: str = ""
    cluster_uid: str = ""
    tool: str = ""

    def with_members(self, refs: Iterable[Ref]) -> "Inventory":
        """The same set, wide enough for these members too."""
        members = tuple(refs)
        return Inventory(
            self.kinds | {kind_text(ref) for ref in members},
            self.namespaces | {ref.namespace for ref in members if ref.namespace},
            self.cluster,
            self.cluster_uid,
            self.tool,
        )


def kind_text(ref: Ref) -> str:
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind


def read_parent(parent: Manifest | None) -> Inventory | None:
    if parent is None:
        return None
    annotations = parent["metadata"].get("annotations") or {}
    return Inventory(
        frozenset(filter(None, annotations.get(KINDS, "").split(","))),
        frozenset(filter(None, annotations.get(NAMESPACES, "").split(","))),
        annotations.get(CLUSTER, ""),
        annotations.get(CLUSTER_UID, ""),
        annotations.get(TOOLING, "").partition("/")[0],
    )


def parent_manifest(name: SetName, inventory: Inventory, cluster: ClusterName, cluster_uid: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name.name,
            "namespace": name.namespace,
            "labels": {ID_LABEL: name.id},
            "annotations": {
                TOOLING: TOOL_VERSION,
                KINDS: ",".join(sorted(inventory.kinds)),
                NAMESPACES: ",".join(sorted(inventory.namespaces - {name.namespace})),
                CLUSTER: cluster,
                CLUSTER_UID: cluster_uid,
            },
        },
    }
