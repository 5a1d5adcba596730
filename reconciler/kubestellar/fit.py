"""Which nodes a pod may use, as the scheduler decides it: labels, required affinity, taints, readiness."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.kubestellar.model import JobPodSet
from reconciler.kueue.reading import as_list, as_map, as_text, is_hard, is_tolerated
from reconciler.objects import Manifest
from reconciler.quantity import NANO, ZERO
from reconciler.snapshot.model import Amounts

_NAME_FIELD = "metadata.name"
PODS = "pods"
Free = dict[str, int]
# Nodes by their number, in their order; and of which of them how much of what there is.
Places = Mapping[int, None]
Sum = tuple[str, str]


def has_labels(node: Node, pods: JobPodSet) -> bool:
    is_labelled = pods.labels.items() <= node.labels.items()
    return is_labelled and (not pods.terms or any(_matches_term(node, term) for term in pods.terms))


def is_open(node: Node, pods: JobPodSet) -> bool:
    return node.is_usable and all(is_tolerated(taint, pods.tolerations) for taint in node.taints if is_hard(taint))


def _matches_term(node: Node, term: Manifest) -> bool:
    expressions = [as_map(one) for one in as_list(term.get("matchExpressions"))]
    fields = [as_map(one) for one in as_list(term.get("matchFields"))]
    if not expressions and not fields:
        return False
    own = {_NAME_FIELD: node.name}
    return all(_matches(node.labels, one) for one in expressions) and all(_matches(own, one) for one in fields)


def _matches(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    key, values = as_text(expression.get("key")), [as_text(value) for value in as_list(expression.get("values"))]
    test = _OPERATORS.get(as_text(expression.get("operator")))
    return test is not None and test(labels.get(key), values)


def _is_number_beyond(value: str | None, values: list[str], sign: int) -> bool:
    try:
        return value is not None and len(values) == 1 and sign * int(value) > sign * int(values[0])
    except ValueError:
        return False


_OPERATORS: Mapping[str, Callable[[str | None, list[str]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _is_number_beyond(value, values, 1),
    "Lt": lambda value, values: _is_number_beyond(value, values, -1),
}


@dataclass(frozen=True, slots=True)
class NodeFit:
    """What a job would take of each node."""

    taken: Mapping[int, Free]


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a job does not fit, in words, and how much of it would: a job runs whole or not at all."""

    why: str
    taken: Mapping[int, Free]


@dataclass(slots=True)
class Room:
    """A cluster while jobs are placed: `free` is what is left of each node, and changes with every job.

    What was found out about a job holds for all that are like it: the nodes that it may use, what these have and have
    left in sum, and that it does not fit for good, because nothing is ever given back.
    """

    nodes: tuple[Node, ...]
    free: list[Free]
    matching: dict[str, Places] = field(default_factory=dict)
    whole: dict[Sum, int] = field(default_factory=dict)
    left: dict[Sum, int] = field(default_factory=dict)
    misfits: dict[str, Misfit] = field(default_factory=dict)

    def take(self, taken: Mapping[int, Free]) -> None:
        for index, amounts in taken.items():
            node = self.free[index]
            for name, amount in amounts.items():
                if name in node:
                    before = max(node[name], 0)
                    node[name] -= amount
                    self._note(index, name, before - max(node[name], 0))

    def _note(self, index: int, name: str, lost: int) -> None:
        """Keep the sums right: adding up all nodes for each job would take most of the time."""
        for where, what in self.left:
            if what == name and index in self.matching[where]:
                self.left[where, what] -= lost


def room_of(
    nodes: Iterable[Node], running: Iterable[tuple[JobPodSet, ...]], waiting: Iterable[tuple[JobPodSet, ...]]
) -> Room:
    """What is left beside the jobs that were placed before.

    The usage that nodes report contains running jobs; if it is missing, the requests of those jobs count: the larger of
    both is used. Jobs that have not started are added.
    """
    every = tuple(sorted(nodes, key=lambda node: node.name))
    room = Room(every, [_nanos(node.allocatable) for node in every])
    for pod_sets in running:
        room.take(_taken(find_fit(room, pod_sets)))
    for node, free in zip(every, room.free, strict=True):
        for name, amount in node.other.items():
            if name in free:
                free[name] = min(free[name], node.allocatable.get(name, ZERO).nanos - amount.nanos)
    for pod_sets in waiting:
        room.take(_taken(find_fit(room, pod_sets)))
    return room


def shape_of(pod_sets: tuple[JobPodSet, ...]) -> str:
    """The same text for jobs that are alike."""
    return json.dumps(
        [
            [pods.count, sorted((name, amount.nanos) for name, amount in pods.requests.items()), _where(pods)]
            for pods in pod_sets
        ]
    )


def find_fit(room: Room, pod_sets: tuple[JobPodSet, ...], shape: str = "") -> NodeFit | Misfit:
    """First fit, the largest pods first; the nodes in the order of their names."""
    shape = shape or shape_of(pod_sets)
    if shape in room.misfits:
        return room.misfits[shape]
    answer = _try(room, pod_sets)
    if isinstance(answer, Misfit):
        room.misfits[shape] = answer
    return answer


