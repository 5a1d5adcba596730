"""The record of the fleet's workers on the manager, by which kfleet can still prune a worker removed from the spec.

The access of a worker is stored as the spec has it: names of contexts, files, variables and Secrets, never their
content.

Decision: the record is in a ConfigMap, which every account that may write ConfigMaps in Kueue's namespace can change.
So kfleet stores a digest of each address on the Namespace itself, which these accounts cannot write. kfleet does not
use an address without its digest.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.reading import as_map, as_text
from reconciler.objects import ClusterName
from reconciler.spec.enums import Drain, Role
from reconciler.spec.files import Document
from reconciler.spec.model import AccessSpec, Cluster, Kueue, SecretRef

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
        return as_map(json.loads(text or "{}"))
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
