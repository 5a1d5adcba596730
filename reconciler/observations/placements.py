"""One look at the jobs that KubeStellar carries: what waits on the manager, what runs where, where there is room."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.labels import QUEUE_LABEL
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.observations.kubestellar import has_policies
from reconciler.observations.metrics import find_report, read_metrics
from reconciler.observations.nodes import read_amounts, read_node, requests_by_node
from reconciler.observations.progress import current_copy, read_combined, read_progress
from reconciler.observations.queued_jobs import owner_of, read_job
from reconciler.observations.usage import VERSIONS
from reconciler.placement import ClusterNodes, PlacementLook, Progress, QueuedJob
from reconciler.placement.former import Names, find_former
from reconciler.placement.memory import read_placed
from reconciler.ports import ClusterPort
from reconciler.spec.choices import CapacitySource, Drain
from reconciler.spec.kubestellar import CLUSTER_LABEL, JOB, CarriedKind
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.workers import carried_by, carried_queues, placement_check, workers_of

COMBINED = "/apis/control.kubestellar.io/v1alpha1/combinedstatuses"
OWN_WORKLOADS = f"!{GROUP}/multikueue-origin"
# Who may not look at jobs never placed one.
FORBIDDEN = 403
_PARALLEL = 16

Ports = Mapping[ClusterName, ClusterPort]
Copies = Mapping[Ref, Progress]


def observe_placements(spec: FleetSpec, ports: Ports) -> PlacementLook | None:
    """None where KubeStellar serves no queue and is not there to have served one, or the manager cannot be asked."""
    manager = spec.manager
    if manager is None or manager.name not in ports:
        return None
    if not carried_queues(spec) and not has_policies(ports[manager.name]):
        return None
    now = datetime.now(UTC)
    try:
        found = _look_at_manager(spec, manager, ports[manager.name])
    except ClusterError as error:
        if error.status == FORBIDDEN and not carried_queues(spec):
            return None
        return PlacementLook(now, gaps=(Gap(manager.name, "jobs for KubeStellar", error.problem),))
    progress, former = _progress(found, ports), _former(spec, found, ports)
    jobs = tuple(
        replace(job, progress=progress.get(job.ref, Progress.UNKNOWN), former=former.get(job.ref)) for job in found.jobs
    )
    homes = {(queue.name, one.name) for queue in carried_queues(spec) for one in workers_of(spec, queue) if _keeps(one)}
    nodes = _nodes(spec, manager.name, ports) if any(_needs_nodes(job, homes) for job in jobs) else {}
    return PlacementLook(now, jobs, nodes, found.originals, found.workloads, found.inactive)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the manager told."""

    port: ClusterPort
    kinds: Mapping[Ref, CarriedKind]
    jobs: tuple[QueuedJob, ...]
    originals: Mapping[Ref, Manifest]
    workloads: Mapping[Ref, Manifest]
    inactive: Mapping[str, Manifest]


