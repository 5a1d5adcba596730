"""Nodes of a cluster, and what runs on them outside of Kueue."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.kueue.pods import add_up, pod_amounts
from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.observed import Amounts
from reconciler.ports import ClusterPort
from reconciler.quantity import Quantity

# What Kueue admitted carries one of these labels; the server leaves such pods out.
OUTSIDE_OF_KUEUE = "!kueue.x-k8s.io/podset,!kueue.x-k8s.io/managed"
ONE = Quantity(10**9)
_ENDED = {"Succeeded", "Failed"}


def look_at_nodes(port: ClusterPort, *, is_less_other: bool) -> tuple[Node, ...]:
    nodes = list(port.list("/api/v1/nodes"))
    other = requests_by_node(port.list("/api/v1/pods", OUTSIDE_OF_KUEUE)) if is_less_other else {}
    return tuple(read_node(node, other) for node in nodes)


def read_node(node: Mapping[str, Any], other: Mapping[str, Amounts]) -> Node:
    name = as_text(at(node, "metadata", "name"))
    conditions = map(as_map, as_list(at(node, "status", "conditions")))
    is_ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return Node(
        name,
        {key: as_text(value) for key, value in as_map(at(node, "metadata", "labels")).items()},
        tuple(map(as_map, as_list(at(node, "spec", "taints")))),
        read_amounts(at(node, "status", "allocatable")),
        is_usable=is_ready and at(node, "spec", "unschedulable") is not True,
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
