"""What workers and the ITS have: copies of jobs, what KubeStellar may let go of, and the shape of its objects.

What was not seen is not gone: a worker that does not answer has all the copies that it ever had.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kubestellar.model import ANNOTATION, Asked, Listed, QueuedJob
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import is_stopped
from reconciler.multikueue.model import ManagedClusters
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.model import ClosingQueue
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_by, downsynced_queues
from reconciler.spec.settings import (
    ADMISSION_GROUP,
    API_GROUP,
    CHECK_CONTROLLER,
    CLUSTER_LABEL,
    Collectors,
    DownsyncKind,
    PolicyShape,
    check_of,
    is_old_policy,
    policy_name,
)

POLICIES = f"/apis/{API_GROUP}/v1alpha1/bindingpolicies"
_PARALLEL = 16
_MOST_NAMED = 5
Ports = Mapping[ClusterName, ClusterClient]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
NAME = ClusterName("its")


@dataclass(frozen=True, slots=True)
class Workers:
    """The clusters that a fleet has, and those that it had: `lost` says why there is no connection to some of them."""

    spec: FleetSpec
    clients: Ports
    removed: tuple[Cluster, ...] = ()
    lost: Mapping[ClusterName, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[ClusterName]:
        return frozenset(one.name for one in (*self.spec.clusters, *self.removed))

    @property
    def gone(self) -> frozenset[ClusterName]:
        """Those that are no longer in git."""
        return frozenset(one.name for one in self.removed)

    def problem_of(self, name: ClusterName) -> str:
        return self.lost.get(name, "no connection")


def list_copies(workers: Workers, asked: Iterable[Asked]) -> Mapping[Asked, Listed]:
    """Each kind of each cluster once, all at the same time."""
    questions = sorted(set(asked), key=str)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return dict(zip(questions, pool.map(lambda one: _list(workers, *one), questions), strict=True))


def find_emptying(workers: Workers, manager: ClusterClient) -> tuple[ClusterName, ...]:
    """Clusters that may still hold copies although no queue sends jobs there: they have a policy, or left the fleet."""
    serving = {worker.name for worker, _ in downsynced_by(workers.spec)}
    names = {policy_name(name): name for name in workers.names - serving}
    policies = {as_text(at(policy, "metadata", "name")) for policy in _policies(manager)}
    left = {name for policy, name in names.items() if policy in policies}
    return tuple(sorted({*left, *workers.gone}))


def _policies(manager: ClusterClient) -> tuple[Manifest, ...]:
    try:
        return tuple(manager.list(POLICIES))
    except ClusterError as error:
        if error.status != 404:
            raise
        # KubeStellar is not there, and was not there to be given any.
        return ()


def find_occupied(
    emptying: Iterable[ClusterName], copies: Mapping[Asked, Listed], jobs: Iterable[QueuedJob]
) -> Mapping[ClusterName, str]:
    known = tuple(jobs)
    reasons = {name: _why_occupied(name, copies, known) for name in emptying}
    return {name: why for name, why in reasons.items() if why}


def queues_to_close(
    spec: FleetSpec, checks: Iterable[Manifest], list_queues: Callable[[], Iterable[Manifest]]
) -> tuple[Manifest, ...]:
    """Queues with a check of ours that the spec does not dispatch by KubeStellar any more, or not yet.

    The latter still have a check of MultiKueue.
    """
    known = tuple(checks)
    closing, downsynced = _closing_checks(spec, known), {queue.name for queue in downsynced_queues(spec)}
    sending = {as_text(at(one, "metadata", "name")) for one in known if _controller(one) == MULTIKUEUE_CONTROLLER}
    queues = map(_canonical, list_queues() if closing or (sending and downsynced) else ())
    return tuple(queue for queue in queues if _own_check(queue) in closing or _is_arriving(queue, downsynced, sending))


def find_closing(queues: Iterable[Manifest], jobs: Iterable[QueuedJob]) -> tuple[ClosingQueue, ...]:
    """One counts until its Kueue lets nothing in, nothing holds its quota, and every copy of a job is gone.

    The queue of a job that lost its quota is not known. So the job counts for each queue, until its copy is gone.
    """
    known = tuple(jobs)
    found = []
    for queue in queues:
        name = queue["metadata"]["name"]
        away = sum(_is_away(job) for job in known if job.queue == name or not job.has_quota)
        reserving = int(at(queue, "status", "reservingWorkloads") or 0)
        if not _own_check(queue):
            found.append(ClosingQueue(queue, reserving=reserving, is_sending=True))
        elif away or reserving or not is_stopped(queue):
            found.append(ClosingQueue(queue, away, reserving))
    return tuple(found)


def _is_away(job: QueuedJob) -> bool:
    return job.former is not None or (job.placed is not None and not job.is_finished)


def _canonical(live: Manifest) -> Manifest:
    return {**to_canonical(live).manifest, "metadata": live["metadata"], "status": live.get("status") or {}}


def _own_check(queue: Manifest) -> str:
    own = check_of(queue["metadata"]["name"])
    return own if own in _checks(queue) else ""


def _is_arriving(queue: Manifest, downsynced: set[str], sending: set[str]) -> bool:
    return queue["metadata"]["name"] in downsynced and not _own_check(queue) and bool(_checks(queue) & sending)


def _checks(queue: Manifest) -> set[str]:
    checks = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return {as_text(at(check, "name")) for check in checks}


def _closing_checks(spec: FleetSpec, checks: Iterable[Manifest]) -> set[str]:
    wanted = {check_of(queue.name) for queue in downsynced_queues(spec)}
    ours = {as_text(at(one, "metadata", "name")) for one in checks if _controller(one) == CHECK_CONTROLLER}
    return ours - wanted


def _controller(check: Manifest) -> str:
    return as_text(at(check, "spec", "controllerName"))


def _list(workers: Workers, cluster: ClusterName, kind: DownsyncKind) -> Listed:
    client = workers.clients.get(cluster)
    if client is None:
        return workers.problem_of(cluster)
    try:
        return tuple(client.list(kind.collection, f"{CLUSTER_LABEL}={cluster}"))
    except ClusterError as error:
        return () if error.status == 404 else error.problem


def _why_occupied(cluster: ClusterName, copies: Mapping[Asked, Listed], jobs: tuple[QueuedJob, ...]) -> str:
    listed = [found for (name, _), found in copies.items() if name == cluster]
    if problem := next((found for found in listed if isinstance(found, str)), ""):
        return f"it cannot be seen, so it is unknown which jobs of KubeStellar run there ({problem})"
    seen = [copy for found in listed if not isinstance(found, str) for copy in found]
    there = [_name(copy) for copy in seen if at(copy, "metadata", "annotations", ANNOTATION)]
    if there:
        what = "1 job that kfleet placed is" if len(there) == 1 else f"{len(there)} jobs that kfleet placed are"
        remedy = "they go when KubeStellar takes them back; delete there what it does not know any more"
        return f"{what} still there ({_named(there)}); {remedy}"
    if placed := [_job_name(job) for job in jobs if job.placed and job.placed.cluster == cluster]:
        return f"jobs on the manager still have its label ({_named(placed)})"
    late = [_job_name(job) for job in jobs if job.former == cluster]
    return f"copies of jobs that were just taken back may still arrive there ({_named(late)})" if late else ""


def _job_name(job: QueuedJob) -> str:
    return f"{job.ref.namespace}/{job.ref.name}"


def _name(copy: Manifest) -> str:
    return f"{copy['metadata']['namespace']}/{copy['metadata']['name']}"


def _named(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:_MOST_NAMED])
    return f"{shown}, …" if len(names) > _MOST_NAMED else shown


def observe_shape(spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient]) -> PolicyShape | None:
    """None if nothing needs it or the definition cannot be read; then the spec says which release it is."""
    has_queue = any(queue.dispatch is Dispatch.KUBESTELLAR for queue in spec.queues)
    has_old_policy = any(is_old_policy(entry.manifest) for entry in spec.objects)
    client = clients.get(spec.manager.name) if spec.manager else None
    if not (has_queue or has_old_policy) or client is None:
        return None
    try:
        policies, collectors, transforms = (
            client.find(f"{_DEFINITIONS}/{plural}.{API_GROUP}")
            for plural in ("bindingpolicies", "statuscollectors", "customtransforms")
        )
        admission = client.find(f"/apis/{ADMISSION_GROUP}/v1")
    except ClusterError:
        return None
    if not policies:
        return None
    shape = read_shape(policies, collectors is not None, transforms is not None)
    return replace(shape, has_guard=_has_guard(admission))


def _has_guard(served: Manifest | None) -> bool:
    return any(at(one, "name") == "validatingadmissionpolicies" for one in as_list(at(served, "resources")))


def has_policies(client: ClusterClient) -> bool:
    """Whether KubeStellar is there. Only the API server's own 404 says no; the question needs no right of its own."""
    return client.find(f"/apis/{API_GROUP}/v1alpha1") is not None


