"""Sums over clusters: the queues of one name, and the tenants. Each job counts once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.kueue.resources import add_up
from reconciler.objects import ClusterName
from reconciler.quantity import Quantity, total
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import FleetSpec, Tenant
from reconciler.spec.places import clusters_of_queues
from reconciler.view.jobs import Lives
from reconciler.view.model import JobEntry, JobState, JoinedQueue, JoinedResource, QueueEntry, TenantEntry


def joined_queues(
    spec: FleetSpec, lives: Lives, queues: Iterable[QueueEntry], jobs: Iterable[JobEntry]
) -> Iterator[JoinedQueue]:
    by_name: dict[str, list[QueueEntry]] = {}
    for queue in queues:
        by_name.setdefault(queue.name, []).append(queue)
    jobs_of: dict[str, list[JobEntry]] = {}
    for job in jobs:
        jobs_of.setdefault(job.cluster_queue, []).append(job)
    for name, entries in sorted(by_name.items()):
        manager = _dispatcher(spec, entries)
        clusters = tuple(entry.cluster for entry in entries)
        is_complete = _has_all_jobs(lives, (ClusterName(manager),) if manager else clusters)
        found = jobs_of.get(name, ())
        yield JoinedQueue(
            name=name,
            clusters=clusters,
            manager=manager,
            pending=_waiting(found) if is_complete else None,
            running=_started(found) if is_complete else None,
            resources=tuple(_resources(entries, manager)),
        )


def _dispatcher(spec: FleetSpec, entries: Sequence[QueueEntry]) -> str:
    """The cluster that dispatches the jobs of a queue. If it was not observed, the spec tells."""
    live = next((entry.cluster for entry in entries if entry.dispatch is not Dispatch.NONE), None)
    if live is not None or spec.manager is None:
        return live or ""
    declared = next((queue.dispatch for queue in spec.queues if queue.name == entries[0].name), Dispatch.NONE)
    is_unseen = any(entry.cluster == spec.manager.name and entry.resources is None for entry in entries)
    return spec.manager.name if is_unseen and declared is not Dispatch.NONE else ""


def _has_all_jobs(lives: Lives, clusters: Iterable[ClusterName]) -> bool:
    return all(name in lives and lives[name].workloads is not None for name in clusters)


def _waiting(jobs: Iterable[JobEntry]) -> int:
    return sum(job.state.is_waiting for job in jobs)


def _started(jobs: Iterable[JobEntry]) -> int | None:
    states = [job.state for job in jobs]
    return None if JobState.UNKNOWN in states else sum(state.is_started for state in states)


def _resources(entries: Sequence[QueueEntry], manager: str) -> Iterator[JoinedResource]:
    """Sum over the workers of a dispatched queue; KubeStellar's have no queue, there the manager's counts."""
    running = [entry for entry in entries if entry.cluster != manager] or list(entries)
    names = dict.fromkeys(one.resource for entry in entries for one in entry.resources or ())
    for name in names:
        found = [one for entry in running for one in entry.resources or () if one.resource == name]
        is_seen = all(entry.resources is not None for entry in running)
        if found or not is_seen:
            yield JoinedResource(
                name,
                total(one.nominal for one in found) if is_seen else None,
                _sum_known(one.used for one in found) if is_seen else None,
            )


def _sum_known(amounts: Iterable[Quantity | None]) -> Quantity | None:
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return total(known) if len(known) == len(found) else None


def tenant_entries(spec: FleetSpec, lives: Lives, jobs: Iterable[JobEntry]) -> Iterator[TenantEntry]:
    by_tenant: dict[str, list[JobEntry]] = {}
    for job in jobs:
        by_tenant.setdefault(job.tenant, []).append(job)
    for tenant in spec.tenants:
        found = by_tenant.get(tenant.name, [])
        is_complete = _has_all_jobs(lives, _submission_clusters(spec, tenant))
        used: Mapping[str, Quantity] = add_up(job.requested for job in found if job.has_quota)
        yield TenantEntry(
            name=tenant.name,
            namespaces=tenant.namespaces,
            queues=(tenant.queue,),
            pending=_waiting(found) if is_complete else None,
            running=_started(found) if is_complete else None,
            used=used if is_complete else None,
        )


def _submission_clusters(spec: FleetSpec, tenant: Tenant) -> tuple[ClusterName, ...]:
    """The clusters where a tenant submits jobs: the manager of a dispatched queue, or all clusters of the queue."""
    queue = next((one for one in spec.queues if one.name == tenant.queue), None)
    if queue is not None and queue.dispatch is not Dispatch.NONE and spec.manager is not None:
        return (spec.manager.name,)
    return tuple(cluster.name for cluster in clusters_of_queues(spec).get(tenant.queue, ()))
