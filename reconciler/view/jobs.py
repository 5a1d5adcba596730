"""The jobs of all clusters: each Workload with its job, and with its copies on workers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at
from reconciler.kueue.workloads import has_known_order, in_queue_order, is_ordered_by_eviction
from reconciler.objects import ClusterName, Manifest, group_of
from reconciler.snapshot.model import KindKey
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import FleetSpec, Tenant
from reconciler.spec.settings import CLUSTER_LABEL
from reconciler.view.live import Address, LiveCluster, address_of, name_of
from reconciler.view.model import JobCopy, JobEntry, JobState
from reconciler.view.states import (
    Standing,
    Whereabouts,
    assigned_flavors,
    created_at,
    downsynced,
    multikueue,
    read_standing,
    requested,
)
from reconciler.why.index import Stories, prebuilt_of
from reconciler.why.reason import first_line

WORKLOAD = "Workload"
# Labels or annotations by which tools say who submitted a job.
OWNER_KEYS = ("app.kubernetes.io/created-by", "skypilot-user")
# States of which a user does not ask why.
CLEAR = {JobState.RUNNING, JobState.FINISHED, JobState.FAILED}
Lives = Mapping[ClusterName, LiveCluster]


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """The job of a Workload. `manifest` is None if its kind was not observed, or the job is gone."""

    kind: KindKey
    name: str
    manifest: Manifest | None = None


def job_entries(spec: FleetSpec, lives: Lives, manager: ClusterName | None, stories: Stories) -> Iterator[JobEntry]:
    """Copies of one workload are one job: the manager's, or, where its workload is not in sight, that of a worker."""
    tenants = _tenants(spec)
    home = lives.get(manager) if manager else None
    orphans = _orphans(lives, home)
    for live in lives.values():
        positions = find_positions(live)
        for address, workload in (live.workloads or {}).items():
            copies = orphans.get(address, ()) if _has_origin(workload) else ()
            if copies[0].cluster == live.name if copies else not _is_copy(live, home, address, workload):
                entry = _entry(live, lives, workload, positions.get(address))
                why = "" if entry.state in CLEAR else first_line(stories, live.name, workload)
                yield replace(entry, tenant=_tenant_of(entry, tenants), copies=copies or entry.copies, why=why)


def _orphans(lives: Lives, home: LiveCluster | None) -> Mapping[Address, tuple[JobCopy, ...]]:
    """The copies whose origin is not in sight, with the one that runs first.

    The manager was not observed, or its list is a moment older or newer than that of the workers.
    """
    known = (home.workloads or {}) if home else {}
    found: dict[Address, list[JobCopy]] = {}
    for live in lives.values():
        for address, workload in (live.workloads or {}).items():
            if live is not home and address not in known and _has_origin(workload):
                state = read_standing(workload, owned_job(live, workload).manifest).state
                found.setdefault(address, []).append(JobCopy(live.name, name_of(workload), state))
    return {address: tuple(sorted(copies, key=_is_waiting)) for address, copies in found.items()}


def _is_waiting(copy: JobCopy) -> bool:
    return not (copy.state.is_started or copy.state.is_over)


def _is_copy(live: LiveCluster, home: LiveCluster | None, address: Address, workload: Manifest) -> bool:
    if _is_second(live, home, address, workload):
        return True
    if live is home or home is None or home.workloads is None:
        return False
    if _has_origin(workload):
        return address in home.workloads
    owned = owned_job(live, workload)
    is_placed = at(owned.manifest, "metadata", "labels", CLUSTER_LABEL) == live.name
    return is_placed and (owned.kind, (address[0], owned.name)) in home.jobs


def _is_second(live: LiveCluster, home: LiveCluster | None, address: Address, workload: Manifest) -> bool:
    """Whether the job of a workload names another one, that of MultiKueue.

    Kueue 0.19 on the manager names it by an annotation. An older Kueue on the worker does not know that, and creates a
    second Workload for the same job.
    """
    named = prebuilt_of(owned_job(live, workload).manifest)
    if not named or named == address[1]:
        return False
    return any((address[0], named) in (one.workloads or {}) for one in (live, home) if one is not None)


def _has_origin(workload: Manifest) -> bool:
    return ORIGIN in as_map(at(workload, "metadata", "labels"))


