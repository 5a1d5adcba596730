"""The state of one Workload with its job, on one cluster."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.kueue.resources import add_up, pod_amounts
from reconciler.kueue.workloads import condition_of, has_condition, read_time, usage_of
from reconciler.objects import Manifest
from reconciler.quantity import Quantity
from reconciler.snapshot.model import Amounts
from reconciler.view.live import first_line
from reconciler.view.model import JobState

FAILURES = {"Failed", "AdmissionChecksRejected", "OutOfSync", "OwnerNotFound"}
ENDS = {
    "Complete": JobState.FINISHED,
    "Completed": JobState.FINISHED,
    "Succeeded": JobState.FINISHED,
    "Failed": JobState.FAILED,
}
READY = "Ready"


@dataclass(frozen=True, slots=True)
class Standing:
    """A state, since when, and why, in one line."""

    state: JobState
    since: datetime | None = None
    reason: str = ""


def read_standing(workload: Manifest, job: Manifest | None) -> Standing:
    finished, evicted = condition_of(workload, "Finished"), condition_of(workload, "Evicted")
    if finished.get("status") == "True":
        return _standing(_end(finished, job), finished)
    if at(workload, "spec", "active") is False:
        return _standing(JobState.INACTIVE, evicted, "deactivated: spec.active of the Workload is false")
    if has_condition(workload, "Admitted"):
        is_running = has_condition(workload, "PodsReady") or is_active(job)
        state = JobState.RUNNING if is_running else JobState.ADMITTED
        return Standing(state, _time(condition_of(workload, "Admitted")))
    if has_condition(workload, "QuotaReserved"):
        since = _time(condition_of(workload, "QuotaReserved"))
        return Standing(JobState.RESERVED, since, open_check(workload))
    if evicted.get("status") == "True":
        return _standing(JobState.EVICTED, evicted)
    why = first_line(condition_of(workload, "QuotaReserved").get("message"))
    return Standing(JobState.PENDING, created_at(workload), why)


def created_at(workload: Manifest) -> datetime | None:
    return read_time(at(workload, "metadata", "creationTimestamp"))


def open_check(workload: Manifest) -> str:
    """The first admission check that is not ready, with its message."""
    for check in map(as_map, as_list(at(workload, "status", "admissionChecks"))):
        if check.get("state") != READY:
            message = first_line(check.get("message")) or f"is {as_text(check.get('state')) or 'open'}"
            return f"{as_text(check.get('name'))}: {message}"
    return ""


def _standing(state: JobState, condition: Mapping[str, object], otherwise: str = "") -> Standing:
    return Standing(state, _time(condition), first_line(condition.get("message")) or otherwise)


def _time(condition: Mapping[str, object]) -> datetime | None:
    return read_time(condition.get("lastTransitionTime"))


def _end(finished: Mapping[str, object], job: Manifest | None) -> JobState:
    is_failed = finished.get("reason") in FAILURES or job_end(job) is JobState.FAILED
    return JobState.FAILED if is_failed else JobState.FINISHED


def job_end(job: Manifest | None) -> JobState | None:
    """How a job has ended, by its own status; None if it has not, or does not say."""
    return next((state for name, state in ENDS.items() if has_condition(job or {}, name)), None)


def is_active(job: Manifest | None) -> bool:
    """Whether pods of a job exist, by the counts and conditions that the known kinds of jobs report."""
    status = as_map(at(job, "status"))
    parts = (status, *map(as_map, as_list(status.get("replicatedJobsStatus"))))
    has_pods = any(_count(part.get(name)) for part in parts for name in ("active", "ready", "readyReplicas"))
    words = {status.get("jobDeploymentStatus"), status.get("phase"), status.get("state")}
    return has_pods or bool(words & {"Running", "ready"}) or has_condition(job or {}, "Running")


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def requested(workload: Manifest) -> Amounts:
    """The sum over the pods: what Kueue counts, if it has counted them, or else what their templates ask for."""
    if held := usage_of(workload):
        return add_up(held.values())
    counted = as_list(at(workload, "status", "resourceRequests"))
    if counted:
        return add_up(_quantities(at(one, "resources")) for one in counted)
    return add_up(_pod_sets(workload))


def _pod_sets(workload: Manifest) -> Iterator[Amounts]:
    for pods in map(as_map, as_list(at(workload, "spec", "podSets"))):
        count = pods.get("count")
        times = count if isinstance(count, int) else 1
        one = pod_amounts(as_map(at(pods, "template", "spec")))
        yield {name: Quantity(amount.nanos * times, amount.notation) for name, amount in one.items()}


def _quantities(amounts: Any) -> Amounts:
    return {name: found for name, text in as_map(amounts).items() if (found := quantity_at(text)) is not None}


def assigned_flavors(workload: Manifest) -> Mapping[str, str]:
    """The flavor of each resource; pod sets with different flavors are joined by a comma."""
    found: dict[str, dict[str, None]] = {}
    for assignment in as_list(at(workload, "status", "admission", "podSetAssignments")):
        for resource, flavor in as_map(at(assignment, "flavors")).items():
            found.setdefault(resource, {})[as_text(flavor)] = None
    return {resource: ",".join(flavors) for resource, flavors in found.items()}
