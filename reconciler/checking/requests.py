"""What a pod asks for, as Kueue counts it.

The larger of what runs together and what starts it: sidecars run beside everything that comes after them, and other
init containers run one by one. A limit without a request is a request; pod-level requests win; overhead comes on top.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_map, at, read_quantity
from reconciler.quantity import ZERO, Quantity, unit_of

Quantities = Mapping[str, Quantity]
# What may be asked for a pod as a whole; everything else counts by its containers alone.
POD_LEVEL = ("cpu", "memory")
POD_LEVEL_PREFIX = "hugepages-"


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """The requests of one pod in Kueue's units: milli for cpu, whole ones for everything else."""
    running = _sum(_asked(at(container, "resources")) for container in as_list(pod.get("containers")))
    starting: Quantities = {}
    sidecars: Quantities = {}
    for container in as_list(pod.get("initContainers")):
        asked = _asked(at(container, "resources"))
        if at(container, "restartPolicy") == "Always":
            running, sidecars = _sum((running, asked)), _sum((sidecars, asked))
            asked = sidecars
        else:
            asked = _sum((asked, sidecars))
        starting = _largest(starting, asked)
    whole = {name: amount for name, amount in _asked(pod.get("resources")).items() if _is_pod_level(name)}
    total = _sum(({**_largest(running, starting), **whole}, _quantities(pod.get("overhead"))))
    return {name: -(-amount.nanos // unit_of(name).nanos) for name, amount in total.items()}


def _asked(resources: Any) -> Quantities:
    return {**_quantities(at(resources, "limits")), **_quantities(at(resources, "requests"))}


def _quantities(amounts: Any) -> Quantities:
    return {name: read_quantity(amount) or ZERO for name, amount in as_map(amounts).items()}


def _sum(parts: Iterable[Quantities]) -> Quantities:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _largest(left: Quantities, right: Quantities) -> Quantities:
    return {name: max(left.get(name, ZERO), right.get(name, ZERO)) for name in {**left, **right}}


def _is_pod_level(name: str) -> bool:
    return name in POD_LEVEL or name.startswith(POD_LEVEL_PREFIX)
