"""One look at the jobs that KubeStellar carries: what waits on the manager, what runs where, where there is room."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from reconciler.capacity.nodes import Node, find_report, read_amounts, read_metrics, read_node, requests_by_node
from reconciler.clients.protocols import ClusterClient, list_kueue
from reconciler.errors import ClusterError
from reconciler.kubestellar.copies import (
    Workers,
    find_closing,
    find_emptying,
    find_occupied,
    has_policies,
    list_copies,
    queues_to_close,
)
from reconciler.kubestellar.jobs import current_copy, owner_of, read_combined, read_end_of_copy, read_job, read_progress
from reconciler.kubestellar.model import (
    Asked,
    ClusterNodes,
    End,
    Former,
    Listed,
    ObservedPlacements,
    Progress,
    QueuedJob,
    find_former,
    read_before,
    read_placed,
)
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import QUEUE_LABEL, as_list, as_map, as_text, at
from reconciler.kueue.workloads import flavors_of
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.snapshot.model import Downsynced
from reconciler.spec.enums import CapacitySource, Drain
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_by, downsynced_queues, placement_check, workers_of
from reconciler.spec.settings import API_GROUP, CLUSTER_LABEL, JOB, DownsyncKind

COMBINED = f"/apis/{API_GROUP}/v1alpha1/combinedstatuses"
OWN_WORKLOADS = f"!{GROUP}/multikueue-origin"
# Without permission to read jobs kfleet most likely never placed one: not a gap, but policies of the fleet stay.
_PARALLEL = 16

Ports = Mapping[ClusterName, ClusterClient]
Copies = Mapping[Ref, Progress]


def observe_placements(
    spec: FleetSpec,
    clients: Ports,
    removed: tuple[Cluster, ...] = (),
    lost: Mapping[ClusterName, str] | None = None,
    unopened: str = "",
) -> ObservedPlacements | None:
    """None where KubeStellar serves no queue and is not there to have served one, or the manager cannot be asked.

    `removed` are clusters that are no longer in git and may still have copies; `lost` says why some are not connected.
    `unopened` is why not all of them are known: a job that has left one would count as one without a copy.
    """
    manager, workers = spec.manager, Workers(spec, clients, removed, lost or {})
    if manager is None or manager.name not in clients:
        return None
    now = datetime.now(UTC)
    try:
        if not downsynced_queues(spec) and not has_policies(clients[manager.name]):
            return None
        _require_all_workers(manager, unopened)
        found = _look_at_manager(spec, manager, clients[manager.name])
        emptying = find_emptying(workers, clients[manager.name])
    except ClusterError as error:
        is_unused = error.is_forbidden and not downsynced_queues(spec)
        gaps = () if is_unused else (Gap(manager.name, "jobs for KubeStellar", error.problem),)
        return ObservedPlacements(now, gaps=gaps, downsynced=Downsynced(problem=error.problem))
    copies = list_copies(workers, _asked(workers, found, emptying))
    progress, former = _progress(found, copies), find_former(_without_place(found), found.kinds, copies, now)
    completed = (_completed(job, progress, former) for job in found.jobs)
    jobs = tuple(_with_copy(job, found, copies) for job in completed)
    placed = frozenset(job.placed.cluster for job in jobs if job.placed and not job.is_finished)
    occupied, closing = find_occupied(emptying, copies, jobs), find_closing(found.closing, jobs)
    downsynced = Downsynced(occupied, closing, placed=placed)
    homes = {
        (queue.name, one.name) for queue in downsynced_queues(spec) for one in workers_of(spec, queue) if _keeps(one)
    }
    nodes = _nodes(spec, manager.name, clients) if any(_needs_nodes(job, homes) for job in jobs) else {}
    ends = _ends(jobs, found, copies)
    return ObservedPlacements(
        now=now,
        jobs=jobs,
        nodes=nodes,
        originals=found.originals,
        workloads=found.workloads,
        inactive=found.inactive,
        ends=ends,
        downsynced=downsynced,
    )


def _require_all_workers(manager: Cluster, unopened: str) -> None:
    if unopened:
        raise ClusterError(manager.name, unopened)


def _completed(job: QueuedJob, progress: Copies, former: Mapping[Ref, Former]) -> QueuedJob:
    away = former.get(job.ref)
    return replace(
        job,
        progress=progress.get(job.ref, Progress.UNKNOWN),
        former=away.cluster if away else None,
        former_problem=away.problem if away else "",
    )


def _with_copy(job: QueuedJob, found: "_Found", copies: Mapping[Asked, Listed]) -> QueuedJob:
    """Whether its copy is there; or how that has ended, where the job was taken back at that very moment."""
    place = job.placed or job.before
    copy = _copy_of(job, place.cluster, found, copies) if place else None
    if job.placed or copy is None:
        return replace(job, is_there=copy is not None)
    end = read_end_of_copy(found.kinds[job.ref], copy, _pods_of(job))
    return replace(job, end=job.end or end)


def _copy_of(job: QueuedJob, cluster: ClusterName, found: "_Found", copies: Mapping[Asked, Listed]) -> Manifest | None:
    kind = found.kinds.get(job.ref)
    listed = copies.get((cluster, kind), ()) if kind else ()
    return None if isinstance(listed, str) else _by_name(listed).get((job.ref.namespace, job.ref.name))


@dataclass(frozen=True, slots=True)
class _Found:
    """What the manager told."""

    client: ClusterClient
    kinds: Mapping[Ref, DownsyncKind]
    jobs: tuple[QueuedJob, ...]
    originals: Mapping[Ref, Manifest]
    workloads: Mapping[Ref, Manifest]
    inactive: Mapping[str, Manifest]
    closing: tuple[Manifest, ...] = ()


def _look_at_manager(spec: FleetSpec, manager: Cluster, client: ClusterClient) -> _Found:
    wanted = {queue.name: placement_check(queue) for queue in downsynced_queues(spec)}
    listed = list_kueue(client, "AdmissionCheck")
    checks = {at(check, "metadata", "name"): check for check in listed}
    # Before the workloads: whatever such a queue let in before it was stopped is then among them.
    closing = queues_to_close(spec, listed, partial(list_kueue, client, "ClusterQueue"))
    queues = {*wanted, *(queue["metadata"]["name"] for queue in closing)}
    every = list_kueue(client, "Workload", OWN_WORKLOADS)
    by_owner = {owner.uid: workload for workload in every if (owner := owner_of(workload)) is not None}
    meant = [workload for workload in every if at(workload, "status", "admission", "clusterQueue") in queues]
    uids = {owner.uid for workload in meant if (owner := owner_of(workload)) is not None}
    # Of all workloads: one that lost its quota names no queue any more, and its job has to come back.
    originals, kinds = _jobs_of(manager, client, _kinds_of(spec, every), uids)
    workloads = {ref: by_owner[uid] for ref, one in originals.items() if (uid := one["metadata"]["uid"]) in by_owner}
    strange = _strange_workloads(manager, meant, workloads.values())
    flavors = _left_flavors(spec, client, meant)
    jobs = tuple(read_job(spec, ref, originals[ref], workloads.get(ref), flavors) for ref in originals)
    jobs += tuple(read_job(spec, ref, None, workload) for ref, workload in strange.items())
    inactive = {name: checks.get(name, {}) for name in wanted.values() if not _is_active(checks.get(name))}
    return _Found(
        client=client,
        kinds=kinds,
        jobs=jobs,
        originals=originals,
        workloads={**workloads, **strange},
        inactive=inactive,
        closing=closing,
    )


def _left_flavors(spec: FleetSpec, client: ClusterClient, workloads: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """The live flavors, where jobs have quota of one that is no longer in git."""
    used = {name for workload in workloads for name in flavors_of(workload)}
    is_left = bool(used - {flavor.name for flavor in spec.flavors})
    return tuple(list_kueue(client, "ResourceFlavor")) if is_left else ()


def _jobs_of(
    manager: Cluster, client: ClusterClient, kinds: Iterable[DownsyncKind], uids: set[str]
) -> tuple[dict[Ref, Manifest], dict[Ref, DownsyncKind]]:
    """Jobs that have quota, by their uids, that have a place, or that had one."""
    originals: dict[Ref, Manifest] = {}
    kind_by_ref: dict[Ref, DownsyncKind] = {}
    for kind in kinds:
        # The second are those whose user took them out of their queue since.
        for manifest in (*_list_jobs(client, kind), *_list_jobs(client, kind, f"{CLUSTER_LABEL},!{QUEUE_LABEL}")):
            metadata, placed = manifest["metadata"], read_placed(manifest)
            ref = Ref(manager.name, kind.group, kind.kind, metadata["namespace"], metadata["name"])
            if metadata["uid"] in uids or placed or read_before(manifest):
                originals[ref], kind_by_ref[ref] = manifest, kind
    return originals, kind_by_ref


def _strange_workloads(
    manager: Cluster, meant: Iterable[Manifest], known: Iterable[Manifest]
) -> Mapping[Ref, Manifest]:
    """Workloads whose job cannot be handled: they hold quota, so the plan has to say why they wait."""
    names = {(at(one, "metadata", "namespace"), at(one, "metadata", "name")) for one in known}
    own = ((one["metadata"]["namespace"], one["metadata"]["name"], one) for one in meant)
    return {
        Ref(manager.name, GROUP, "Workload", namespace, name): workload
        for namespace, name, workload in own
        if (namespace, name) not in names
    }


def _kinds_of(spec: FleetSpec, workloads: Iterable[Manifest]) -> tuple[DownsyncKind, ...]:
    owners = {(owner.group, owner.kind) for workload in workloads if (owner := owner_of(workload)) is not None}
    settings = spec.fleet.kubestellar
    return tuple(kind for kind in settings.kinds if kind == JOB or (kind.group, kind.kind) in owners)


def _list_jobs(client: ClusterClient, kind: DownsyncKind, selector: str = QUEUE_LABEL) -> tuple[Mapping[str, Any], ...]:
    try:
        return tuple(client.list(kind.collection, selector))
    except ClusterError as error:
        if error.status == 404:
            return ()
        raise


def _is_active(check: Manifest | None) -> bool:
    conditions = map(as_map, as_list(at(check, "status", "conditions")))
    return any(one.get("type") == "Active" and one.get("status") == "True" for one in conditions)


def _needs_nodes(job: QueuedJob, homes: set[tuple[str, ClusterName]]) -> bool:
    """Whether room has to be known: for jobs without a place, and for those that may not stay where they are."""
    if not job.has_quota or job.is_finished:
        return False
    is_settled = job.placed is not None and job.progress is Progress.RUNNING
    return not is_settled or (job.placed is not None and (job.queue, job.placed.cluster) not in homes)


def _keeps(worker: Cluster) -> bool:
    return worker.drain is not Drain.EVICT


def _without_place(found: _Found) -> dict[Ref, QueuedJob]:
    """Jobs that wait for a place, and those that came back and wait for quota: copies of both may still be there."""
    return {
        job.ref: job
        for job in found.jobs
        if job.placed is None and not job.is_finished and job.ref in found.kinds and (job.has_quota or job.before)
    }


def _asked(workers: Workers, found: _Found, emptying: Iterable[ClusterName]) -> Iterator[Asked]:
    """Where copies have to be looked for: where jobs are, where they came from, and where all of them have to go."""
    serving = [worker.name for worker, _ in downsynced_by(workers.spec)]
    for job in found.jobs:
        if job.placed and not job.is_settled and job.ref in found.kinds:
            yield job.placed.cluster, found.kinds[job.ref]
    for ref, job in _without_place(found).items():
        if job.before and job.before.cluster in workers.names:
            yield job.before.cluster, found.kinds[ref]
        yield from ((name, found.kinds[ref]) for name in serving if job.has_quota)
    yield from ((name, kind) for name in emptying for kind in workers.spec.fleet.kubestellar.kinds)


def _progress(found: _Found, copies: Mapping[Asked, Listed]) -> Copies:
    """How the copies are: as their workers say, else as KubeStellar's collectors say."""
    placed = {job.ref: job for job in found.jobs if job.placed is not None and not job.is_settled}
    seen = {asked: _by_name(listed) for asked, listed in copies.items() if not isinstance(listed, str)}
    known: dict[Ref, Progress] = {}
    for ref, job in placed.items():
        kind = found.kinds.get(ref)
        there = seen.get((job.placed.cluster, kind)) if job.placed and kind else None
        if kind and there is not None:
            copy = current_copy(found.originals[ref], there.get((ref.namespace, ref.name)))
            known[ref] = read_progress(kind, copy, _pods_of(job))
    silent = [ref for ref in placed if ref not in known]
    return {**(_combined(found, placed, silent) if silent else {}), **known}


def _ends(jobs: Iterable[QueuedJob], found: _Found, copies: Mapping[Asked, Listed]) -> Mapping[Ref, Manifest]:
    """The statuses of copies that have ended: where none comes back, the job on the manager gets them by kfleet."""
    ended = {job.ref: (job, end.cluster) for job in jobs if not job.is_reported and (end := _end_on_worker(job))}
    seen = {ref: _copy_of(job, cluster, found, copies) for ref, (job, cluster) in ended.items()}
    return {ref: as_map(copy.get("status")) for ref, copy in seen.items() if copy is not None}


def _end_on_worker(job: QueuedJob) -> End | None:
    return End(job.progress, job.placed.cluster) if job.placed and job.progress.is_over else job.end


def _by_name(listed: Iterable[Manifest]) -> Mapping[tuple[str, str], Manifest]:
    return {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in listed}


def _combined(found: _Found, placed: Mapping[Ref, QueuedJob], refs: Iterable[Ref]) -> Copies:
    try:
        reports = list(found.client.list(COMBINED))
    except ClusterError:
        return {}
    return {
        ref: progress
        for ref in refs
        if (progress := read_combined(found.kinds[ref], found.originals[ref], reports, _pods_of(placed[ref])))
        is not None
    }


def _pods_of(job: QueuedJob) -> int:
    return sum(pods.count for pods in job.pod_sets)


