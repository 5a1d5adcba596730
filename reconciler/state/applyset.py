"""The ApplySet of a fleet on a cluster: the objects that belong to the fleet.

An object is a member if it has the label and kfleet itself has applied it: copies by other controllers have the label
too. The parent stores the kinds and namespaces of members. kfleet widens it before the writes and narrows it after full
success, so that a crash at any point leaves no unknown member.

The parent on the manager also records how to reach the fleet's workers, so that kfleet can still prune a worker that
was removed from the spec: names of contexts, files, variables and Secrets as the spec has them, never their content.

Decision: that record is in a ConfigMap, which every account that may write ConfigMaps in Kueue's namespace can change.
So kfleet stores a digest of each address on the Namespace itself, which these accounts cannot write. kfleet does not
use an address without its digest.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from reconciler.decoding import load_json
from reconciler.kueue.reading import as_map, as_text
from reconciler.objects import FIELD_MANAGER, ClusterName, Manifest, Ref
from reconciler.spec.enums import Drain, Role
from reconciler.spec.files import Document, SpecSource, read_source
from reconciler.spec.model import AccessSpec, Cluster, Kueue, SecretRef
from reconciler.state.managed_fields import has_applied

_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class Address:
    """The access of a worker, and the namespace of its Kueue."""

    namespace: str
    access: AccessSpec


Addresses = Mapping[str, Address]


def addresses_of(clusters: Iterable[Cluster]) -> Addresses:
    return {
        cluster.name: Address(cluster.kueue.namespace, cluster.access)
        for cluster in clusters
        if cluster.role is Role.WORKER
    }


def remembered_cluster(name: str, address: Address, document: Document) -> Cluster:
    kueue = Kueue(namespace=address.namespace)
    return Cluster(
        name=ClusterName(name),
        role=Role.WORKER,
        labels={},
        access=address.access,
        drain=Drain.NO,
        suspend=False,
        kueue=kueue,
        document=document,
    )


def record_text(uid: str, address: Address | None) -> str:
    """The record of one cluster: its uid and, for a worker, its address."""
    return json.dumps({**({"uid": uid} if uid else {}), **_address_record(address)}, separators=(",", ":"))


def read_uid(text: str) -> str:
    return as_text(_read(text).get("uid"))


def read_address(text: str) -> Address | None:
    """The address of a record; None if it has none, or if a user has made the record invalid."""
    entry = _read(text)
    namespace = as_text(entry.get("namespace"))
    return Address(namespace, _read_access(entry)) if namespace else None


def digest_of(fleet: str, name: str, address: Address) -> str:
    """A digest of an address. It must be long enough that an attacker cannot find another address with it."""
    text = json.dumps([fleet, name, _address_record(address)], sort_keys=True)
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]).decode()


def _read(text: str) -> Mapping[str, Any]:
    try:
        return as_map(load_json(text or "{}"))
    except ValueError:
        return {}


def _address_record(address: Address | None) -> dict[str, Any]:
    if address is None:
        return {}
    return {"namespace": address.namespace, **_without_empty(_access_record(address.access))}


def _access_record(access: AccessSpec) -> dict[str, Any]:
    secret = access.secret_ref
    return {
        "context": access.context,
        "kubeconfig": access.kubeconfig,
        "inCluster": access.in_cluster,
        "env": access.env,
        "secretRef": None if secret is None else _without_empty(_secret_record(secret)),
    }


def _secret_record(secret: SecretRef) -> dict[str, Any]:
    return {"namespace": secret.namespace, "name": secret.name, "key": secret.key}


def _without_empty(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value}


def _read_access(entry: Mapping[str, Any]) -> AccessSpec:
    secret = as_map(entry.get("secretRef"))
    names = [as_text(secret.get(name)) for name in ("namespace", "name", "key")]
    return AccessSpec(
        context=as_text(entry.get("context")),
        kubeconfig=as_text(entry.get("kubeconfig")),
        in_cluster=entry.get("inCluster") is True,
        secret_ref=SecretRef(*names) if secret else None,
        env=as_text(entry.get("env")),
    )


ID_LABEL = "applyset.kubernetes.io/id"
MEMBER_LABEL = "applyset.kubernetes.io/part-of"
TOOLING = "applyset.kubernetes.io/tooling"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
CLUSTER = "kfleet.dev/cluster"
CLUSTER_UID = "kfleet.dev/cluster-uid"
SOURCE = "kfleet.dev/source"
DIGESTS = "addresses.kfleet.dev"
HOME = "kfleet.dev/home"
TOOL = "kfleet"
# A separate field manager, so that the controller's status does not count as a desired object of the fleet.
STATUS_MANAGER = "kfleet-status"
TOOL_VERSION = f"{TOOL}/v1"


@dataclass(frozen=True, slots=True)
class SetName:
    """The name and namespace of the parent of a fleet's ApplySet."""

    fleet: str
    namespace: str

    @property
    def name(self) -> str:
        return f"kfleet-{self.fleet}"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"

    @property
    def status_path(self) -> str:
        """The path of the ConfigMap in which the controller reports."""
        return f"{self.path}-status"

    @property
    def namespace_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def id(self) -> str:
        return _set_id(self.name, self.namespace)

    @property
    def digests(self) -> str:
        """The annotation on the Namespace with the digests of the addresses that kfleet wrote."""
        return f"{DIGESTS}/{self.fleet}"

    def forget(self, cluster: str) -> str:
        """The command that removes one cluster from the manager's inventory."""
        patch = f'[{{"op":"remove","path":"/data/{cluster}"}}]'
        return f"kubectl -n {self.namespace} patch configmap {self.name} --type=json -p '{patch}'"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of the parent: the kinds (`Kind.group`) and namespaces of members, and the cluster's name and uid.

    On the manager, `fleet` holds the uid that each cluster had when the fleet first wrote to it. `addresses` is how its
    workers are reached, and `digests` belong to the addresses that kfleet itself wrote.
    `source` is the source of the last apply. `home` is the cluster that holds the lease and ledger of a fleet without
    a manager.
    """

    kinds: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    cluster: str = ""
    cluster_uid: str = ""
    tool: str = ""
    fleet: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)
    digests: frozenset[str] = frozenset()
    source: SpecSource | None = None
    home: str = ""

    def verified(self, fleet: str) -> Addresses:
        """The addresses that only kfleet can have written."""
        return {
            name: address for name, address in self.addresses.items() if digest_of(fleet, name, address) in self.digests
        }

    def with_members(self, refs: Iterable[Ref]) -> "Inventory":
        """The inventory, widened for these members."""
        members = tuple(refs)
        return replace(
            self,
            kinds=self.kinds | {kind_text(ref) for ref in members},
            namespaces=self.namespaces | {ref.namespace for ref in members if ref.namespace},
        )


def fleet_of(parent: str) -> str:
    """The fleet whose parent has this name; empty if the parent is not one of kfleet."""
    name = parent.removeprefix("kfleet-")
    return "" if name == parent else name


@cache
def _set_id(name: str, namespace: str) -> str:
    """The id of an ApplySet. It is cached because it is needed for every object."""
    identity = f"{name}.{namespace}.ConfigMap."
    digest = urlsafe_b64encode(hashlib.sha256(identity.encode()).digest()).decode().rstrip("=")
    return f"applyset-{digest}-v1"


def kind_text(ref: Ref) -> str:
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind


def kind_key(text: str) -> tuple[str, str]:
    """Group and kind of a text such as `Kind.group`."""
    kind, _, group = text.partition(".")
    return group, kind


def read_parent(parent: Manifest | None) -> Inventory | None:
    if parent is None:
        return None
    annotations = parent["metadata"].get("annotations") or {}
    records = {name: str(text) for name, text in (parent.get("data") or {}).items()}
    addresses = {name: read_address(text) for name, text in records.items()}
    return Inventory(
        kinds=frozenset(filter(None, annotations.get(KINDS, "").split(","))),
        namespaces=frozenset(filter(None, annotations.get(NAMESPACES, "").split(","))),
        cluster=annotations.get(CLUSTER, ""),
        cluster_uid=annotations.get(CLUSTER_UID, ""),
        tool=annotations.get(TOOLING, "").partition("/")[0],
        fleet={name: uid for name, text in records.items() if (uid := read_uid(text))},
        addresses={name: address for name, address in addresses.items() if address},
        source=read_source(annotations.get(SOURCE, "")),
        home=annotations.get(HOME, ""),
    )


def read_digests(namespace: Manifest | None, name: SetName) -> frozenset[str]:
    annotations = ((namespace or {}).get("metadata") or {}).get("annotations") or {}
    return frozenset(filter(None, str(annotations.get(name.digests, "")).split(",")))


def digests_manifest(name: SetName, digests: frozenset[str]) -> Manifest:
    annotations = {name.digests: ",".join(sorted(digests))}
    namespace = bare_namespace(name)
    return {**namespace, "metadata": {**namespace["metadata"], "annotations": annotations}}


def bare_namespace(name: SetName) -> Manifest:
    """The Namespace with nothing in it: applied, it releases the annotation."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.namespace}}


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
                **({SOURCE: inventory.source.record} if inventory.source else {}),
                **({HOME: inventory.home} if inventory.home else {}),
            },
        },
        **({"data": records} if (records := _records(inventory)) else {}),
    }


def _records(inventory: Inventory) -> Mapping[str, str]:
    """One data entry per cluster: annotations would hold only about 1,500, and an entry can be removed by name."""
    names = sorted({*inventory.fleet, *inventory.addresses})
    return {name: record_text(inventory.fleet.get(name, ""), inventory.addresses.get(name)) for name in names}


def is_member(own: str, live: Manifest) -> bool:
    """Whether an object belongs to the fleet. The label is not enough: MultiKueue copies jobs with their labels."""
    return is_labelled(own, live) and has_applied(live, FIELD_MANAGER)


def is_labelled(own: str, live: Manifest) -> bool:
    """Whether an object has the fleet's label. A copy of a member that another client made has it too."""
    return ((live.get("metadata") or {}).get("labels") or {}).get(MEMBER_LABEL) == own
