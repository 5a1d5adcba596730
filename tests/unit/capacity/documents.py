"""Documents of fleets whose capacity is observed."""

import json
from typing import Any

from tests.documents import API, KUEUE, Document

TOLERATION = {"key": "virtual-node.interlink/no-schedule", "operator": "Exists", "effect": "NoSchedule"}


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
    return {
        "apiVersion": "vk.io/v1",
        "kind": "MasterQueue",
        "metadata": {"name": name},
        "spec": {"template": {"cohort": name}, "flavors": [entry]},
    }


def local_queue(name: str, namespace: str, queue: str) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": queue}}


def observed_flavor(name: str, source: str, **more: Any) -> Document:
    capacity = {"source": source, **more.pop("capacity", {})}
    return {"apiVersion": API, "kind": "Flavor", "metadata": {"name": name}, "spec": {"capacity": capacity, **more}}


def share_queue(name: str, flavor: str, **resources: str) -> Document:
    quota = [{"flavor": flavor, "resources": resources}]
    spec = {"quota": quota, "namespaceSelector": {}}
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def announcement(cpu: Any = "8", **more: Any) -> bytes:
    quotas = {"cpu": cpu, "memory": "64Gi", "pods": 50, "nvidia.com/gpu": 0, **more.pop("quotas", {})}
    return json.dumps({"quotas": quotas, **more}).encode()


def offloaded_job(name: str, namespace: str, queue: str, cpu: str = "1") -> Document:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pod = {"restartPolicy": "Never", "containers": [container], "tolerations": [TOLERATION]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }
