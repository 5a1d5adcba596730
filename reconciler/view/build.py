"""Builds the view from a spec and the live objects of its clusters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import add_up, as_text, at
from reconciler.kueue.workloads import HELD, condition_of, holding_count
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.quantity import Quantity, total
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.enums import Dispatch, Drain
from reconciler.spec.model import FleetSpec, Tenant
from reconciler.spec.places import clusters_of_queues
from reconciler.view.jobs import Lives, job_entries
from reconciler.view.live import LiveCluster, address_of, first_line, live_clusters
from reconciler.view.model import (
    ClusterEntry,
    DrainState,
    FleetGap,
    FleetView,
    JobEntry,
    JobState,
    JoinedQueue,
    JoinedResource,
    PlanFacts,
    PoolEntry,
    QueueEntry,
    TenantEntry,
    ViewGap,
)
from reconciler.view.queues import queue_entries
from reconciler.view.quotas import ClusterQuotas, cohort_entries, read_quotas
from reconciler.why.index import build_stories

UNOBSERVED = "not observed"
NO_FACTS: Mapping[ClusterName, PlanFacts] = {}
KINDS = ("ClusterQueue", "LocalQueue", "AdmissionCheck", "MultiKueueCluster")


def build_view(
    spec: FleetSpec,
    objects: FleetObjects,
    *,
    facts: Mapping[ClusterName, PlanFacts] = NO_FACTS,
    pools: tuple[PoolEntry, ...] | None = None,
    gaps: Iterable[Gap] = (),
) -> FleetView:
    """`facts` are those of a plan, `gaps` those of other observations than the objects."""
    complete = _with_all_clusters(spec, objects)
    lives = live_clusters(complete)
    quotas = {name: read_quotas(live) for name, live in lives.items()}
    queues = tuple(entry for name, live in lives.items() for entry in queue_entries(spec, live, quotas[name], pools))
    jobs = tuple(job_entries(spec, lives, complete.manager, build_stories(complete, spec)))
    return FleetView(
        fleet=spec.fleet.name,
        revision=spec.revision,
        taken_at=complete.taken_at,
        clusters=tuple(cluster_entry(spec, live, facts_of(facts, live), complete.taken_at) for live in lives.values()),
        queues=queues,
        cohorts=tuple(entry for name, live in lives.items() for entry in cohort_entries(live, quotas[name])),
        joined=tuple(joined_queues(spec, lives, queues, jobs)),
        jobs=jobs,
        pools=pools,
        tenants=tuple(tenant_entries(spec, lives, jobs)),
        gaps=tuple(_gaps(lives, quotas, gaps)),
    )


def _with_all_clusters(spec: FleetSpec, objects: FleetObjects) -> FleetObjects:
    """A cluster of the fleet that is missing in the objects was not observed."""
    known = dict(objects.clusters)
    for cluster in spec.clusters:
        if cluster.name not in known:
            gap = Gap(cluster.name, "the cluster", UNOBSERVED)
            known[cluster.name] = ClusterObjects(name=cluster.name, role=cluster.role, is_reachable=False, gaps=(gap,))
    return FleetObjects(taken_at=objects.taken_at, manager=objects.manager, clusters=known)


def _gaps(
    lives: Mapping[ClusterName, LiveCluster], quotas: Mapping[ClusterName, ClusterQuotas], others: Iterable[Gap]
) -> list[FleetGap]:
    seen = [gap for live in lives.values() for gap in live.objects.gaps]
    cycles = [Gap(name, "cohorts", quota.problem) for name, quota in quotas.items() if quota.problem]
    found = (FleetGap(gap.cluster, gap.what, gap.why) for gap in (*seen, *cycles, *others))
    return list(dict.fromkeys(found))


def cluster_entry(spec: FleetSpec, live: LiveCluster, facts: PlanFacts | None, taken_at: datetime) -> ClusterEntry:
    seen = live.objects
    return ClusterEntry(
        name=live.name,
        role=seen.role,
        is_reachable=seen.is_reachable,
        kubernetes=seen.kubernetes,
        kueue=seen.kueue,
        drain=_drain(spec, live),
        is_in_sync=None if facts is None else facts.changes == 0,
        changes=None if facts is None else facts.changes,
        drift=None if facts is None else facts.drift,
        unhealthy=tuple(_unhealthy(live)) if seen.is_reachable else None,
        gaps=tuple(ViewGap(gap.what, gap.why) for gap in seen.gaps),
        taken_at=taken_at,
    )


def _drain(spec: FleetSpec, live: LiveCluster) -> DrainState | None:
    cluster = next((one for one in spec.clusters if one.name == live.name), None)
    if cluster is None or cluster.drain is Drain.NO:
        return DrainState.NO
    if live.queues is None:
        return None
    is_held = any(holding_count(queue) for queue in live.queues.values())
    return DrainState.DRAINING if is_held else DrainState.DRAINED


def _unhealthy(live: LiveCluster) -> Iterator[str]:
    """Objects that Kueue reports as not active, except those that a stopPolicy stops."""
    stopped = {name for name, queue in (live.queues or {}).items() if at(queue, "spec", "stopPolicy") in HELD}
    for kind in KINDS:
        for one in live.objects.of(GROUP, kind):
            active = condition_of(one, "Active")
            if active.get("status") == "False" and not _is_stopped(kind, one, stopped):
                ref = Ref(live.name, GROUP, kind, *address_of(one))
                yield f"{ref}: {active.get('reason')}: {first_line(active.get('message'))}"


def _is_stopped(kind: str, manifest: Manifest, stopped: set[str]) -> bool:
    if at(manifest, "spec", "stopPolicy") in HELD:
        return True
    return kind == "LocalQueue" and as_text(at(manifest, "spec", "clusterQueue")) in stopped


def facts_of(facts: Mapping[ClusterName, PlanFacts], live: LiveCluster) -> PlanFacts | None:
    return facts.get(live.name) if live.objects.is_reachable else None


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