def observe_inventory(client: ClusterClient) -> ManagedClusters:
    try:
        found = [as_map(one.get("metadata")) for one in client.list(_MANAGED)]
    except ClusterError as error:
        return ManagedClusters(problem=error.problem)
    return ManagedClusters({one["name"]: as_map(one.get("labels")) for one in found})


def read_shape(definition: Manifest, has_collectors: bool, has_transforms: bool) -> PolicyShape:  # noqa: FBT001  (facts)
    versions = [as_map(one) for one in as_list(at(definition, "spec", "versions"))]
    version = next((one for one in versions if one.get("storage")), {})
    spec = as_map(at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties"))
    clause = as_map(at(spec, "downsync", "items", "properties"))
    collectors = next((one for one in (Collectors.FLAT, Collectors.NESTED) if one.value in clause), Collectors.NOWHERE)
    return PolicyShape(
        is_singleton_in_clause="wantSingletonReportedState" in clause,
        has_create_only="createOnly" in clause,
        collectors=collectors if has_collectors else Collectors.NOWHERE,
        has_status_collectors=has_collectors,
        has_custom_transforms=has_transforms,
    )


def look_at_inventory(
    spec: FleetSpec,
    clients: Mapping[ClusterName, ApiServer],
    opener: Callable[[Cluster, ApiServer | None], ApiServer] = open_cluster,
) -> ManagedClusters | None:
    """None if the spec does not say how to reach it, or no job is downsynced."""
    access, manager = spec.fleet.inventory, spec.manager
    if access is None or manager is None or not downsynced_queues(spec):
        return None
    try:
        with closing(opener(replace(manager, name=NAME, access=access), clients.get(manager.name))) as client:
            return observe_inventory(client)
    except ClusterError as error:
        return ManagedClusters(problem=error.problem)
