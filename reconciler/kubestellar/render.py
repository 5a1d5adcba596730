"""The objects of KubeStellar: who may say where a job runs, policies, and what has to stay while jobs are on workers.

Decision: who has a right of kfleet's own may set them, instead of a user by name, because people apply fleets too, and
accounts have other names elsewhere. No server serves the kind that the right is about; RBAC does not mind.

Decision: a BindingPolicy goes only when every copy was seen gone. KubeStellar's deletes race with its own transport, so
that a policy which is deleted together with its jobs can leave their copies running, and no object points to them.
Decision: a queue that goes over from MultiKueue is closed in the same way. Its workers take no new jobs already, so a
job that it would still let in could start nowhere, and would hold its quota for ever.
Decision: a queue on its way out is closed by a selector of no namespace. To hold it would take the quota of its jobs,
because they are never Admitted on the manager, and Kueue takes back what is only reserved.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from reconciler.capacity.quota import Quota, QuotaTable
from reconciler.kubestellar.model import ANNOTATION, ENDED_ANNOTATION, RAN_ANNOTATION
from reconciler.kueue.reading import QUEUE_LABEL, as_map, at
from reconciler.kueue.workloads import is_stopped
from reconciler.multikueue.model import WorkerRemovals
from reconciler.multikueue.removal import multikueue_check, own_marks
from reconciler.multikueue.render import written_quota
from reconciler.quantity import ZERO
from reconciler.render.model import DesiredObject, Leaving, desired_object, kueue_manifest, without_empty
from reconciler.render.queues import DRAIN, cluster_queue, namespaces_of_queues, resource_flavor, resource_groups
from reconciler.snapshot.model import Amounts, ClosingQueue, Downsynced, Observations
from reconciler.spec.enums import Dispatch, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.places import downsynced_by, downsynced_queues, placement_check, workers_of
from reconciler.spec.settings import (
    ADMISSION_GROUP,
    API_GROUP,
    CHECK_CONTROLLER,
    CLUSTER_LABEL,
    GUARD,
    IS_PLACED,
    JOB,
    NAME_LABEL,
    PLACED_LABEL,
    PLACEMENT_GROUP,
    PLACEMENTS,
    PLACING,
    Collectors,
    DownsyncKind,
    KubeStellar,
    PolicyShape,
    policy_name,
    shape_of_release,
)

_LABELS = f"['{CLUSTER_LABEL}', '{PLACED_LABEL}']"
_MAY_PLACE = f"authorizer.group('{PLACEMENT_GROUP}').resource('{PLACEMENTS}').check('{PLACING}').allowed()"
# To take a label off is allowed: that takes the job back, and kfleet places it anew.
_SET = "name in variables.after && !(name in variables.before && variables.before[name] == variables.after[name])"
# A job that is created with them brings no harm: they name another uid, or a cluster where nothing of it runs.
_ANNOTATIONS = f"['{ANNOTATION}', '{RAN_ANNOTATION}', '{ENDED_ANNOTATION}']"
_CHANGED = (
    "(name in variables.notes) != (name in variables.noted) || "
    "(name in variables.notes && variables.notes[name] != variables.noted[name])"
)
_MESSAGE = (
    f"the labels {CLUSTER_LABEL} and {PLACED_LABEL} say where a job with quota runs, and are set by kfleet alone: "
    "leave them out, and name a queue"
)
_NOTES_MESSAGE = f"the annotations {ANNOTATION}* say where a job runs and how it ended, and are changed by kfleet alone"
API_VERSION = f"{API_GROUP}/v1alpha1"
COLLECTOR = "kfleet-job-status"
_WAYS_OUT = "to evict them, set drainOnDelete: true or stopPolicy: HoldAndDrain on the Queue"


def guard_objects(settings: KubeStellar) -> tuple[dict[str, Any], ...]:
    groups: dict[str, list[str]] = {}
    for kind in settings.kinds:
        # A write to the status of a Job may change its labels too.
        groups.setdefault(kind.group, []).extend((kind.plural, f"{kind.plural}/status"))
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": plurals}
        for group, plurals in groups.items()
    ]
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "variables": [
            {"name": "after", "expression": _now("labels")},
            {"name": "before", "expression": _before("labels")},
            {"name": "placed", "expression": f"{_LABELS}.exists(name, {_SET})"},
            {"name": "notes", "expression": _now("annotations")},
            {"name": "noted", "expression": _before("annotations")},
            {"name": "rewritten", "expression": f"oldObject != null && {_ANNOTATIONS}.exists(name, {_CHANGED})"},
        ],
        "validations": [
            {"expression": f"!variables.{name} || {_MAY_PLACE}", "message": message, "reason": "Forbidden"}
            for name, message in (("placed", _MESSAGE), ("rewritten", _NOTES_MESSAGE))
        ],
    }
    binding = {"policyName": GUARD, "validationActions": ["Deny"]}
    return (
        _policy_manifest("ValidatingAdmissionPolicy", policy),
        _policy_manifest("ValidatingAdmissionPolicyBinding", binding),
    )


def _now(part: str) -> str:
    return f"has(object.metadata.{part}) ? object.metadata.{part} : {{}}"


def _before(part: str) -> str:
    return f"oldObject != null && has(oldObject.metadata.{part}) ? oldObject.metadata.{part} : {{}}"


def _policy_manifest(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{ADMISSION_GROUP}/v1", "kind": kind, "metadata": {"name": GUARD}, "spec": content}


def kubestellar_objects(spec: FleetSpec, quota: QuotaTable, seen: Observations) -> Iterator[DesiredObject]:
    manager, queues = spec.manager, downsynced_queues(spec)
    if manager is None or not queues:
        return
    namespaces = namespaces_of_queues(spec)
    for queue in queues:
        offering = _offering(spec, queue, seen.downsynced)
        entries = written_quota(queue) if queue.manager_quota else _sums_by_flavor(spec, queue, quota, offering)
        manifest = cluster_queue(queue, manager, resource_groups(entries), namespaces.get(queue.name, ()))
        unseen = "" if queue.manager_quota else _unseen(queue, quota, offering, seen.downsynced)
        yield from _queue_objects(manager, queue, manifest, unseen)
    yield from _flavors(spec, manager, queues)
    settings = spec.fleet.kubestellar
    shape = seen.policy_shape or shape_of_release(settings.version)
    for worker, queue in downsynced_by(spec):
        yield desired_object(manager, _binding_policy(worker, settings, shape), queue.document)
    yield from _carriers(manager, settings, shape, queues[0])
    if shape.has_guard:
        yield from (desired_object(manager, one, queues[0].document) for one in guard_objects(settings))


def cluster_labels(worker: Cluster, select_by: Sequence[str]) -> dict[str, str]:
    """What the ManagedCluster of a worker carries; a label that the Cluster does not have is lint's matter."""
    own = {NAME_LABEL: str(worker.name), **worker.labels}
    return {label: own[label] for label in select_by if label in own}


