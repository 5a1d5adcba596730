"""Documents of small fleets. Every name that lies outside of a namespace starts with the fleet's own."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
API = "kfleet.dev/v1alpha1"
KUEUE = "kueue.x-k8s.io/v1beta2"
CLUSTERS = "kfleet.dev/clusters"
# Small fleets lose a large part of themselves with every delete.
GENEROUS = {"prune": {"maxDeletes": 10, "maxPercent": 100}}


def fleet_document(name: str, policy: Mapping[str, Any]) -> Document:
    return {
        "apiVersion": API,
        "kind": "Fleet",
        "metadata": {"name": name},
        "spec": {"policy": {**GENEROUS, **policy}},
    }


def flavor(name: str, *, cpu: str = "100", **more: Any) -> Document:
    capacity = {"source": "static", "resources": {"cpu": cpu}}
    return _document("Flavor", name, {"capacity": capacity, **more})


def queue(name: str, flavor_name: str, *, cpu: str = "9", **more: Any) -> Document:
    quota = [{"flavor": flavor_name, "resources": {"cpu": cpu}}]
    return _document("Queue", name, {"quota": quota, "namespaceSelector": {}, **more})


def sent_queue(name: str, flavor_name: str, **more: Any) -> Document:
    """A queue that the manager sends to the workers, by MultiKueue."""
    quota = [{"flavor": flavor_name, "resources": {"cpu": "18"}}]
    return queue(name, flavor_name, dispatch="multikueue", managerQuota=quota, **more)


def tenant(name: str, queue_name: str, *namespaces: str, **more: Any) -> Document:
    spec = {"namespaces": list(namespaces or (name,)), "queue": queue_name, "localQueue": "main", **more}
    return _document("Tenant", name, spec)


def native(kind: str, name: str, spec: Mapping[str, Any], clusters: str = "") -> Document:
    """An object of Kueue, as it is written in its own API."""
    metadata: Document = {"name": name}
    if clusters:
        metadata["annotations"] = {CLUSTERS: clusters}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def cluster_queue(name: str, flavor_name: str, *, cpu: Any = "9", **more: Any) -> Document:
    """The ClusterQueue that `queue` asks for."""
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": flavor_name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
    }
    return native("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **more})


def job(name: str, namespace: str, *, cpu: str = "1", seconds: int = 3600) -> Document:
    """A Job whose pod runs for some time."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pod = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": f"{seconds}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "main"}},
        "spec": {"suspend": True, "template": pod},
    }


def workload(name: str, namespace: str, *, cpu: str = "1") -> Document:
    """What Kueue makes of a job, without the job."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queueName": "main", "podSets": [pods]},
    }


def _document(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
