"""ClusterMetrics that kfleet itself keeps: what it sees of a worker, passed on to whoever reads them on the manager."""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.kueue.pods import LIMITS, REQUESTS, pod_amounts
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.observations.metrics import CLUSTER_LABEL, COLLECTION
from reconciler.observations.nodes import sums_by_node
from reconciler.observed import Amounts
from reconciler.ports import ClusterPort


def publish_metrics(manager: ClusterPort, worker: ClusterPort) -> bool:
    """Bring the report of a worker up to date; False where it says the same already."""
    nodes = metrics_of(worker.list("/api/v1/nodes"), list(worker.list("/api/v1/pods")))
    path = f"{COLLECTION}/{worker.cluster}"
    live = manager.find(path)
    if live is None:
        metadata = {"name": worker.cluster, "labels": {CLUSTER_LABEL: worker.cluster}}
        kind = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics"}
        manager.create({**kind, "metadata": metadata, "spec": {}})
    elif at(live, "status", "nodes") == nodes:
        return False
    manager.patch(f"{path}/status", {"status": {"nodes": nodes}})
    return True


def metrics_of(nodes: Iterable[Mapping[str, Any]], pods: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The nodes in the order of their names, so that the same world always gives the same report."""
    requests = sums_by_node(pods, lambda pod: pod_amounts(as_map(pod.get("spec")), REQUESTS))
    limits = sums_by_node(pods, lambda pod: pod_amounts(as_map(pod.get("spec")), LIMITS))
    found = {as_text(at(node, "metadata", "name")): node for node in nodes}
    return [
        {
            "name": name,
            "labels": dict(as_map(at(found[name], "metadata", "labels"))),
            "taints": [dict(taint) for taint in as_list(at(found[name], "spec", "taints"))],
            "unschedulable": at(found[name], "spec", "unschedulable") is True,
            "allocatableResources": dict(as_map(at(found[name], "status", "allocatable"))),
            "allocatedResourceRequests": _texts(requests.get(name, {})),
            "allocatedResourceLimits": _texts(limits.get(name, {})),
        }
        for name in sorted(found)
    ]


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amounts[name]) for name in sorted(amounts)}
