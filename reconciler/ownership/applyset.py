"""The ApplySet of a fleet on a cluster: which objects are the fleet's own.

The label on each member is the truth, where kfleet itself has applied it: copies that others make have it too. The
parent says in which kinds and namespaces to look for members: it is widened before the writes and narrowed after full
success, so that a crash at any point leaks nothing.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.ownership.memory import Addresses, addresses_text, read_addresses

ID_LABEL = "applyset.kubernetes.io/id"
MEMBER_LABEL = "applyset.kubernetes.io/part-of"
TOOLING = "applyset.kubernetes.io/tooling"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
CLUSTER = "kfleet.dev/cluster"
CLUSTER_UID = "kfleet.dev/cluster-uid"
FLEET = "kfleet.dev/fleet-uids"
ADDRESSES = "kfleet.dev/fleet-addresses"
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
        return _set_id(self.name, self.namespace)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the parent says: the kinds (`Kind.group`) and namespaces of members, and whose cluster it believes to be.

    On the manager, `fleet` holds the uid that each cluster had when the fleet first wrote to it, and `addresses` how
    its workers are reached.
    """

    kinds: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    cluster: str = ""
    cluster_uid: str = ""
    tool: str = ""
    fleet: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)

    def with_members(self, refs: Iterable[Ref]) -> "Inventory":
        """The same set, wide enough for these members too."""
        members = tuple(refs)
        return replace(
            self,
            kinds=self.kinds | {kind_text(ref) for ref in members},
            namespaces=self.namespaces | {ref.namespace for ref in members if ref.namespace},
        )


@cache
def _set_id(name: str, namespace: str) -> str:
    """Asked for with every object, and always the same."""
    identity = f"{name}.{namespace}.ConfigMap."
    digest = urlsafe_b64encode(hashlib.sha256(identity.encode()).digest()).decode().rstrip("=")
    return f"applyset-{digest}-v1"


def kind_text(ref: Ref) -> str:
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind


def kind_key(text: str) -> tuple[str, str]:
    """Group and kind, as they are looked up."""
    kind, _, group = text.partition(".")
    return group, kind


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
        _read_fleet(annotations.get(FLEET, "")),
        read_addresses(annotations.get(ADDRESSES, "")),
    )


def _read_fleet(text: str) -> Mapping[str, str]:
    """`east=uid,west=uid`; an entry that somebody broke is as good as none."""
    pairs = (entry.partition("=") for entry in text.split(","))
    return {name: uid for name, _, uid in pairs if name and uid}


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
                **({FLEET: _fleet_text(inventory.fleet)} if inventory.fleet else {}),
                **({ADDRESSES: addresses_text(inventory.addresses)} if inventory.addresses else {}),
            },
        },
    }


def _fleet_text(fleet: Mapping[str, str]) -> str:
    return ",".join(f"{name}={uid}" for name, uid in sorted(fleet.items()))
