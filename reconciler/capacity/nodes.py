"""Nodes to the capacity of flavors: who counts, and for what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.kueue.taints import as_tolerations, is_hard, is_tolerated
from reconciler.objects import Manifest
from reconciler.observed import Amounts
from reconciler.quantity import ZERO, Quantity
from reconciler.spec.model import Flavor


@dataclass(frozen=True, slots=True)
class Node:
    """A node as far as it matters here. `other` is what runs on it outside of Kueue."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Manifest, ...]
    allocatable: Amounts
    is_usable: bool = True
    other: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """The capacity of each flavor, the nodes of each, and the nodes that belong to none."""

    capacities: Mapping[str, Amounts]
    nodes: Mapping[str, int]
    unmatched: tuple[str, ...]


def count(nodes: Iterable[Node], flavors: Iterable[Flavor]) -> Counted:
    """Allocatable of the usable nodes of each flavor; a flavor without a usable node has nothing, which is known."""
    wanted, every = tuple(flavors), tuple(nodes)
    matching = {flavor.name: [node for node in every if _is_of(node, flavor)] for flavor in wanted}
    matched = {node.name for found in matching.values() for node in found}
    usable = {flavor.name: [node for node in matching[flavor.name] if _is_counted(node, flavor)] for flavor in wanted}
    capacities = {
        flavor.name: {
            **{name: ZERO for node in matching[flavor.name] for name in node.allocatable},
            **_sum(usable[flavor.name], is_less_other=flavor.capacity.subtract_other),
        }
        for flavor in wanted
    }
    unmatched = tuple(sorted(node.name for node in every if node.name not in matched))
    return Counted(capacities, {name: len(found) for name, found in usable.items()}, unmatched)


def _is_of(node: Node, flavor: Flavor) -> bool:
    return flavor.node_labels.items() <= node.labels.items()


def _is_counted(node: Node, flavor: Flavor) -> bool:
    tolerations = (*flavor.tolerations, *as_tolerations(flavor.node_taints))
    return node.is_usable and all(is_tolerated(taint, tolerations) for taint in node.taints if is_hard(taint))


def _sum(nodes: Iterable[Node], *, is_less_other: bool) -> Amounts:
    found = dict[str, Quantity]()
    for node in nodes:
        for name, amount in node.allocatable.items():
            free = max(amount - node.other.get(name, ZERO), ZERO) if is_less_other else amount
            found[name] = found.get(name, ZERO) + free
    return found