def _queue_objects(manager: Cluster, queue: Queue, manifest: dict[str, Any], unseen: str) -> Iterator[DesiredObject]:
    name = placement_check(queue)
    yield desired_object(
        manager, kueue_manifest("AdmissionCheck", name, {"controllerName": CHECK_CONTROLLER}), queue.document
    )
    own = manifest["spec"].get("admissionChecksStrategy", {}).get("admissionChecks", [])
    strategy = {"admissionChecks": [*own, {"name": name}]}
    content = {**manifest["spec"], "admissionChecksStrategy": strategy}
    yield replace(desired_object(manager, {**manifest, "spec": content}, queue.document), unseen=unseen)


def _offering(spec: FleetSpec, queue: Queue, seen: Downsynced) -> list[Cluster]:
    """A drained worker takes no new jobs. It counts until those that it has have ended, so that none is preempted."""
    return [worker for worker in workers_of(spec, queue) if not worker.is_drained or worker.name in seen.placed]


def _unseen(queue: Queue, quota: QuotaTable, offering: list[Cluster], seen: Downsynced) -> str:
    """Parts of the sum that were not observed, or that left it and still have jobs: then the sum must not shrink."""
    leaving = (f"{name} counts until it has left: {why}" for name, why in seen.occupied.items())
    return "; ".join(filter(None, (quota.unseen_of(queue, offering), *leaving, seen.problem)))


def _sums_by_flavor(spec: FleetSpec, queue: Queue, quota: QuotaTable, offering: list[Cluster]) -> list[Quota]:
    """What the workers together offer of each flavor."""
    known = [entry for worker in workers_of(spec, queue) for entry in quota.of(queue, worker.name)]
    entries = [entry for worker in offering for entry in quota.of(queue, worker.name)]
    return [_sum(name, known, entries) for name in dict.fromkeys(entry.flavor for entry in queue.quota)]


def _sum(flavor: str, known: list[Quota], offered: list[Quota]) -> Quota:
    entries = [entry for entry in offered if entry.flavor == flavor]
    names = dict.fromkeys(name for entry in known if entry.flavor == flavor for name in entry.nominal)

    def added(amounts: list[Amounts]) -> Amounts:
        limited = [name for name in names if any(name in one for one in amounts)]
        return {name: sum((one.get(name, ZERO) for one in amounts), ZERO) for name in limited}

    nominal = {name: sum((entry.nominal.get(name, ZERO) for entry in entries), ZERO) for name in names}
    return Quota(
        flavor, nominal, added([entry.borrowing for entry in entries]), added([entry.lending for entry in entries])
    )


def _flavors(spec: FleetSpec, manager: Cluster, queues: Sequence[Queue]) -> Iterator[DesiredObject]:
    """The flavors of the workers; without their topology, which only a cluster with nodes can use."""
    wanted = {entry.flavor for queue in queues for entry in (*queue.quota, *queue.manager_quota)}
    for flavor in spec.flavors:
        if flavor.name in wanted and manager not in spec.selected(flavor.clusters):
            yield desired_object(manager, resource_flavor(replace(flavor, topology_name="")), flavor.document)


def _binding_policy(worker: Cluster, settings: KubeStellar, shape: PolicyShape) -> dict[str, Any]:
    groups: dict[str, list[str]] = {}
    for kind in settings.kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    content: dict[str, Any] = {
        "clusterSelectors": [{"matchLabels": cluster_labels(worker, settings.select_by)}],
        "downsync": [_clause(worker, group, plurals, shape) for group, plurals in groups.items()],
    }
    if not shape.is_singleton_in_clause:
        content["wantSingletonReportedState"] = True
    return _manifest("BindingPolicy", policy_name(worker.name), content)


def _clause(worker: Cluster, group: str, plurals: list[str], shape: PolicyShape) -> dict[str, Any]:
    clause: dict[str, Any] = {
        "apiGroup": group,
        "resources": plurals,
        "objectSelectors": [{"matchLabels": {CLUSTER_LABEL: worker.name, PLACED_LABEL: IS_PLACED}}],
    }
    collectors = [COLLECTOR]
    if shape.collectors is Collectors.FLAT:
        clause["statusCollectors"] = collectors
    if shape.collectors is Collectors.NESTED:
        clause["statusCollection"] = {"statusCollectors": collectors}
    # A Job cannot change once it is there: every later update would be refused. What can change follows.
    return clause | without_empty(
        {
            "createOnly": group == JOB.group if shape.has_create_only else None,
            "wantSingletonReportedState": True if shape.is_singleton_in_clause else None,
        }
    )


def _carriers(manager: Cluster, settings: KubeStellar, shape: PolicyShape, queue: Queue) -> Iterator[DesiredObject]:
    """What makes a copy run although its original is held back, and what tells how it goes."""
    if shape.has_custom_transforms:
        for kind in settings.kinds:
            yield desired_object(manager, _custom_transform(kind), queue.document)
    if shape.has_status_collectors:
        yield desired_object(manager, _status_collector(), queue.document)


def _custom_transform(kind: DownsyncKind) -> dict[str, Any]:
    """A copy is not held back, outlives its end, names no queue, and is run by the worker's own controller.

    One that a time to live deletes is made again by the agent and runs again; a Kueue of the worker lacks the queue. A
    job that was submitted to MultiKueue says so in `managedBy`, and nothing on a worker would start its copy.
    """
    beside = kind.suspend.rpartition(".")[0]
    removed = [f"$.{kind.suspend}", f"$.{beside}.ttlSecondsAfterFinished", f"$.{beside}.managedBy"]
    removed.append(f'$.metadata.labels["{QUEUE_LABEL}"]')
    content = {"apiGroup": kind.group, "resource": kind.plural, "remove": removed}
    return _manifest("CustomTransform", f"kfleet-{kind.plural}.{kind.group}", content)


def _status_collector() -> dict[str, Any]:
    select = [{"name": "wec", "def": "inventory.name"}, {"name": "status", "def": "returned.status"}]
    return _manifest("StatusCollector", COLLECTOR, {"select": select, "limit": 10})