def _look_at_manager(spec: FleetSpec, manager: Cluster, port: ClusterPort) -> _Found:
    queues = {queue.name: placement_check(queue) for queue in carried_queues(spec)}
    every = _list_kueue(port, "workloads", "Workload", OWN_WORKLOADS)
    checks = {at(check, "metadata", "name"): check for check in _list_kueue(port, "admissionchecks", "AdmissionCheck")}
    by_owner = {owner.uid: workload for workload in every if (owner := owner_of(workload)) is not None}
    meant = [workload for workload in every if at(workload, "status", "admission", "clusterQueue") in queues]
    wanted = {owner.uid for workload in meant if (owner := owner_of(workload)) is not None}
    # Of all workloads: one that lost its quota names no queue any more, and its job has to come back.
    kinds = _kinds_of(spec, every)
    originals: dict[Ref, Manifest] = {}
    kind_by_ref: dict[Ref, CarriedKind] = {}
    for kind in kinds:
        # The second are those whose user took them out of their queue since.
        for manifest in (*_list_jobs(port, kind), *_list_jobs(port, kind, f"{CLUSTER_LABEL},!{QUEUE_LABEL}")):
            metadata, placed = manifest["metadata"], read_placed(manifest)
            ref = Ref(manager.name, kind.group, kind.kind, metadata["namespace"], metadata["name"])
            is_counted = bool(queues) and QUEUE_LABEL in metadata["labels"]
            if metadata["uid"] in wanted or (placed and (placed.is_own or is_counted)):
                originals[ref], kind_by_ref[ref] = manifest, kind
    workloads = {ref: by_owner[uid] for ref, one in originals.items() if (uid := one["metadata"]["uid"]) in by_owner}
    strange = _strange_workloads(manager, meant, workloads.values())
    jobs = tuple(read_job(spec, ref, originals[ref], workloads.get(ref)) for ref in originals)
    jobs += tuple(read_job(spec, ref, None, workload) for ref, workload in strange.items())
    inactive = {name: checks.get(name, {}) for name in queues.values() if not _is_active(checks.get(name))}
    return _Found(port, kind_by_ref, jobs, originals, {**workloads, **strange}, inactive)


def _strange_workloads(
    manager: Cluster, meant: Iterable[Manifest], known: Iterable[Manifest]
) -> Mapping[Ref, Manifest]:
    """Workloads whose job cannot be handled: they hold quota, and somebody has to know why they wait."""
    names = {(at(one, "metadata", "namespace"), at(one, "metadata", "name")) for one in known}
    own = ((one["metadata"]["namespace"], one["metadata"]["name"], one) for one in meant)
    return {
        Ref(manager.name, GROUP, "Workload", namespace, name): workload
        for namespace, name, workload in own
        if (namespace, name) not in names
    }


def _kinds_of(spec: FleetSpec, workloads: Iterable[Manifest]) -> tuple[CarriedKind, ...]:
    owners = {(owner.group, owner.kind) for workload in workloads if (owner := owner_of(workload)) is not None}
    settings = spec.fleet.kubestellar
    return tuple(kind for kind in settings.kinds if kind == JOB or (kind.group, kind.kind) in owners)


def _list_kueue(port: ClusterPort, plural: str, kind: str, selector: str = "") -> tuple[Manifest, ...]:
    """Objects of Kueue in the newest version that is served, each with its type."""
    for version in VERSIONS:
        api_version = f"{GROUP}/{version}"
        try:
            found = port.list(f"/apis/{api_version}/{plural}", selector)
            return tuple({**one, "apiVersion": api_version, "kind": kind} for one in found)
        except ClusterError as error:
            if error.status != 404:
                raise
    return ()


def _list_jobs(port: ClusterPort, kind: CarriedKind, selector: str = QUEUE_LABEL) -> tuple[Mapping[str, Any], ...]:
    try:
        return tuple(port.list(kind.collection, selector))
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


def _progress(found: _Found, ports: Ports) -> Copies:
    """How the copies are: as their workers say, else as KubeStellar's collectors say."""
    placed = {job.ref: job for job in found.jobs if job.placed is not None and not job.is_finished}
    asked = {(job.placed.cluster, found.kinds[ref]) for ref, job in placed.items() if job.placed and ref in found.kinds}
    told: dict[tuple[ClusterName, CarriedKind], Copies | None] = {}
    with ThreadPoolExecutor(_PARALLEL) as pool:
        answers = pool.map(lambda one: _copies(ports.get(one[0]), found, placed, one), sorted(asked, key=str))
        told = dict(zip(sorted(asked, key=str), answers, strict=True))
    known = {ref: progress for copies in told.values() if copies is not None for ref, progress in copies.items()}
    silent = [ref for ref in placed if ref not in known]
    return {**(_combined(found, placed, silent) if silent else {}), **known}


