"""Which taints a toleration lets a pod bear, as the scheduler decides it."""

from collections.abc import Iterable, Mapping
from typing import Any

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def is_hard(taint: Mapping[str, Any]) -> bool:
    return taint.get("effect") in HARD_EFFECTS


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
