"""Live objects of clusters as values: what a fleet looks like after Kueue has worked on it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import jsonschema

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Gap, Manifest, group_of
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.enums import Role
from reconciler.spec.model import FleetSpec
from reconciler.spec.schema import schema_folder
from reconciler.view.build import build_view
from reconciler.view.model import FleetView, JobEntry, QueueEntry, QueueResource
from reconciler.view.record import view_record
from tests.builders import Document, cluster_queue, native, spec_of

SCHEMA = json.loads((schema_folder() / "view.json").read_text())
NOW = datetime(2026, 11, 18, 16, 0, tzinfo=UTC)
KUEUE_KINDS: tuple[KindKey, ...] = tuple(
    (GROUP, kind) for kind in ("ClusterQueue", "Cohort", "LocalQueue", "Workload", "ResourceFlavor", "AdmissionCheck")
)
ROLES = {"hub": Role.MANAGER}


def at_minute(minute: int) -> str:
    return f"2026-11-18T15:{minute:02}:00Z"


def condition(name: str, status: str = "True", reason: str = "", message: str = "", minute: int = 30) -> Document:
    return {
        "type": name,
        "status": status,
        "reason": reason or name,
        "message": message,
        "lastTransitionTime": at_minute(minute),
    }


def live_queue(
    name: str, group: Document, reserved: str | None = "0", *, used: str | None = None, pending: int = 0, **spec: Any
) -> Document:
    """A queue of cpu of which Kueue has reported this; with None it has reported nothing."""
    queue = cluster_queue(name, group, **spec)
    if reserved is None:
        return queue
    flavor = group["flavors"][0]["name"]

    def amount(total: str) -> list[Document]:
        return [{"name": flavor, "resources": [{"name": "cpu", "total": total}]}]

    status = {
        "pendingWorkloads": pending,
        "flavorsReservation": amount(reserved),
        "flavorsUsage": amount(reserved if used is None else used),
        "conditions": [condition("Active")],
    }
    return {**queue, "status": status}


def live_workload(
    name: str,
    *conditions: Document,
    namespace: str = "team",
    queue: str = "main",
    created: int = 0,
    priority: int | None = None,
    job: str = "",
    held: Mapping[str, str] | None = None,
    status: Document | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Document:
    """A Workload of a Job; `held` is what Kueue has assigned to it, by resource."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u", "controller": True}
    metadata: dict[str, Any] = {
        "namespace": namespace,
        "uid": name,
        "creationTimestamp": at_minute(created),
        "labels": dict(labels or {}),
        **({"ownerReferences": [owner]} if job else {}),
    }
    assigned = {"name": "main", "flavors": dict.fromkeys(held or {}, "default"), "resourceUsage": dict(held or {})}
    admission = {"admission": {"clusterQueue": queue, "podSetAssignments": [assigned]}} if held else {}
    content = {"queueName": "main", **({} if priority is None else {"priority": priority}), **spec}
    workload = native("Workload", name, content, **metadata)
    return {**workload, "status": {"conditions": list(conditions), **admission, **(status or {})}}


def local_queue_of(queue: str, namespace: str = "team", name: str = "main") -> Document:
    return native("LocalQueue", name, {"clusterQueue": queue}, namespace=namespace)


def multikueue_check(name: str = "multikueue") -> Document:
    return native("AdmissionCheck", name, {"controllerName": "kueue.x-k8s.io/multikueue"})


ADMITTED = (condition("QuotaReserved"), condition("Admitted"))


def seen_cluster(name: str, *manifests: Document, **more: Any) -> ClusterObjects:
    """A cluster of which every kind was observed."""
    objects: dict[KindKey, tuple[Manifest, ...]] = dict.fromkeys((*KUEUE_KINDS, ("batch", "Job"), ("", "Node")), ())
    for manifest in manifests:
        key = (group_of(manifest), manifest["kind"])
        objects[key] = (*objects.get(key, ()), manifest)
    role = ROLES.get(name, Role.WORKER)
    return ClusterObjects(name=ClusterName(name), role=role, objects=objects, kueue="v0.19.0", **more)


def lost_cluster(name: str, why: str = "connection refused") -> ClusterObjects:
    gap = Gap(ClusterName(name), "the cluster", why)
    return ClusterObjects(name=ClusterName(name), role=ROLES.get(name, Role.WORKER), is_reachable=False, gaps=(gap,))


def view_of(*clusters: ClusterObjects, spec: FleetSpec | None = None, **more: Any) -> FleetView:
    """The view of these clusters; others of the fleet have nothing. Its document is always a valid one."""
    given = {cluster.name: cluster for cluster in clusters}
    chosen = spec or spec_of()
    everything = {one.name: given.get(one.name, seen_cluster(one.name)) for one in chosen.clusters}
    view = build_view(chosen, FleetObjects(taken_at=NOW, manager=ClusterName("hub"), clusters=everything), **more)
    jsonschema.validate(view_record(view), SCHEMA)
    return view


def queue_at(view: FleetView, cluster: str, name: str) -> QueueEntry:
    return next(entry for entry in view.queues if (entry.cluster, entry.name) == (cluster, name))


def cpu_of(view: FleetView, name: str, cluster: str = "east") -> QueueResource:
    return next(one for one in queue_at(view, cluster, name).resources or () if one.resource == "cpu")


def only_job(view: FleetView) -> JobEntry:
    (entry,) = view.jobs
    return entry