def _entry(live: LiveCluster, lives: Lives, workload: Manifest, position: int | None) -> JobEntry:
    owned = owned_job(live, workload)
    namespace, queue = as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName"))
    cluster_queue = queue_of(live, workload)
    standing = read_standing(workload, owned.manifest)
    found = _whereabouts(live, lives, workload, owned, live.dispatch.get(cluster_queue, Dispatch.NONE), standing)
    priority = at(workload, "spec", "priority")
    return JobEntry(
        id=f"{live.name}/{namespace}/{name_of(workload)}",
        cluster=live.name,
        namespace=namespace,
        kind=owned.kind[1],
        name=owned.name,
        workload=name_of(workload),
        owner=_submitter(owned.manifest, workload),
        tenant="",
        queue=queue,
        cluster_queue=cluster_queue,
        priority=priority if isinstance(priority, int) else None,
        requested=requested(workload),
        state=found.standing.state,
        since=found.standing.since,
        created=created_at(workload),
        position=position if found.standing.state.is_queued else None,
        reason=found.standing.reason,
        runs_on=found.runs_on,
        copies=found.copies,
        flavors=assigned_flavors(workload),
        has_quota=standing.state.is_started or found.standing.state.is_started,
    )


def _whereabouts(
    live: LiveCluster, lives: Lives, workload: Manifest, owned: OwnedJob, dispatch: Dispatch, standing: Standing
) -> Whereabouts:
    workers = {name: one for name, one in lives.items() if name != live.name}
    if dispatch is Dispatch.MULTIKUEUE:
        return multikueue(workers, workload, (owned.kind, owned.name), standing)
    if dispatch is Dispatch.KUBESTELLAR:
        return downsynced(workers, workload, owned.kind, owned.manifest, standing)
    has_pods = standing.state.is_started or (standing.state.is_over and bool(at(workload, "status", "admission")))
    return Whereabouts(standing, live.name if has_pods else "", ())


def owned_job(live: LiveCluster, workload: Manifest) -> OwnedJob:
    """The job of a Workload: its controller, or the first owner of a group of pods."""
    owners = [as_map(one) for one in as_list(at(workload, "metadata", "ownerReferences"))]
    owner = next((one for one in owners if one.get("controller") is True), owners[0] if owners else None)
    if owner is None:
        sent = live.jobs_by_prebuilt.get(address_of(workload))
        return OwnedJob(sent[0], name_of(sent[1]), sent[1]) if sent else OwnedJob(("", WORKLOAD), name_of(workload))
    kind, name = (group_of(owner), as_text(owner.get("kind"))), as_text(owner.get("name"))
    is_group = len(owners) > 1 and owner.get("controller") is not True
    namespace = as_text(at(workload, "metadata", "namespace"))
    return OwnedJob(kind, name_of(workload) if is_group else name, live.jobs.get((kind, (namespace, name))))


def queue_of(live: LiveCluster, workload: Manifest) -> str:
    """The ClusterQueue: of the admission, or else of the LocalQueue."""
    address = (as_text(at(workload, "metadata", "namespace")), as_text(at(workload, "spec", "queueName")))
    admitted = as_text(at(workload, "status", "admission", "clusterQueue"))
    return admitted or (live.local_queues or {}).get(address, "")


def find_positions(live: LiveCluster) -> Mapping[Address, int]:
    """The place of each waiting workload of a cluster in its ClusterQueue, from 1, copies included."""
    waiting: dict[str, list[Manifest]] = {}
    for workload in (live.workloads or {}).values():
        if read_standing(workload, None).state.is_queued and (queue := queue_of(live, workload)):
            waiting.setdefault(queue, []).append(workload)
    is_by_eviction = is_ordered_by_eviction(live.objects.configuration) if waiting else True
    return {
        (as_text(at(workload, "metadata", "namespace")), name_of(workload)): number
        for queue, found in waiting.items()
        if has_known_order((live.queues or {}).get(queue, {}))
        for number, workload in enumerate(in_queue_order(found, is_by_eviction=is_by_eviction), 1)
    }


def _submitter(job: Manifest | None, workload: Manifest) -> str:
    for manifest in (job, workload):
        for place in ("labels", "annotations"):
            named = as_map(at(manifest, "metadata", place))
            if found := next((as_text(named[key]) for key in OWNER_KEYS if named.get(key)), ""):
                return found
    return ""


def _tenants(spec: FleetSpec) -> Mapping[str, tuple[Tenant, ...]]:
    found: dict[str, tuple[Tenant, ...]] = {}
    for tenant in spec.tenants:
        for namespace in tenant.namespaces:
            found[namespace] = (*found.get(namespace, ()), tenant)
    return found


def _tenant_of(entry: JobEntry, tenants: Mapping[str, tuple[Tenant, ...]]) -> str:
    """Tenants may share a namespace: the one of the job's queue comes first."""
    known = tenants.get(entry.namespace, ())
    return next((one.name for one in known if one.queue == entry.cluster_queue), known[0].name if known else "")
