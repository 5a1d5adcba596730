"""What the manager remembers of the fleet's workers, so that one that leaves the spec can still be emptied.

How to reach a worker is kept as the spec says it: names of contexts, files, variables and Secrets, never what is in
them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.reading import as_map, as_text
from reconciler.objects import ClusterName
from reconciler.spec.choices import Drain, Role
from reconciler.spec.document import Document
from reconciler.spec.model import Access, Cluster, Kueue, SecretRef


@dataclass(frozen=True, slots=True)
class Address:
    """How a worker was reached, and where its Kueue is."""

    namespace: str
    access: Access


Addresses = Mapping[str, Address]


def addresses_of(clusters: Iterable[Cluster]) -> Addresses:
    return {
        cluster.name: Address(cluster.kueue.namespace, cluster.access)
        for cluster in clusters
        if cluster.role is Role.WORKER
    }


def remembered_cluster(name: str, address: Address, document: Document) -> Cluster:
    kueue = Kueue(namespace=address.namespace)
    return Cluster(ClusterName(name), Role.WORKER, {}, address.access, Drain.NO, False, kueue, document)


def addresses_text(addresses: Addresses) -> str:
    return json.dumps(
        {
            name: {"namespace": address.namespace, **_without_empty(_access_record(address.access))}
            for name, address in sorted(addresses.items())
        },
        separators=(",", ":"),
    )


def read_addresses(text: str) -> Addresses:
    """An entry that somebody broke is as good as none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    entries = {name: as_map(entry) for name, entry in as_map(found).items()}
    return {
        name: Address(as_text(entry["namespace"]), _read_access(entry))
        for name, entry in entries.items()
        if name and as_text(entry.get("namespace"))
    }


def _access_record(access: Access) -> dict[str, Any]:
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


def _read_access(entry: Mapping[str, Any]) -> Access:
    secret = as_map(entry.get("secretRef"))
    names = [as_text(secret.get(name)) for name in ("namespace", "name", "key")]
    return Access(
        context=as_text(entry.get("context")),
        kubeconfig=as_text(entry.get("kubeconfig")),
        in_cluster=entry.get("inCluster") is True,
        secret_ref=SecretRef(*names) if secret else None,
        env=as_text(entry.get("env")),
    )
