"""Where a dispatched job runs: the manager's Workload joined with its copies on workers.

A worker that was not observed has an unknown copy, and not none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.model import KindKey
from reconciler.spec.enums import Role
from reconciler.spec.kubestellar import CLUSTER_LABEL
from reconciler.view.live import LiveCluster, address_of, name_of
from reconciler.view.model import JobCopy, JobState
from reconciler.view.states import Standing, is_active, job_end, read_standing

Workers = Mapping[ClusterName, LiveCluster]
JobKey = tuple[KindKey, str]


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
