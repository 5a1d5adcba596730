"""Nodes to the capacity of flavors, as API servers list them, or as ClusterMetrics of KubeStellar report them.

Decision: what can be read counts as seen now. The object has no time in it, and its agent writes only when something
changes: by the age of the last change an idle cluster would be taken for a lost one, and never get a job again. How
long nothing has changed is kept and shown.
Decision: one without a status is not a report. It was just created, or came back from a backup without its status, and
says nothing of nodes; as a report of no nodes it would take the quota of the cluster.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.reading import (
    LIMITS,
    REQUESTS,
    add_up,
    as_list,
    as_map,
    as_text,
    as_tolerations,
    at,
    is_hard,
    is_tolerated,
    pod_amounts,
    quantity_at,
    taint_text,
)
from reconciler.objects import FIELD_MANAGER, ClusterName, Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.snapshot.model import Amounts
from reconciler.spec.model import Flavor

# What Kueue admitted carries one of these labels; the server leaves such pods out.
OUTSIDE_OF_KUEUE = "!kueue.x-k8s.io/podset,!kueue.x-k8s.io/managed"
ONE = Quantity(10**9)
_ENDED = {"Succeeded", "Failed"}
COLLECTION = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
CLUSTER_LABEL = "kubestellar.io/cluster"
OF_ITS_OWN_CLUSTER = "local"


@dataclass(frozen=True, slots=True)
class Node:
    """A node as far as it matters here. `other` is what runs on it outside of Kueue.

    A node that is not usable is cordoned or not ready.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Manifest, ...]
    allocatable: Amounts
    is_usable: bool = True
    is_cordoned: bool = False
    other: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """The capacity of each flavor, the nodes of each, and the nodes that belong to none.

    `shared` are nodes that also have all labels of other flavors, by the flavor for which they count and these others.
    `empty` are flavors with labels that no node has. `left_out` says why nodes of a flavor do not count, by name.
    """

    capacities: Mapping[str, Amounts]
    nodes: Mapping[str, int]
    unmatched: tuple[str, ...]
    shared: Mapping[tuple[str, str], int] = field(default_factory=dict)
    empty: tuple[Flavor, ...] = ()
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def count(nodes: Iterable[Node], flavors: Iterable[Flavor], others: Iterable[Flavor] = ()) -> Counted:
    """Allocatable of the usable nodes of each flavor; a flavor without a usable node has nothing, which is known.

    No node counts twice: it belongs to the flavor with most labels. So a flavor without labels has the nodes that no
    other flavor matches. `others` are flavors of the cluster whose capacity is not observed here.
    """
    wanted, every = tuple(flavors), tuple(nodes)
    claiming = (*wanted, *(flavor for flavor in others if flavor not in wanted and flavor.node_labels))
    candidates = {node.name: [flavor for flavor in claiming if _is_of(node, flavor)] for node in every}
    owners = {node.name: _owner(node, candidates[node.name]) for node in every}
    matching = {flavor.name: [node for node in every if owners[node.name] is flavor] for flavor in wanted}
    usable = {flavor.name: [node for node in matching[flavor.name] if _is_counted(node, flavor)] for flavor in wanted}
    capacities = {
        flavor.name: {
            **{name: ZERO for node in every if flavor in candidates[node.name] for name in node.allocatable},
            **_sum(usable[flavor.name], is_less_other=flavor.capacity.subtract_other),
        }
        for flavor in wanted
    }
    unmatched = tuple(sorted(name for name, owner in owners.items() if owner is None))
    matched = {flavor.name for found in candidates.values() for flavor in found}
    return Counted(
        capacities=capacities,
        nodes={name: len(found) for name, found in usable.items()},
        unmatched=unmatched,
        shared=_shared(owners, candidates),
        empty=tuple(flavor for flavor in claiming if flavor.node_labels and flavor.name not in matched),
        left_out={flavor.name: _left_out(matching[flavor.name], flavor) for flavor in wanted},
    )


def _is_of(node: Node, flavor: Flavor) -> bool:
    return flavor.node_labels.items() <= node.labels.items()


def _owner(node: Node, candidates: Iterable[Flavor]) -> Flavor | None:
    """The flavor with most labels among those that bear the taints of the node; the first of several."""
    ranked = sorted(candidates, key=lambda flavor: (not _bears(node, flavor), -len(flavor.node_labels)))
    return ranked[0] if ranked else None


def _shared(
    owners: Mapping[str, Flavor | None], candidates: Mapping[str, list[Flavor]]
) -> Mapping[tuple[str, str], int]:
    """A flavor without labels is for the remaining nodes, so that it shares none."""
    found: dict[tuple[str, str], int] = {}
    for name, owner in owners.items():
        for other in candidates[name]:
            if owner is not None and other is not owner and other.node_labels:
                found[owner.name, other.name] = found.get((owner.name, other.name), 0) + 1
    return found


def _bears(node: Node, flavor: Flavor) -> bool:
    tolerations = (*flavor.tolerations, *as_tolerations(flavor.node_taints))
    return all(is_tolerated(taint, tolerations) for taint in node.taints if is_hard(taint))