def _try(room: Room, pod_sets: tuple[JobPodSet, ...]) -> NodeFit | Misfit:
    taken: dict[int, Free] = {}
    for pods in sorted(pod_sets, key=lambda one: (-_size(room, one), one.name)):
        places = _places(room, pods)
        if not places:
            return Misfit(_why_no_node(room, pods), taken)
        placed = _pack(room, pods, places, taken)
        if placed < pods.count:
            return Misfit(_why_too_few(room, pods), taken)
    return NodeFit(taken)


def free_share(room: Room, pod_sets: tuple[JobPodSet, ...]) -> Fraction:
    """The free part of the scarcest thing that a job asks for, on the nodes that it could use."""
    return min((_share(room, pods, name) for pods in pod_sets for name in pods.requests), default=Fraction(1))


def _share(room: Room, pods: JobPodSet, name: str) -> Fraction:
    key = _where(pods), name
    if key not in room.left:
        places = _places(room, pods)
        room.whole[key] = sum(room.nodes[index].allocatable.get(name, ZERO).nanos for index in places)
        room.left[key] = sum(max(room.free[index].get(name, 0), 0) for index in places)
    return Fraction(room.left[key], room.whole[key]) if room.whole[key] else Fraction(0)


def request_text(pods: JobPodSet) -> str:
    """`4 x (cpu 2, nvidia.com/gpu 8) on a100`."""
    wanted = ", ".join(f"{name} {amount}" for name, amount in sorted(pods.requests.items()))
    on = f" on {', '.join(pods.flavors)}" if pods.flavors else ""
    return f"{pods.count} x ({wanted or 'nothing'}){on}"


def _pack(room: Room, pods: JobPodSet, places: Iterable[int], taken: dict[int, Free]) -> int:
    """Put pods on nodes until all have one; how many have."""
    wanted = {**{name: amount.nanos for name, amount in pods.requests.items() if amount > ZERO}, PODS: NANO}
    placed = 0
    for index in places:
        count = _how_many(room.free[index], taken.get(index, {}), wanted, pods.count - placed)
        if count:
            node = taken.setdefault(index, {})
            for name, amount in wanted.items():
                node[name] = node.get(name, 0) + count * amount
            placed += count
            if placed == pods.count:
                break
    return placed


def _how_many(free: Free, taken: Free, wanted: Free, most: int) -> int:
    for name, amount in wanted.items():
        # Not every node says how many pods it takes; of everything else, not to name it is to have none.
        if name == PODS and name not in free:
            continue
        left = free.get(name, 0) - taken.get(name, 0)
        if left < amount:
            return 0
        most = min(most, left // amount)
    return most


def _places(room: Room, pods: JobPodSet) -> Places:
    key = _where(pods)
    found = room.matching.get(key)
    if found is None:
        fitting = (index for index, node in enumerate(room.nodes) if has_labels(node, pods) and is_open(node, pods))
        found = dict.fromkeys(fitting)
        room.matching[key] = found
    return found


def _where(pods: JobPodSet) -> str:
    return json.dumps([sorted(pods.labels.items()), list(map(dict, pods.tolerations)), list(map(dict, pods.terms))])


def _size(room: Room, pods: JobPodSet) -> Fraction:
    """The largest part of any one node that a pod takes."""
    parts = [Fraction(0)]
    for name, amount in pods.requests.items():
        largest = max((node.allocatable.get(name, ZERO).nanos for node in room.nodes), default=0)
        parts.append(Fraction(amount.nanos, largest) if largest else Fraction(1))
    return max(parts)


def _why_no_node(room: Room, pods: JobPodSet) -> str:
    labelled = [node for node in room.nodes if has_labels(node, pods)]
    if not room.nodes:
        return "has no nodes"
    if not labelled:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(pods.labels.items()))
        return f"no node with {wanted or 'what its affinity asks for'}"
    shut = sum(not node.is_usable for node in labelled)
    return f"none of {len(labelled)} nodes takes its pods: {shut} not ready or cordoned, {len(labelled) - shut} tainted"


def _why_too_few(room: Room, pods: JobPodSet) -> str:
    """Without numbers that change with every pod: the text is written down, and has to stand for a while."""
    places = _places(room, pods)
    for name, amount in sorted(pods.requests.items()):
        largest = max(room.nodes[index].allocatable.get(name, ZERO) for index in places)
        if largest < amount:
            return f"no node is large enough, {name} {largest} at most"
    for name, amount in sorted(pods.requests.items()):
        if all(room.free[index].get(name, 0) < amount.nanos for index in places):
            return f"no node has {name} {amount} free now"
    return f"not all {pods.count} pods find room now"


def _taken(answer: NodeFit | Misfit) -> Mapping[int, Free]:
    return answer.taken


def _nanos(amounts: Amounts) -> Free:
    return {name: amount.nanos for name, amount in amounts.items()}