def _manifest(kind: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": content}


def still_closing(seen: Downsynced, waiting: WorkerRemovals) -> Downsynced:
    """Without the queues of MultiKueue whose workers have no jobs of theirs left and take no new ones."""
    closing = (_counted(queue, waiting) if queue.is_sending else queue for queue in seen.closing)
    return replace(seen, closing=tuple(queue for queue in closing if not queue.is_sending or _is_used(queue)))


def _counted(queue: ClosingQueue, waiting: WorkerRemovals) -> ClosingQueue:
    """With those that run on workers. A worker of which that is not known, or that takes jobs, counts for one."""
    memberships = [
        membership for membership in waiting.memberships if membership.config == multikueue_check(queue.name)
    ]
    running = sum(
        membership.running or int(membership.running is None or not membership.is_held) for membership in memberships
    )
    return replace(queue, downsynced=running + bool(waiting.problem))


def _is_used(queue: ClosingQueue) -> bool:
    return bool(queue.downsynced or queue.reserving) or not is_stopped(queue.manifest)


def with_closing(spec: FleetSpec, seen: Downsynced, objects: Sequence[DesiredObject]) -> tuple[DesiredObject, ...]:
    """The objects, with queues that leave KubeStellar as they are and closed, in the place of what they shall be."""
    manager = spec.manager
    if manager is None or not seen.closing:
        return tuple(objects)
    held = [_closed(spec, manager, queue) for queue in seen.closing]
    refs = {entry.ref for entry in held}
    return (*(entry for entry in objects if entry.ref not in refs), *held)


def with_downsynced(spec: FleetSpec, seen: Downsynced, leaving: Iterable[Leaving]) -> tuple[Leaving, ...]:
    """Who cannot go yet, with the manager as long as it needs something for jobs on workers."""
    known = {entry.cluster: entry for entry in leaving}
    own = [*_workers(spec, seen), *_manager(spec, seen)]
    for entry in own:
        known[entry.cluster] = _merged(known[entry.cluster], entry) if entry.cluster in known else entry
    return tuple(known.values())


def _workers(spec: FleetSpec, seen: Downsynced) -> Iterator[Leaving]:
    in_spec = {cluster.name for cluster in spec.clusters}
    for name, why in seen.occupied.items():
        then = "its BindingPolicy" if name in in_spec else "its BindingPolicy and the fleet's objects there"
        yield Leaving(name, f"{why}; {then} go when it is free of them", is_whole=name not in in_spec)


def _manager(spec: FleetSpec, seen: Downsynced) -> Iterator[Leaving]:
    if spec.manager is None or not (seen.occupied or seen.closing or seen.problem):
        return
    reasons = [f"queue {queue.name}: {_why(spec, queue)}" for queue in seen.closing]
    if seen.problem and downsynced_queues(spec):
        reasons.append(f"its jobs could not be seen, so nothing of KubeStellar goes ({seen.problem})")
    policies = None if seen.problem else frozenset(policy_name(name) for name in seen.occupied)
    queues = frozenset(queue.name for queue in seen.closing)
    yield Leaving(spec.manager.name, "; ".join(reasons), queues, policies=policies, is_serving=True)


def _merged(first: Leaving, second: Leaving) -> Leaving:
    return replace(
        second,
        why="; ".join(filter(None, (first.why, second.why))),
        queues=first.queues | second.queues,
        is_whole=first.is_whole or second.is_whole,
    )


def _why(spec: FleetSpec, queue: ClosingQueue) -> str:
    return "; ".join((*_state(spec, queue), *_rejected(spec, queue)))


def _state(spec: FleetSpec, queue: ClosingQueue) -> Iterator[str]:
    if not queue.downsynced:
        yield "it is just being stopped, and the next run goes on"
        return
    yield f"it changes when its jobs on workers have ended and their copies are gone, now {queue.downsynced}"
    yield "they are being evicted" if _is_evicting(spec, queue) else _WAYS_OUT


def _rejected(spec: FleetSpec, queue: ClosingQueue) -> Iterator[str]:
    """Kueue writes spec.managedBy into a Job when it is created, by the check that its queue has at that moment."""
    wanted, pending = _queue_of(spec, queue), int(at(queue.manifest, "status", "pendingWorkloads") or 0)
    if pending and wanted and wanted.dispatch is Dispatch.MULTIKUEUE:
        yield f"{pending} that wait in it have to be submitted again then: MultiKueue rejects jobs of another dispatch"


def _closed(spec: FleetSpec, manager: Cluster, queue: ClosingQueue) -> DesiredObject:
    content = dict(queue.manifest["spec"])
    if _is_evicting(spec, queue):
        content["stopPolicy"] = StopPolicy.HOLD_AND_DRAIN.value
    elif queue.downsynced:
        content.pop("namespaceSelector", None)
        content.pop("stopPolicy", None)
    else:
        content["stopPolicy"] = StopPolicy.HOLD.value
    manifest = kueue_manifest("ClusterQueue", queue.name, content)
    metadata = queue.manifest["metadata"]
    marks = {name: own_marks(as_map(metadata.get(name))) for name in ("labels", "annotations")}
    manifest["metadata"] = {**manifest["metadata"], **without_empty(marks)}
    wanted = _queue_of(spec, queue)
    document = wanted.document if wanted else spec.fleet.document
    return desired_object(manager, manifest, document, _why(spec, queue))


def _is_evicting(spec: FleetSpec, queue: ClosingQueue) -> bool:
    wanted = _queue_of(spec, queue)
    is_reported = wanted is not None and (wanted.drain_on_delete or wanted.stop_policy is StopPolicy.HOLD_AND_DRAIN)
    return is_reported or as_map(queue.manifest["metadata"].get("annotations")).get(DRAIN) == "true"


def _queue_of(spec: FleetSpec, queue: ClosingQueue) -> Queue | None:
    return next((one for one in spec.queues if one.name == queue.name), None)
