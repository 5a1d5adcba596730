"""Reads single facts of Workloads and jobs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reconciler.admission.jobs import FORMS, downsynced_frameworks
from reconciler.admission.state import AdmissionFacts, ClusterState, FleetState, admission_settings, build_state
from reconciler.kueue.configuration import ConfigurationError, assumed_settings, read_configuration, read_settings
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import CANONICAL, GROUP, first_version
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import has_condition, has_known_order, in_queue_order, is_ordered_by_eviction
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.settings import KNOWN_KINDS
from reconciler.why.model import Place

JOB_UID = f"{GROUP}/job-uid"
# On a job that MultiKueue created on a worker: the Workload that it belongs to. Kueue 0.19 writes it as an annotation.
PREBUILT = f"{GROUP}/prebuilt-workload-name"
Address = tuple[str, str]
QUEUE_KINDS = (
    "LocalQueue",
    "ClusterQueue",
    "Cohort",
    "ResourceFlavor",
    "AdmissionCheck",
    "MultiKueueConfig",
    "MultiKueueCluster",
    "WorkloadPriorityClass",
)
WORKLOAD = (GROUP, "Workload")
NO_JOBS = {("", "Namespace"), ("", "Node")}
Extra = Mapping[ClusterName, tuple[Manifest, ...]]
Key = TypeVar("Key")


def address_of(manifest: Manifest | None) -> Address:
    return as_text(at(manifest, "metadata", "namespace")), as_text(at(manifest, "metadata", "name"))


def uid_of(manifest: Manifest | None) -> str:
    return as_text(at(manifest, "metadata", "uid"))


def label_of(manifest: Manifest | None, name: str) -> str:
    return as_text(at(manifest, "metadata", "labels", name))


def prebuilt_of(job: Manifest | None) -> str:
    """Return the Workload that MultiKueue made for a job; empty for every other job."""
    return label_of(job, PREBUILT) or as_text(at(job, "metadata", "annotations", PREBUILT))


def created_at(manifest: Manifest | None) -> str:
    return as_text(at(manifest, "metadata", "creationTimestamp"))


def condition_of(manifest: Manifest | None, kind: str) -> Mapping[str, Any]:
    conditions = map(as_map, as_list(at(manifest, "status", "conditions")))
    return next((one for one in conditions if one.get("type") == kind), {})


def message_of(manifest: Manifest | None, kind: str) -> str:
    return as_text(condition_of(manifest, kind).get("message"))


def owner_of(manifest: Manifest | None) -> Mapping[str, Any]:
    """Return the controller that owns an object, or else its first owner."""
    owners = [as_map(one) for one in as_list(at(manifest, "metadata", "ownerReferences"))]
    return next((one for one in owners if one.get("controller") is True), owners[0] if owners else {})


def title_of(job: Manifest | None, workload: Manifest | None) -> str:
    """Return `Kind/namespace/name` of the job, or of the Workload if its job is not known."""
    if job is not None:
        return "/".join((as_text(job.get("kind")), *address_of(job)))
    owner, (namespace, name) = owner_of(workload), address_of(workload)
    if owner:
        return "/".join((as_text(owner.get("kind")), namespace, as_text(owner.get("name"))))
    return f"Workload/{namespace}/{name}"


def is_pending(workload: Manifest) -> bool:
    """Whether a workload waits for quota: it is active, and neither finished nor with a reservation."""
    return is_active(workload) and not any(has_condition(workload, one) for one in ("Finished", "QuotaReserved"))


def is_active(workload: Manifest) -> bool:
    return at(workload, "spec", "active") is not False


def priority_of(workload: Manifest) -> int:
    value = at(workload, "spec", "priority")
    return value if isinstance(value, int) else 0


def open_checks(workload: Manifest) -> list[Mapping[str, Any]]:
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    return [one for one in states if one.get("state") != "Ready"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIndex:
    """One cluster. `lines` are the pending workloads of each ClusterQueue in the order in which Kueue tries them.

    A queue whose order is not known (admission fair sharing) has no line, and its workloads have no place.
    """

    seen: ClusterObjects
    state: ClusterState = field(repr=False)
    workloads: Mapping[Address, Manifest] = field(repr=False)
    workloads_by_uid: Mapping[str, Manifest] = field(repr=False)
    workloads_of_job: Mapping[str, tuple[Manifest, ...]] = field(repr=False)
    jobs: Mapping[Address, tuple[Manifest, ...]] = field(repr=False)
    jobs_by_uid: Mapping[str, Manifest] = field(repr=False)
    jobs_by_prebuilt: Mapping[Address, Manifest] = field(repr=False)
    pods_of_job: Mapping[str, tuple[Manifest, ...]] = field(repr=False)
    lines: Mapping[str, tuple[Manifest, ...]] = field(repr=False)
    places: Mapping[Address, Place] = field(repr=False)

    @property
    def name(self) -> ClusterName:
        return self.seen.name

    def queue_of(self, workload: Manifest) -> str:
        """Return the ClusterQueue of a workload: the one that admitted it, or the one of its LocalQueue."""
        return as_text(at(workload, "status", "admission", "clusterQueue")) or as_text(
            at(self.local_queue_of(workload), "spec", "clusterQueue")
        )

    def local_queue_of(self, workload: Manifest) -> Manifest | None:
        address = (address_of(workload)[0], as_text(at(workload, "spec", "queueName")))
        return self.state.local_queues.get(address)

    def job_of(self, workload: Manifest) -> Manifest | None:
        """Return the job of a workload. A copy of MultiKueue has the uid of the job on the manager."""
        own = self.jobs_by_uid.get(label_of(workload, JOB_UID)) or self.jobs_by_prebuilt.get(address_of(workload))
        return own or self.jobs_by_uid.get(as_text(owner_of(workload).get("uid")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stories:
    """The index of a fleet, from which each story is computed without a search through all objects."""

    objects: FleetObjects = field(repr=False)
    spec: FleetSpec | None = field(repr=False)
    clusters: Mapping[ClusterName, ClusterIndex] = field(repr=False)
    fleet: FleetState = field(repr=False)

    @property
    def manager(self) -> ClusterIndex | None:
        return self.clusters.get(self.objects.manager) if self.objects.manager else None

    def lost(self, cluster: ClusterName) -> str:
        """Return why a cluster was not observed; empty if it was."""
        if cluster in self.clusters:
            return ""
        return self.fleet.lost.get(cluster, "it is not a cluster of the fleet")


def build_stories(objects: FleetObjects, spec: FleetSpec | None = None, extra: Extra | None = None) -> Stories:
    """`extra` are single jobs and pods of kinds that the objects do not contain."""
    known = {cluster.name: cluster for cluster in spec.clusters} if spec else {}
    more = extra or {}
    clusters = {seen.name: _index(seen, known.get(seen.name), more.get(seen.name, ())) for seen in objects.reachable()}
    lost = {gap.cluster: gap.why for gap in objects.gaps if gap.cluster not in clusters}
    kinds = spec.fleet.kubestellar.kinds if spec else KNOWN_KINDS
    states = {name: index.state for name, index in clusters.items()}
    fleet = FleetState(states, objects.manager, lost, downsynced_frameworks(kinds))
    return Stories(objects=objects, spec=spec, clusters=clusters, fleet=fleet)


def _index(seen: ClusterObjects, cluster: Cluster | None, extra: Iterable[Manifest]) -> ClusterIndex:
    state = _state(seen, cluster)
    workloads = seen.of(*WORKLOAD)
    jobs = tuple(_jobs(seen, extra))
    lines = _lines(workloads, state, seen.configuration)
    return ClusterIndex(
        seen=seen,
        state=state,
        workloads={address_of(one): one for one in workloads},
        workloads_by_uid={uid_of(one): one for one in workloads},
        workloads_of_job=_grouped(
            (label_of(one, JOB_UID) or as_text(owner_of(one).get("uid")), one) for one in workloads
        ),
        jobs=_grouped((address_of(one), one) for one in jobs),
        jobs_by_uid={uid_of(one): one for one in jobs if uid_of(one)},
        jobs_by_prebuilt={(address_of(one)[0], name): one for one in jobs if (name := prebuilt_of(one))},
        pods_of_job=_grouped((as_text(owner_of(one).get("uid")), one) for one in jobs if one.get("kind") == "Pod"),
        lines=lines,
        places={
            address_of(one): Place(queue, number, len(line))
            for queue, line in lines.items()
            for number, one in enumerate(line, start=1)
        },
    )


def _jobs(seen: ClusterObjects, extra: Iterable[Manifest]) -> Iterator[Manifest]:
    """Return the objects of all kinds that Kueue can queue, or that own workloads, each once."""
    listed = (one for key, entries in seen.objects.items() if _is_job(key) for one in entries)
    found = {uid_of(one) or str(id(one)): one for one in (*listed, *extra)}
    return iter(found.values())


def _is_job(key: KindKey) -> bool:
    return key in FORMS or (key[0] != GROUP and key not in NO_JOBS)


def _grouped(pairs: Iterable[tuple[Key, Manifest]]) -> dict[Key, tuple[Manifest, ...]]:
    found: dict[Key, list[Manifest]] = {}
    for key, manifest in pairs:
        found.setdefault(key, []).append(manifest)
    return {key: tuple(entries) for key, entries in found.items()}


def _lines(workloads: Iterable[Manifest], state: ClusterState, configuration: str) -> dict[str, tuple[Manifest, ...]]:
    found: dict[str, list[Manifest]] = {}
    for workload in filter(is_pending, workloads):
        address = (address_of(workload)[0], as_text(at(workload, "spec", "queueName")))
        queue = as_text(at(state.local_queues.get(address), "spec", "clusterQueue"))
        if queue:
            found.setdefault(queue, []).append(workload)
    is_by_eviction = is_ordered_by_eviction(configuration) if found else True
    return {
        queue: tuple(in_queue_order(line, is_by_eviction=is_by_eviction))
        for queue, line in found.items()
        if has_known_order(state.queues.get(queue, {}))
    }


def _state(seen: ClusterObjects, cluster: Cluster | None) -> ClusterState:
    """The state that decides admission: queues as they are, and Kueue's Configuration as it runs, if it was read."""
    patch = cluster.kueue.configuration if cluster else {}
    try:
        content, settings = read_configuration(seen.configuration), read_settings(seen.configuration)
    except ConfigurationError:
        content, settings = patch, assumed_settings(patch)
    version = first_version(seen.kueue, cluster.kueue.version if cluster else "")
    facts = AdmissionFacts(
        admission_settings(settings, content, seen.namespace), version, is_live=seen.has("", "Namespace")
    )
    manifests = [_canonical(one) for kind in QUEUE_KINDS for one in seen.of(GROUP, kind)]
    return build_state(seen.name, (*manifests, *seen.of("", "Namespace")), facts)


def _canonical(manifest: Manifest) -> Manifest:
    if manifest.get("apiVersion") == f"{GROUP}/{CANONICAL}":
        return manifest
    return {**to_canonical(manifest).manifest, "status": manifest.get("status") or {}}
