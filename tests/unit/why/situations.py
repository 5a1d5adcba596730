"""Small clusters as values: queues, workloads and jobs, as the API server returns them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Gap, Manifest, group_of
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.enums import Role
from reconciler.why.index import Stories, build_stories
from reconciler.why.reason import first_line
from tests.builders import (
    KUEUE,
    Document,
    asking,
    cluster_queue,
    cpu_group,
    job,
    local_queue,
    namespace_object,
    native,
    pod_spec,
    resource_flavor,
)

ONLY, HUB, EAST, WEST = (ClusterName(name) for name in ("only", "hub", "east", "west"))
TAKEN = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
TEAM = "team"
CHECK = "multikueue-batch"
QUEUES: tuple[Document, ...] = (
    namespace_object(TEAM),
    resource_flavor("default"),
    cluster_queue("batch", cpu_group("8")),
    local_queue("main", TEAM, "batch"),
)
KINDS = ("Workload", "LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "AdmissionCheck")


def condition(kind: str, *, is_true: bool = True, reason: str = "", message: str = "", at: int = 1) -> Document:
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": time_of(at),
    }


def time_of(minute: int) -> str:
    return f"2026-11-18T11:{minute:02}:00Z"


def queued(
    name: str,
    *conditions: Document,
    cpu: str = "4",
    created: int = 0,
    priority: int = 0,
    queue: str = "main",
    labels: Mapping[str, str] | None = None,
    owner: bool = True,
    **status: Any,
) -> Document:
    """The Workload of a Job of this name; its uid is `w-NAME`, that of the Job `j-NAME`."""
    pods = {"name": "main", "count": 1, "template": {"spec": pod_spec(asking(cpu=cpu) if cpu else asking())}}
    metadata: Document = {
        "name": f"job-{name}",
        "namespace": TEAM,
        "uid": f"w-{name}",
        "creationTimestamp": time_of(created),
        "labels": {f"{GROUP}/job-uid": f"j-{name}", **(labels or {})},
    }
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"j-{name}", "controller": True}
        metadata["ownerReferences"] = [reference]
    spec = {"queueName": queue, "priority": priority, "podSets": [pods], "active": status.pop("active", True)}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": list(conditions), **status},
    }


def admission(cpu: str = "4", *, queue: str = "batch", flavor: str = "default") -> Document:
    flavors = {"cpu": flavor} if cpu else {}
    usage = {"cpu": cpu} if cpu else {}
    assigned = {"name": "main", "count": 1, "flavors": flavors, "resourceUsage": usage}
    return {"clusterQueue": queue, "podSetAssignments": [assigned]}


RESERVED = condition("QuotaReserved", reason="QuotaReserved", at=2)
ADMITTED = condition("Admitted", reason="Admitted", at=3)


def refused(message: str, *, reason: str = "Pending") -> Document:
    return condition("QuotaReserved", is_true=False, reason=reason, message=message)


def more_needed(amount: str = "4", flavor: str = "default") -> Document:
    quota = f"insufficient unused quota for cpu in flavor {flavor}, {amount} more needed"
    return refused(f"couldn't assign flavors to pod set main: {quota}")


def job_of(name: str, *, queue: str = "main", cpu: str = "4", **more: Any) -> Document:
    """A Job as the API server returns it; `status` is its status."""
    status = more.pop("status", {})
    made = job(name, pod_spec(asking(cpu=cpu)), namespace=TEAM, queue=queue, **more)
    metadata = {**made["metadata"], "uid": f"j-{name}", "creationTimestamp": time_of(0)}
    return {**made, "metadata": metadata, "status": status}


def cluster(name: ClusterName, *manifests: Manifest, role: Role = Role.STANDALONE, **more: Any) -> ClusterObjects:
    found: dict[tuple[str, str], list[Manifest]] = {(GROUP, kind): [] for kind in KINDS}
    found |= {("", "Namespace"): [], ("batch", "Job"): []}
    for manifest in manifests:
        found.setdefault((group_of(manifest), manifest["kind"]), []).append(manifest)
    objects = {key: tuple(entries) for key, entries in found.items()}
    return ClusterObjects(name=name, role=role, objects=objects, kueue="v0.19.0", **more)


def lost(name: ClusterName, why: str = "connection refused") -> ClusterObjects:
    gaps = (Gap(name, "the cluster", why),)
    return ClusterObjects(name=name, role=Role.WORKER, is_reachable=False, gaps=gaps)


def fleet(*clusters: ClusterObjects, manager: ClusterName | None = None) -> FleetObjects:
    return FleetObjects(taken_at=TAKEN, manager=manager, clusters={one.name: one for one in clusters})


def alone(*manifests: Manifest, queues: tuple[Document, ...] = QUEUES) -> Stories:
    """One standalone cluster."""
    return build_stories(fleet(cluster(ONLY, *queues, *manifests)))


def with_status(manifest: Document, **status: Any) -> Document:
    return {**manifest, "status": status}


def active(manifest: Document, *, is_true: bool, reason: str = "Active", message: str = "") -> Document:
    return with_status(manifest, conditions=[condition("Active", is_true=is_true, reason=reason, message=message)])


def dispatched_queues(controller: str = f"{GROUP}/multikueue", **spec: Any) -> tuple[Document, ...]:
    """The manager's queue `batch`, which MultiKueue sends to east and west, or KubeStellar downsyncs."""
    checks = {"admissionChecks": [{"name": CHECK}]}
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": "batch"}
    return (
        *(one for one in QUEUES if one["kind"] != "ClusterQueue"),
        cluster_queue("batch", cpu_group("16"), admissionChecksStrategy=checks, **spec),
        native("AdmissionCheck", CHECK, {"controllerName": controller, "parameters": parameters}),
        native("MultiKueueConfig", "batch", {"clusters": [EAST, WEST]}),
        *(native("MultiKueueCluster", name, {}) for name in (EAST, WEST)),
    )


def sent(
    *on_hub: Manifest,
    east: ClusterObjects | tuple[Manifest, ...] = (),
    west: ClusterObjects | tuple[Manifest, ...] = (),
    queues: tuple[Document, ...] | None = None,
) -> Stories:
    """A manager and two workers, each with its own queue of the same name."""
    given = dispatched_queues() if queues is None else queues
    workers = [
        one if isinstance(one, ClusterObjects) else cluster(name, *QUEUES, *one, role=Role.WORKER)
        for name, one in ((EAST, east), (WEST, west))
    ]
    return build_stories(fleet(cluster(HUB, *given, *on_hub, role=Role.MANAGER), *workers, manager=HUB))


def check_state(state: str = "Pending", message: str = "", name: str = CHECK) -> Document:
    return {"name": name, "state": state, "message": message, "lastTransitionTime": time_of(3)}


ORIGIN = {f"{GROUP}/multikueue-origin": "multikueue"}


def line(stories: Stories, workload: Document, name: ClusterName = ONLY) -> str:
    return first_line(stories, name, workload)
