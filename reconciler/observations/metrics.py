"""ClusterMetrics of KubeStellar: the nodes of a cluster as its agent reports them, on whichever cluster they lie.

Decision: what can be read counts as seen now. The object has no time in it, and its agent writes only when something
changes: by the age of the last change an idle cluster would be taken for a lost one, and never get a job again. How
long nothing has changed is kept and shown.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName
from reconciler.observations.nodes import read_amounts
from reconciler.ports import ClusterPort

COLLECTION = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
CLUSTER_LABEL = "kubestellar.io/cluster"
OF_ITS_OWN_CLUSTER = "local"


def find_metrics(
    cluster: ClusterName, ports: Mapping[ClusterName, ClusterPort], manager: ClusterName | None
) -> tuple[Node, ...] | None:
    """The nodes of a cluster, as the manager knows them, else the cluster itself, else any other one.

    None without any report.
    """
    report = find_report(cluster, ports, manager)
    return None if report is None else read_metrics(report)


def find_report(
    cluster: ClusterName, ports: Mapping[ClusterName, ClusterPort], manager: ClusterName | None
) -> Mapping[str, Any] | None:
    """The first report of a cluster. Another cluster that does not answer keeps nobody from finding it elsewhere."""
    problem: ClusterError | None = None
    for place in (name for name in dict.fromkeys((manager, cluster, *ports)) if name in ports):
        if place is None:
            continue
        try:
            found = _report_on(ports[place], cluster)
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


def _report_on(port: ClusterPort, cluster: ClusterName) -> Mapping[str, Any] | None:
    names = {cluster, OF_ITS_OWN_CLUSTER} if port.cluster == cluster else {cluster}
    for report in _reports(port):
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


def _reports(port: ClusterPort) -> Iterable[Mapping[str, Any]]:
    try:
        return list(port.list(COLLECTION))
    except ClusterError as error:
        if error.status == 404:
            return ()
        raise
