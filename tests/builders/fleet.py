"""Documents of kfleet. Every name that is outside of a namespace starts with the fleet's own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.kueue.kinds import CANONICAL, GROUP, KIND_BY_NAME
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml

Document = dict[str, Any]
API = "kfleet.dev/v1alpha1"
CLUSTERS = "kfleet.dev/clusters"
# Small fleets lose a large part of themselves with every delete.
ALL_DELETES = {"prune": {"maxDeletes": 10, "maxPercent": 100}}
_CORE = ("ConfigMap", "Namespace", "Secret")


def document(kind: str, name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> Document:
    """Without a spec where that is None."""
    head = {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}}
    return head if spec is None else {**head, "spec": dict(spec)}


def annotated(manifest: Document, annotations: Mapping[str, str]) -> Document:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


def fleet_document(name: str = "test", **spec: Any) -> Document:
    return document("Fleet", name, spec or None)


def cluster_document(name: str, role: str = "worker", labels: Mapping[str, str] | None = None, **spec: Any) -> Document:
    return document("Cluster", name, {"role": role, **spec}, **({"labels": dict(labels)} if labels else {}))


def flavor(name: str, resources: Mapping[str, Any] | None = None, **spec: Any) -> Document:
    """A flavor with a static capacity, unless another `capacity` is given."""
    capacity = {"source": "static", "resources": dict({"cpu": "100"} if resources is None else resources)}
    return document("Flavor", name, {"capacity": capacity, **spec})


def labelled_flavor(name: str, resources: Mapping[str, Any] | None = None, **spec: Any) -> Document:
    """A flavor of the nodes whose class has its name."""
    return flavor(name, resources, **{"nodeLabels": {"class": name}, **spec})


def observed_flavor(name: str, source: str, capacity: Mapping[str, Any] | None = None, **spec: Any) -> Document:
    return flavor(name, capacity={"source": source, **(capacity or {})}, **spec)


def quota(flavor_name: str, resources: Mapping[str, Any], **limits: Any) -> Document:
    """An entry of a queue's quota."""
    return {"flavor": flavor_name, "resources": dict(resources), **limits}


def queue(name: str, *quotas: Document, **spec: Any) -> Document:
    return document("Queue", name, {"quota": list(quotas), **spec})


def open_queue(name: str, flavor_name: str, resources: Mapping[str, Any] | None = None, **spec: Any) -> Document:
    """A queue of one flavor for jobs of every namespace."""
    entry = quota(flavor_name, {"cpu": "9"} if resources is None else resources)
    return queue(name, entry, **{"namespaceSelector": {}, **spec})


def sent_queue(name: str, flavor_name: str, **spec: Any) -> Document:
    """A queue that the manager sends to the workers, by MultiKueue."""
    manager_quota = [quota(flavor_name, {"cpu": "18"})]
    return open_queue(name, flavor_name, dispatch="multikueue", managerQuota=manager_quota, **spec)


def tenant(name: str, queue_name: str, *namespaces: str, **spec: Any) -> Document:
    """A tenant with a namespace of its own name, unless others are given."""
    return document("Tenant", name, {"namespaces": list(namespaces or (name,)), "queue": queue_name, **spec})


def main_tenant(name: str, queue_name: str, *namespaces: str, **spec: Any) -> Document:
    """A tenant whose LocalQueue is `main`, which is where `main_job` goes."""
    return tenant(name, queue_name, *namespaces, **{"localQueue": "main", **spec})


def team_documents(name: str, resources: Mapping[str, Any] | None = None, **spec: Any) -> tuple[Document, ...]:
    """A flavor, an open queue of it and its tenant, all of one name; `spec` is more of the queue."""
    return flavor(name), open_queue(name, name, resources, **spec), main_tenant(name, name)


def master_queue(name: str, connector: str, subject: str, **more: Any) -> Document:
    """A MasterQueue with one entry `nats` and a branch, which lends little."""
    limits = {"cpu": "4", "memory": "1Ti", "pods": 100, "nvidia.com/gpu": 0}
    nats = {
        "natsConnector": connector,
        "natsSubject": subject,
        "virtualNode": "vk",
        "poolTimeout": 65,
        "poolRegExp": "^",
        **more,
    }
    if "pools" in nats:
        del nats["poolRegExp"]
    entry = {"name": "nats", "natsFlavor": nats, "canLendTo": [{"queue": f"{name}-branch", "lendingLimit": limits}]}
    spec = {"template": {"cohort": name}, "flavors": [entry]}
    return {**document("MasterQueue", name, spec), "apiVersion": "vk.io/v1"}


def announcement(cpu: Any = "8", **more: Any) -> bytes:
    """What a pool says of itself on the message bus."""
    quotas = {"cpu": cpu, "memory": "64Gi", "pods": 50, "nvidia.com/gpu": 0, **more.pop("quotas", {})}
    return json.dumps({"quotas": quotas, **more}).encode()


SMALL_FLEET = (
    fleet_document(),
    cluster_document("hub", "manager"),
    cluster_document("east", labels={"site": "a"}),
    cluster_document("west", labels={"site": "b"}),
)


def complete(manifest: Document) -> Document:
    """With the apiVersion of its kind, where it has none."""
    ours = "v1" if manifest["kind"] in _CORE else API
    return {"apiVersion": f"{GROUP}/{CANONICAL}" if manifest["kind"] in KIND_BY_NAME else ours, **manifest}


def loaded(*given: Document | str) -> list[Document]:
    """Documents as they were given; a text may hold several."""
    return [
        one
        for entry in given
        for one in (fast_yaml.safe_load_all(entry) if isinstance(entry, str) else (entry,))
        if one is not None
    ]


def yaml_of(*documents: Document | str) -> str:
    """Documents as YAML; one that is text already stays as it is, and is of kfleet unless it says otherwise."""
    return "\n---\n".join(
        _text(one) if isinstance(one, str) else fast_yaml.safe_dump(one, sort_keys=False) for one in documents
    )


def _text(text: str) -> str:
    return text if "apiVersion" in text else f"apiVersion: {API}\n{text}"


def spec_of(
    *documents: Document | str, base: Sequence[Document] = SMALL_FLEET, path: str = "fleet/all.yaml"
) -> FleetSpec:
    """A fleet of a manager (hub), two workers (east, west) and these documents."""
    return parse_fleet(FleetFiles("test", "", {path: yaml_of(*base, *documents).encode()}))