def _former(spec: FleetSpec, found: _Found, ports: Ports) -> Mapping[Ref, ClusterName]:
    """A cluster that left the fleet is asked while it can be; then it counts as gone, with all that it had."""
    waiting = {
        job.ref: job
        for job in found.jobs
        if job.placed is None and job.has_quota and not job.is_finished and job.ref in found.kinds
    }
    kinds = {found.kinds[ref] for ref in waiting}
    left = {job.before.cluster for job in waiting.values() if job.before}
    known = {*ports, *(cluster.name for cluster in spec.clusters)}
    clusters = {*(worker.name for worker, _ in carried_by(spec)), *(left & known)}
    asked = sorted(((cluster, kind) for cluster in clusters for kind in kinds), key=str)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        answers = pool.map(lambda one: _names(ports.get(one[0]), *one), asked)
        return find_former(waiting, found.kinds, dict(zip(asked, answers, strict=True)))


def _names(port: ClusterPort | None, cluster: ClusterName, kind: CarriedKind) -> Names:
    if port is None:
        return None
    try:
        copies = _list_jobs(port, kind, f"{CLUSTER_LABEL}={cluster}")
    except ClusterError:
        return None
    return frozenset((one["metadata"]["namespace"], one["metadata"]["name"]) for one in copies)


def _copies(
    port: ClusterPort | None,
    found: _Found,
    placed: Mapping[Ref, QueuedJob],
    asked: tuple[ClusterName, CarriedKind],
) -> Copies | None:
    cluster, kind = asked
    if port is None:
        return None
    try:
        copies = _list_jobs(port, kind, f"{CLUSTER_LABEL}={cluster}")
    except ClusterError:
        return None
    by_name = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in copies}
    return {
        ref: read_progress(
            kind, current_copy(found.originals[ref], by_name.get((ref.namespace, ref.name))), _pods_of(job)
        )
        for ref, job in placed.items()
        if job.placed and job.placed.cluster == cluster and found.kinds.get(ref) == kind
    }


def _combined(found: _Found, placed: Mapping[Ref, QueuedJob], refs: Iterable[Ref]) -> Copies:
    try:
        reports = list(found.port.list(COMBINED))
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


def _nodes(spec: FleetSpec, manager: ClusterName, ports: Ports) -> Mapping[ClusterName, ClusterNodes]:
    workers = [worker for worker, _ in carried_by(spec)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        looks = list(pool.map(lambda worker: _nodes_of(spec, worker, manager, ports), workers))
    return {worker.name: seen for worker, seen in zip(workers, looks, strict=True)}


def _nodes_of(spec: FleetSpec, worker: Cluster, manager: ClusterName, ports: Ports) -> ClusterNodes:
    """From the same source as the quota, so that both speak of the same nodes."""
    sources = {flavor.capacity.source for flavor in spec.flavors if worker in spec.selected(flavor.clusters)}
    try:
        if CapacitySource.CLUSTER_METRICS in sources:
            return _reported(worker, manager, ports)
        port = ports.get(worker.name)
        if port is None:
            return ClusterNodes(problem="no connection")
        used = requests_by_node(port.list("/api/v1/pods"))
        return ClusterNodes(tuple(read_node(node, used) for node in port.list("/api/v1/nodes")))
    except ClusterError as error:
        return ClusterNodes(problem=error.problem)


def _reported(worker: Cluster, manager: ClusterName, ports: Ports) -> ClusterNodes:
    report = find_report(worker.name, ports, manager)
    if report is None:
        return ClusterNodes(problem="there are no ClusterMetrics of it")
    entries = [as_map(one) for one in as_list(at(report, "status", "nodes"))]
    used = {as_text(one.get("name")): read_amounts(one.get("allocatedResourceRequests")) for one in entries}
    nodes: tuple[Node, ...] = read_metrics(report)
    return ClusterNodes(tuple(replace(node, other=used.get(node.name, {})) for node in nodes))
