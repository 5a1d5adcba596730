"""Reads manifests that users wrote: nothing here fails on a value of the wrong type, it reads as empty.

The structure check reports wrong types; every other rule can then report its own problems without checking types.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reconciler.kueue.kinds import GROUP
from reconciler.quantity import ZERO, Notation, Quantity, parse, unit_of

# isinstance finds a plain dict at once in a tuple of types; checking for a Mapping alone takes several times as long.
MAPS = (dict, Mapping)
LISTS = (list, tuple)
NUMBERS = (int, float)
# The CRDs accept only these texts; the parser of quantities accepts a little more.
_QUANTITY = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?", re.ASCII
)
UNLIMITED = 2**63 - 1
LOWEST = -(2**63)
Quantities = Mapping[str, Quantity]
REQUESTS, LIMITS = "requests", "limits"
# Resources that a pod can request as a whole; all others count per container.
_POD_LEVEL = ("cpu", "memory")
_POD_LEVEL_PREFIX = "hugepages-"
_SIZES = ("memory", "ephemeral-storage")
HARD_EFFECTS = ("NoSchedule", "NoExecute")
QUEUE_LABEL = f"{GROUP}/queue-name"
PRIORITY_LABEL = f"{GROUP}/priority-class"
# The label on copies of workloads that a manager dispatched.
ORIGIN = f"{GROUP}/multikueue-origin"
# Labels of these domains have a meaning for controllers, which may delete an object with one, or treat it as their own.
# The location of a pool may be set by the pool.
PLACE_DOMAIN = "topology.kubernetes.io"
RESERVED_DOMAINS = ("kubernetes.io", "k8s.io", "kfleet.dev", "fluxcd.io", "argoproj.io", "helm.sh", "x-k8s.io")


def as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, MAPS) else {}


def as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, LISTS) else ()


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def at(value: Any, *path: str) -> Any:
    """Return the nested value, or None if the path ends early."""
    for step in path:
        value = value.get(step) if isinstance(value, MAPS) else None
    return value


def indexed(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the items of a list, each with its path."""
    return ((f"{path}[{number}]", item) for number, item in enumerate(as_list(value)))


def quantity_at(value: Any) -> Quantity | None:
    """Return a quantity as the API server accepts it everywhere: a string or a whole number."""
    if isinstance(value, str):
        return _written(value)
    if isinstance(value, float) and not value.is_integer():
        return None
    return read_quantity(value)


def read_quantity(value: Any) -> Quantity | None:
    """Return a quantity as Kueue's own decoder accepts it, including fractions and surrounding space."""
    if isinstance(value, str):
        return _parsed(value)
    return _parsed(str(value)) if isinstance(value, NUMBERS) and not isinstance(value, bool) else None


# A fleet repeats few texts many times, and parsing one is the most expensive step of every check.
@lru_cache(maxsize=4096)
def _written(text: str) -> Quantity | None:
    return _parsed(text) if _QUANTITY.fullmatch(text) else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity | None:
    try:
        return parse(text)
    except ValueError:
        return None


def amount_of(resource_name: str, value: Any) -> int:
    """Return a quantity in Kueue's units (milli for cpu), rounded up; an invalid one counts as zero."""
    quantity = quantity_at(value)
    if quantity is None:
        return 0
    return min(-(-quantity.nanos // unit_of(resource_name).nanos), UNLIMITED)


def quantity_of(resource_name: str, amount: int) -> Quantity:
    """Return an amount in Kueue's units as a quantity, in the notation in which Kueue reports this resource."""
    is_size = resource_name in _SIZES or resource_name.startswith(_POD_LEVEL_PREFIX)
    return Quantity(amount * unit_of(resource_name).nanos, Notation.BINARY if is_size else Notation.DECIMAL)


def add(left: int, right: int) -> int:
    if UNLIMITED in {left, right}:
        return UNLIMITED
    return max(LOWEST, min(left + right, UNLIMITED))


def subtract(left: int, right: int) -> int:
    """Subtract: unlimited minus a number stays unlimited; a number minus unlimited leaves nothing."""
    if left == UNLIMITED:
        return 0 if right == UNLIMITED else UNLIMITED
    if right == UNLIMITED:
        return LOWEST
    return max(LOWEST, min(left - right, UNLIMITED))


def pod_amounts(pod: Mapping[str, Any], kind: str = REQUESTS) -> Quantities:
    """Return the sum over the spec of one pod; `kind` is requests or limits."""
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


def is_hard(taint: Mapping[str, Any]) -> bool:
    return taint.get("effect") in HARD_EFFECTS


def taint_text(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def is_tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def as_tolerations(taints: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """A flavor with a taint of its own is for jobs that tolerate it, wherever they come from."""
    return tuple({**taint, "operator": "Equal"} for taint in taints)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    is_same_value = (toleration.get("value") or "") == (taint.get("value") or "")
    return toleration.get("key") == taint.get("key") and is_same_value


def is_reserved(key: str) -> bool:
    """Whether a label has a domain that no pool may use."""
    domain = key.rpartition("/")[0]
    return domain != PLACE_DOMAIN and any(
        domain == reserved or domain.endswith(f".{reserved}") for reserved in RESERVED_DOMAINS
    )