def _left_out(nodes: Iterable[Node], flavor: Flavor) -> Mapping[str, str]:
    return {node.name: _why_not(node, flavor) for node in nodes if not _is_counted(node, flavor)}


def _why_not(node: Node, flavor: Flavor) -> str:
    if not node.is_usable:
        return "cordoned" if node.is_cordoned else "not ready"
    tolerations = (*flavor.tolerations, *as_tolerations(flavor.node_taints))
    taints = (taint for taint in node.taints if is_hard(taint) and not is_tolerated(taint, tolerations))
    return f"taint {', '.join(map(taint_text, taints))}"


def _is_counted(node: Node, flavor: Flavor) -> bool:
    return node.is_usable and _bears(node, flavor)


def _sum(nodes: Iterable[Node], *, is_less_other: bool) -> Amounts:
    found = dict[str, Quantity]()
    for node in nodes:
        for name, amount in node.allocatable.items():
            free = max(amount - node.other.get(name, ZERO), ZERO) if is_less_other else amount
            found[name] = found.get(name, ZERO) + free
    return found


def look_at_nodes(client: ClusterClient, *, is_less_other: bool) -> tuple[Node, ...]:
    nodes = list(client.list("/api/v1/nodes"))
    other = requests_by_node(client.list("/api/v1/pods", OUTSIDE_OF_KUEUE)) if is_less_other else {}
    return tuple(read_node(node, other) for node in nodes)


def read_node(node: Mapping[str, Any], other: Mapping[str, Amounts]) -> Node:
    name = as_text(at(node, "metadata", "name"))
    conditions = map(as_map, as_list(at(node, "status", "conditions")))
    is_ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    is_cordoned = at(node, "spec", "unschedulable") is True
    return Node(
        name,
        {key: as_text(value) for key, value in as_map(at(node, "metadata", "labels")).items()},
        tuple(map(as_map, as_list(at(node, "spec", "taints")))),
        read_amounts(at(node, "status", "allocatable")),
        is_usable=is_ready and not is_cordoned,
        is_cordoned=is_cordoned,
        other=other.get(name, {}),
    )


def read_amounts(value: Any) -> Amounts:
    return {name: amount for name, text in as_map(value).items() if (amount := quantity_at(text)) is not None}


def requests_by_node(pods: Iterable[Mapping[str, Any]]) -> Mapping[str, Amounts]:
    """What pods ask for on each node, and how many they are."""
    return sums_by_node(pods, lambda pod: {**pod_amounts(as_map(pod.get("spec"))), "pods": ONE})


def sums_by_node(
    pods: Iterable[Mapping[str, Any]], measure: Callable[[Mapping[str, Any]], Amounts]
) -> Mapping[str, Amounts]:
    """A measure of the pods that have not ended, added up by node."""
    found: dict[str, list[Amounts]] = {}
    for pod in pods:
        node = as_text(at(pod, "spec", "nodeName"))
        if node and at(pod, "status", "phase") not in _ENDED:
            found.setdefault(node, []).append(measure(pod))
    return {node: add_up(amounts) for node, amounts in found.items()}


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
        is_of_cluster = label == cluster or at(report, "metadata", "name") in names
        if is_of_cluster and isinstance(report.get("status"), dict):
            if problem := problem_of_report(report):
                raise ClusterError(client.cluster, problem)
            return report
    return None


def problem_of_report(report: Mapping[str, Any]) -> str:
    """Why a report says nothing: an amount that cannot be read must not count as a node that has none of it."""
    wrong = (
        f"ClusterMetrics {at(report, 'metadata', 'name')}: {amount!r} is not a quantity of {name} on {node.get('name')}"
        for node in map(as_map, as_list(at(report, "status", "nodes")))
        for name, amount in as_map(node.get("allocatableResources")).items()
        if not _is_amount(amount)
    )
    return next(wrong, "")


def _is_amount(value: Any) -> bool:
    found = quantity_at(value)
    return found is not None and found >= ZERO


def read_metrics(report: Mapping[str, Any]) -> tuple[Node, ...]:
    return tuple(
        Node(
            as_text(node.get("name")),
            {key: as_text(value) for key, value in as_map(node.get("labels")).items()},
            tuple(map(as_map, as_list(node.get("taints")))),
            read_amounts(node.get("allocatableResources")),
            is_usable=node.get("unschedulable") is not True,
            is_cordoned=node.get("unschedulable") is True,
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
    elif others := other_writers(live):
        problem = f"ClusterMetrics {worker.cluster} is written by {', '.join(others)} too: kfleet does not overwrite it"
        raise ClusterError(manager.cluster, f"{problem} (stop the other writer, or remove publishMetrics)")
    manager.patch(f"{path}/status?fieldManager={FIELD_MANAGER}", {"status": {"nodes": nodes}})
    return True


def other_writers(live: Mapping[str, Any]) -> list[str]:
    """The field managers beside kfleet that own the nodes of a ClusterMetrics, such as the agent of KubeStellar."""
    return sorted(
        as_text(entry.get("manager"))
        for entry in map(as_map, as_list(at(live, "metadata", "managedFields")))
        if entry.get("manager") != FIELD_MANAGER and at(entry, "fieldsV1", "f:status", "f:nodes") is not None
    )


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
