"""Stands in for the controllers of jobs and of admission checks, which a twin does not have. Pure.

An evicted workload keeps its quota until its job is suspended, and one with checks waits until all of them are ready.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import condition_of, has_condition
from reconciler.objects import Manifest

PENDING, READY = "Pending", "Ready"
# After other evictions, from a stopped queue for example, Kueue itself says when a workload may queue again.
_REQUEUED = frozenset({"Preempted", "NodeFailures"})
_MESSAGE = "played by kfleet simulate"


class Eviction(NamedTuple):
    """What Kueue said when it took the quota of a workload."""

    reason: str
    message: str


def eviction_of(workload: Manifest) -> Eviction | None:
    """The eviction of a workload that still holds its quota. A preemption says more in a condition of its own."""
    if not (has_condition(workload, "Evicted") and has_condition(workload, "QuotaReserved")):
        return None
    evicted, preempted = condition_of(workload, "Evicted"), condition_of(workload, "Preempted")
    reason, message = as_text(evicted.get("reason")), as_text(evicted.get("message"))
    if reason == "Preempted" and preempted.get("status") == "True":
        return Eviction(f"{reason}: {as_text(preempted.get('reason'))}", message)
    return Eviction(reason, message)


def patch_of(workload: Manifest, now: datetime) -> list[Mapping[str, Any]]:
    """The JSON patch of the status that a controller would cause now; empty if it would do nothing."""
    if eviction_of(workload) is not None:
        return _at_version(workload, _released(workload, now))
    if has_condition(workload, "QuotaReserved") and not has_condition(workload, "Finished"):
        checks = as_list(at(workload, "status", "admissionChecks"))
        if any(as_map(one).get("state") == PENDING for one in checks):
            return _at_version(workload, [_replaced("/status/admissionChecks", _checks(checks, PENDING, READY, now))])
    return []


def finished(now: datetime) -> Mapping[str, str]:
    """The condition of a workload whose job is complete."""
    return _condition("Finished", "True", "Succeeded", _MESSAGE, now)


def _at_version(workload: Manifest, operations: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Replace the version by the observed one, so that the server refuses the patch after any other write."""
    return [_replaced("/metadata/resourceVersion", at(workload, "metadata", "resourceVersion")), *operations]


def _released(workload: Manifest, now: datetime) -> list[Mapping[str, Any]]:
    evicted = condition_of(workload, "Evicted")
    reason, message = as_text(evicted.get("reason")), as_text(evicted.get("message"))
    changed = [
        _condition("QuotaReserved", "False", "Pending", message, now),
        _condition("Admitted", "False", "NoReservation", "The workload has no reservation", now),
        _condition("Requeued", str(reason in _REQUEUED), reason, message, now),
    ]
    names = {one["type"] for one in changed}
    kept = [one for one in as_list(at(workload, "status", "conditions")) if as_map(one).get("type") not in names]
    operations = [_replaced("/status/conditions", [*kept, *changed])]
    if at(workload, "status", "admission") is not None:
        operations.append({"op": "remove", "path": "/status/admission"})
    if checks := as_list(at(workload, "status", "admissionChecks")):
        operations.append(_replaced("/status/admissionChecks", _checks(checks, READY, PENDING, now)))
    return operations


def _checks(checks: Sequence[Any], old: str, new: str, now: datetime) -> list[Mapping[str, Any]]:
    return [
        {**one, "state": new, "message": _MESSAGE, "lastTransitionTime": _time(now)} if one.get("state") == old else one
        for one in map(as_map, checks)
    ]


def _condition(name: str, status: str, reason: str, message: str, now: datetime) -> dict[str, str]:
    return {"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": _time(now)}


def _time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _replaced(path: str, value: Any) -> Mapping[str, Any]:
    return {"op": "replace", "path": path, "value": value}
