"""The state of one Workload with its job, on one cluster, and joined with its copies on workers.

A worker that was not observed has an unknown copy, and not none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconciler.kueue.reading import add_up, as_list, as_map, as_text, at, pod_amounts, quantity_at
from reconciler.kueue.workloads import condition_of, has_condition, read_time, usage_of
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import Quantity
from reconciler.snapshot.model import Amounts, KindKey
from reconciler.spec.enums import Role
from reconciler.spec.settings import CLUSTER_LABEL
from reconciler.view.live import LiveCluster, address_of, first_line, name_of
from reconciler.view.model import JobCopy, JobState

FAILURES = {"Failed", "AdmissionChecksRejected", "OutOfSync", "OwnerNotFound"}
ENDS = {
    "Complete": JobState.FINISHED,
    "Completed": JobState.FINISHED,
    "Succeeded": JobState.FINISHED,
    "Failed": JobState.FAILED,
}
READY = "Ready"
Workers = Mapping[ClusterName, LiveCluster]
JobKey = tuple[KindKey, str]


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


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The state of a job over all clusters. `runs_on` is None if it runs on a cluster that is not known."""

    standing: Standing
    runs_on: str | None
    copies: tuple[JobCopy, ...] | None


def multikueue(workers: Workers, workload: Manifest, job: JobKey, standing: Standing) -> Whereabouts:
    """The first worker that admits a copy gets the job; Kueue then notes it as status.clusterName."""
    copies = tuple(_copies(workers, workload, job))
    chosen = as_text(at(workload, "status", "clusterName")) or _admitting(copies)
    if standing.state.is_over:
        return Whereabouts(standing, chosen, copies)
    if not standing.state.is_started:
        may_have_more = standing.state is JobState.RESERVED and _has_unseen(workers, workload)
        return Whereabouts(standing, "", None if may_have_more else copies)
    if not chosen:
        return _without_choice(workers, workload, copies, standing)
    copy = next((one for one in copies if one.cluster == chosen), None)
    if copy is not None:
        state = copy.state if copy.state.is_started or copy.state.is_over else standing.state
        return Whereabouts(replace(standing, state=state), chosen, copies)
    worker = workers.get(ClusterName(chosen))
    if worker is not None and worker.workloads is not None:
        return Whereabouts(replace(standing, reason=f"has no copy on {chosen}"), chosen, copies)
    lost = JobCopy(ClusterName(chosen), name_of(workload), JobState.UNKNOWN)
    return Whereabouts(_unseen(standing, chosen), chosen, (*copies, lost))


def _without_choice(
    workers: Workers, workload: Manifest, copies: tuple[JobCopy, ...], standing: Standing
) -> Whereabouts:
    if not as_list(at(workload, "status", "admissionChecks")):
        why = "admitted without a MultiKueue check, because it requests no resource of the queue: it runs nowhere"
        return Whereabouts(replace(standing, state=JobState.ADMITTED, reason=why), "", copies)
    if _has_unseen(workers, workload):
        return Whereabouts(Standing(JobState.UNKNOWN, None, "a worker was not observed"), None, None)
    return Whereabouts(standing, "", copies)


def _unseen(standing: Standing, cluster: str) -> Standing:
    return Standing(JobState.UNKNOWN, standing.since, f"cluster {cluster} was not observed")


def _copies(workers: Workers, workload: Manifest, job: JobKey) -> Iterator[JobCopy]:
    address, (kind, name) = address_of(workload), job
    for worker in workers.values():
        copy = (worker.workloads or {}).get(address)
        if copy is not None:
            found = worker.jobs.get((kind, (address[0], name)))
            yield JobCopy(worker.name, name_of(copy), read_standing(copy, found).state)


def _admitting(copies: tuple[JobCopy, ...]) -> str:
    """Older releases of Kueue do not note the worker: it is the one that has admitted a copy."""
    return next((one.cluster for one in copies if one.state.is_started or one.state.is_over), "")


def _has_unseen(workers: Workers, workload: Manifest) -> bool:
    nominated = {as_text(name) for name in as_list(at(workload, "status", "nominatedClusterNames"))}
    return any(
        worker.workloads is None and worker.objects.role is Role.WORKER and (not nominated or name in nominated)
        for name, worker in workers.items()
    )


def downsynced(
    workers: Workers, workload: Manifest, kind: KindKey, job: Manifest | None, standing: Standing
) -> Whereabouts:
    """A job of KubeStellar holds a reservation on the manager and is never admitted there: its copy tells its state."""
    placed = as_text(at(job, "metadata", "labels", CLUSTER_LABEL))
    if not placed or standing.state.is_over:
        return Whereabouts(standing, placed, ())
    worker = workers.get(ClusterName(placed))
    if worker is None or not worker.objects.has(*kind):
        copy = JobCopy(ClusterName(placed), "", JobState.UNKNOWN)
        return Whereabouts(_unseen(standing, placed), placed, (copy,))
    found = worker.jobs.get((kind, (address_of(workload)[0], name_of(job or {}))))
    if found is None:
        return Whereabouts(replace(standing, reason=f"has no copy on {placed} yet"), "", ())
    state = job_end(found) or (JobState.RUNNING if is_active(found) else JobState.ADMITTED)
    copy = JobCopy(worker.name, "", state)
    return Whereabouts(replace(standing, state=state, reason=""), placed, (copy,))