def _nodes(spec: FleetSpec, manager: ClusterName, clients: Ports) -> Mapping[ClusterName, ClusterNodes]:
    workers = [worker for worker, _ in downsynced_by(spec)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        looks = list(pool.map(lambda worker: _nodes_of(spec, worker, manager, clients), workers))
    return {worker.name: seen for worker, seen in zip(workers, looks, strict=True)}


def _nodes_of(spec: FleetSpec, worker: Cluster, manager: ClusterName, clients: Ports) -> ClusterNodes:
    """From the same source as the quota, so that both speak of the same nodes."""
    sources = {flavor.capacity.source for flavor in spec.flavors if worker in spec.selected(flavor.clusters)}
    try:
        if CapacitySource.CLUSTER_METRICS in sources:
            return _reported(worker, manager, clients)
        client = clients.get(worker.name)
        if client is None:
            return ClusterNodes(problem="no connection")
        used = requests_by_node(client.list("/api/v1/pods"))
        return ClusterNodes(tuple(read_node(node, used) for node in client.list("/api/v1/nodes")))
    except ClusterError as error:
        return ClusterNodes(problem=error.problem)


def _reported(worker: Cluster, manager: ClusterName, clients: Ports) -> ClusterNodes:
    report = find_report(worker.name, clients, manager)
    if report is None:
        return ClusterNodes(problem="there are no ClusterMetrics of it")
    entries = [as_map(one) for one in as_list(at(report, "status", "nodes"))]
    used = {as_text(one.get("name")): read_amounts(one.get("allocatedResourceRequests")) for one in entries}
    nodes: tuple[Node, ...] = read_metrics(report)
    return ClusterNodes(tuple(replace(node, other=used.get(node.name, {})) for node in nodes))
