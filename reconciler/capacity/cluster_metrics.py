"""ClusterMetrics of KubeStellar: the nodes of a cluster as its agent reports them, on whichever cluster they lie.

Decision: what can be read counts as seen now. The object has no time in it, and its agent writes only when something
changes: by the age of the last change an idle cluster would be taken for a lost one, and never get a job again. How
long nothing has changed is kept and shown.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.capacity.nodes import Node, read_amounts, sums_by_node
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.resources import LIMITS, REQUESTS, pod_amounts
from reconciler.objects import ClusterName
from reconciler.snapshot.model import Amounts

COLLECTION = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
CLUSTER_LABEL = "kubestellar.io/cluster"
OF_ITS_OWN_CLUSTER = "local"


def find_metrics(
    cluster: ClusterName, clients: Mapping[ClusterName, ClusterClient], manager: ClusterName | None
) -> tuple[Node, ...] | None:
    """The nodes of a cluster, as the manager knows them, else the cluster itself, else any other one.

    None without any report.
    """
    report = find_report(cluster, clients, manager)
    return None if report is None else read_metrics(report)


def find_report(
    cluster: ClusterName, clients: Mapping[ClusterName, ClusterClient], manager: ClusterName | None
) -> Mapping[str, Any] | None:
    """The first report of a cluster. One that does not answer is skipped if another cluster has the report."""
    problem: ClusterError | None = None
    for place in (name for name in dict.fromkeys((manager, cluster, *clients)) if name in clients):
        if place is None:
            continue
        try:
            found = _report_on(clients[place], cluster)
        except ClusterError as error:
            if place in {manager, cluster}:
                raise
            problem = problem or error
        else:
            if found is not None:
                return found
    if problem is not None:
        raise problem
    return None


def _report_on(client: ClusterClient, cluster: ClusterName) -> Mapping[str, Any] | None:
    names = {cluster, OF_ITS_OWN_CLUSTER} if client.cluster == cluster else {cluster}
    for report in _reports(client):
        label = at(report, "metadata", "labels", CLUSTER_LABEL)
        if label == cluster or at(report, "metadata", "name") in names:
            return report
    return None


def read_metrics(report: Mapping[str, Any]) -> tuple[Node, ...]:
    return tuple(
        Node(
            as_text(node.get("name")),
            {key: as_text(value) for key, value in as_map(node.get("labels")).items()},
            tuple(map(as_map, as_list(node.get("taints")))),
            read_amounts(node.get("allocatableResources")),
            is_usable=node.get("unschedulable") is not True,
        )
        for node in map(as_map, as_list(at(report, "status", "nodes")))
    )


def _reports(client: ClusterClient) -> Iterable[Mapping[str, Any]]:
    try:
        return list(client.list(COLLECTION))
    except ClusterError as error:
        if error.status == 404:
            return ()
        raise


def publish_metrics(manager: ClusterClient, worker: ClusterClient) -> bool:
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
