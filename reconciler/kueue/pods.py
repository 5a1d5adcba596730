"""What a pod asks for, as Kueue and the scheduler count it.

The larger of what runs together and what starts it: sidecars run beside everything that comes after them, and other
init containers run one by one. A limit without a request is a request; pod-level amounts win; overhead comes on top.
Neither Kueue nor the API server writes these rules into the template of a job, so that whoever reads one applies them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_map, at, read_quantity
from reconciler.quantity import ZERO, Quantity

Quantities = Mapping[str, Quantity]
REQUESTS, LIMITS = "requests", "limits"
# What may be asked for a pod as a whole; everything else counts by its containers alone.
_POD_LEVEL = ("cpu", "memory")
_POD_LEVEL_PREFIX = "hugepages-"


def pod_amounts(pod: Mapping[str, Any], kind: str = REQUESTS) -> Quantities:
    """Of the spec of one pod; `kind` is requests or limits."""
    sidecars: Quantities = {}
    starting: Quantities = {}
    for container in as_list(pod.get("initContainers")):
        beside = add_up((sidecars, _asked(at(container, "resources"), kind)))
        if at(container, "restartPolicy") == "Always":
            sidecars = beside
        starting = _largest(starting, beside)
    containers = (_asked(at(container, "resources"), kind) for container in as_list(pod.get("containers")))
    running = add_up((sidecars, *containers))
    whole = {name: amount for name, amount in _asked(pod.get("resources"), kind).items() if _is_pod_level(name)}
    return add_up(({**_largest(running, starting), **whole}, _quantities(pod.get("overhead"))))


def add_up(parts: Iterable[Quantities]) -> Quantities:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _asked(resources: Any, kind: str) -> Quantities:
    limits = _quantities(at(resources, LIMITS))
    return {**limits, **_quantities(at(resources, REQUESTS))} if kind == REQUESTS else limits


def _quantities(amounts: Any) -> Quantities:
    return {name: read_quantity(amount) or ZERO for name, amount in as_map(amounts).items()}


def _largest(left: Quantities, right: Quantities) -> Quantities:
    return {name: max(left.get(name, ZERO), right.get(name, ZERO)) for name in {**left, **right}}


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_POD_LEVEL_PREFIX)
