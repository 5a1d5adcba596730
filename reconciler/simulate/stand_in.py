"""Stands in for the controllers of jobs and of admission checks, which a twin does not have. Pure.

An evicted workload keeps its quota until its job is suspended, and one with checks waits until all of them are ready.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from reconciler.effects.states import owner_of
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import condition_of, has_condition, read_time
from reconciler.objects import Manifest
from reconciler.simulate.restore import holds, key_of_workload, uid_of
from reconciler.spec.formats import parse_duration

PENDING, READY = "Pending", "Ready"
# After other evictions, from a stopped queue for example, Kueue itself says when a workload may queue again.
_REQUEUED = frozenset({"Preempted", "NodeFailures"})
_MESSAGE = "played by kfleet simulate"
# How long a user expects a job to run, on the job.
EXPECTED = "kfleet.dev/expected-duration"
Jobs = Mapping[tuple[str, str], Manifest]


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


class JobEnd(NamedTuple):
    """A running workload; `left` is the time that it may still run, None if nothing tells it."""

    uid: str
    name: str
    left: timedelta | None


def next_end(workloads: Iterable[Manifest], ends: Mapping[str, JobEnd]) -> JobEnd | None:
    """The workload that ends first: by its remaining time, and those without one last, the oldest first."""
    running = [one for one in workloads if holds(one) and uid_of(one) in ends]
    known = sorted(running, key=lambda one: (_left_key(ends[uid_of(one)]), _since(one), uid_of(one)))
    return ends[uid_of(known[0])] if known else None


def endings(observed: Iterable[Manifest], jobs: Iterable[Manifest], now: datetime) -> Mapping[str, JobEnd]:
    """The remaining time of each workload that was observed, by uid."""
    by_name: Jobs = {key_of_workload(job): job for job in jobs}
    return {uid_of(one): _ending(one, by_name, now) for one in observed}


def _ending(workload: Manifest, jobs: Jobs, now: datetime) -> JobEnd:
    namespace, name = key_of_workload(workload)
    kind, owner = owner_of(workload)
    job = jobs.get((namespace, owner)) if kind == "Job" else None
    started = read_time(condition_of(workload, "Admitted").get("lastTransitionTime"))
    times = (
        _left(at(workload, "spec", "maximumExecutionTimeSeconds"), started, now),
        _left(at(job, "spec", "activeDeadlineSeconds"), read_time(at(job, "status", "startTime")) or started, now),
        _left(_expected(job), started, now),
    )
    known = [time for time in times if time is not None]
    return JobEnd(uid_of(workload), f"{namespace}/{owner or name}", min(known, default=None))


def _left(seconds: object, started: datetime | None, now: datetime) -> timedelta | None:
    if not isinstance(seconds, int | float) or started is None:
        return None
    return max(started + timedelta(seconds=seconds) - now, timedelta())


def _expected(job: Manifest | None) -> float | None:
    text = as_text(at(at(job, "metadata", "annotations"), EXPECTED))
    try:
        return parse_duration(text).total_seconds() if text else None
    except ValueError:
        return None


def _left_key(ending: JobEnd) -> tuple[bool, timedelta]:
    return ending.left is None, ending.left or timedelta()


def _since(workload: Manifest) -> str:
    return as_text(condition_of(workload, "QuotaReserved").get("lastTransitionTime"))
