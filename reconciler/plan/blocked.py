"""Blocks changes of queues and checks that would lose jobs on workers, or lower a quota without an observation."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP, MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at, quantity_at
from reconciler.kueue.references import Name, referrers
from reconciler.kueue.workloads import has_begun, has_condition, holding_count, is_opening, queue_of
from reconciler.objects import Manifest, Ref
from reconciler.plan.fields import changed_fields
from reconciler.plan.model import Action, Cause, Change, Reason
from reconciler.quantity import Quantity
from reconciler.spec.settings import CHECK_CONTROLLER
from reconciler.state.model import ClusterView, Prediction

_GROUPS, _STRATEGY = "spec.resourceGroups", "spec.admissionChecksStrategy"
_HOLD_FIRST = "stop the queue, and change it when they have ended"
_NOMINAL, _LIMITS = "nominalQuota", ("borrowingLimit", "lendingLimit")

Key = tuple[str, str, str]
_WORKLOADS = (GROUP, "Workload")
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}


def blocked_by_running_workloads(prediction: Prediction, view: ClusterView, dispatching: Collection[str]) -> str:
    """Why an object must not change: without its check or its cluster the manager would lose a running job.

    `dispatching` are the checks of MultiKueue that the fleet wants on the cluster.
    """
    if prediction.ref.kind == "ClusterQueue":
        return _why_checked(prediction, view) or _why_unchecked(prediction, dispatching)
    return _why_configured(prediction, view) if prediction.ref.kind == "AdmissionCheck" else ""


def _why_checked(prediction: Prediction, view: ClusterView) -> str:
    live = prediction.live or {}
    count = holding_count(live)
    if not count:
        return ""
    lost = _checks(to_canonical(live).manifest) - _checks(prediction.entry.manifest)
    if not any(_is_sending(view, name) for name in lost):
        return ""
    return f"{count} workloads dispatched to workers hold its quota; {_HOLD_FIRST}"


def _why_unchecked(prediction: Prediction, dispatching: Collection[str]) -> str:
    """Why a queue must not get a check of MultiKueue: it rejects jobs that were admitted without it, and they end.

    A check that was removed by hand comes back at once: the jobs that it dispatched need it.
    """
    count = holding_count(prediction.live or {})
    if not count or not _gains_check(prediction, dispatching) or _is_drift(prediction):
        return ""
    return f"{count} workloads that run here hold its quota, and MultiKueue would end them; {_HOLD_FIRST}"


def rejected_by_multikueue(prediction: Prediction, dispatching: Collection[str]) -> Iterator[str]:
    """The note on waiting jobs: Kueue sets spec.managedBy of a Job when it is created, by the checks at that time."""
    pending = int(at(prediction.live, "status", "pendingWorkloads") or 0)
    if pending and prediction.ref.kind == "ClusterQueue" and _gains_check(prediction, dispatching):
        yield f"{pending} workloads wait in it; MultiKueue rejects jobs that were created before: submit them again"


def _gains_check(prediction: Prediction, dispatching: Collection[str]) -> bool:
    live = to_canonical(prediction.live or {}).manifest
    return bool((_checks(prediction.entry.manifest) - _checks(live)) & set(dispatching))


def _is_drift(prediction: Prediction) -> bool:
    changed = (field for field in changed_fields(prediction) if field.path.startswith(_STRATEGY))
    return any(field.cause is Cause.DRIFT for field in changed)


def _why_configured(prediction: Prediction, view: ClusterView) -> str:
    """Why a check must not point to another MultiKueueConfig: a running job needs its worker in the new one."""
    live, ref = prediction.live or {}, prediction.ref
    old, new = _config(live), _config(prediction.entry.manifest)
    if old == new or at(live, "spec", "controllerName") != MULTIKUEUE_CONTROLLER:
        return ""
    if view.gaps:
        return "the observation of this cluster is incomplete, so the jobs that it would lose are not known"
    queues = [queue for key, queue in view.live.items() if key.kind == "ClusterQueue" and holding_count(queue)]
    count = sum(holding_count(queue) for queue in queues if ref.name in _checks(to_canonical(queue).manifest))
    missing = sorted(_clusters(view, ref, old) - _clusters(view, ref, new))
    if not (count and missing):
        return ""
    where = f"{new} does not name {', '.join(missing)}"
    return f"{count} workloads dispatched to workers hold quota, and {where}; stop the queue until they have ended"


def why_jobs_end_with(local_queue: Manifest, view: ClusterView) -> str:
    """Why a LocalQueue must neither stop nor go: KubeStellar runs jobs of it, which would lose their quota and end.

    They are reserved on the manager and never Admitted, and Kueue takes back what is only reserved.
    """
    count, name = holding_count(local_queue), as_text(at(local_queue, "spec", "clusterQueue"))
    queue = view.live.get(Ref(view.name, GROUP, "ClusterQueue", "", name))
    checks = _checks(to_canonical(queue).manifest) if count and queue else ()
    if not any(_controller(view, check) == CHECK_CONTROLLER for check in checks):
        return ""
    return f"{count} workloads that KubeStellar runs on workers hold its quota, and would end with it"


def _config(check: Manifest) -> str:
    return as_text(at(check, "spec", "parameters", "name"))


def _clusters(view: ClusterView, check: Ref, config: str) -> set[str]:
    live = view.live.get(Ref(check.cluster, GROUP, "MultiKueueConfig", "", config))
    return {as_text(cluster) for cluster in as_list(at(live, "spec", "clusters"))}


def _checks(queue: Manifest) -> set[str]:
    checks = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return {as_text(at(check, "name")) for check in checks}


def is_dispatching(view: ClusterView, queue: Manifest) -> bool:
    """Whether a live queue has a check that dispatches its workloads to workers."""
    return any(_is_sending(view, name) for name in _checks(to_canonical(queue).manifest))


def _is_sending(view: ClusterView, check: str) -> bool:
    """Whether a check dispatches to workers. A check that could not be observed may be one."""
    controller = _controller(view, check)
    return bool(view.gaps) if controller is None else controller in {MULTIKUEUE_CONTROLLER, CHECK_CONTROLLER}


def _controller(view: ClusterView, check: str) -> str | None:
    """The controller of a check; None if the check could not be observed."""
    live = view.live.get(Ref(view.name, GROUP, "AdmissionCheck", "", check))
    return None if live is None else as_text(at(live, "spec", "controllerName"))


def blocked_by_missing_observation(prediction: Prediction) -> str:
    """What must be observed before a live object may change; empty if it may change now."""
    entry = prediction.entry
    if not entry.unseen or not any(field.path.startswith(_GROUPS) for field in changed_fields(prediction)):
        return ""
    before, after = _quotas(prediction.live or {}), _quotas(prediction.result or prediction.wanted)
    return entry.unseen if _is_less(before, after) else ""


def _is_less(before: Mapping[Key, Quantity], after: Mapping[Key, Quantity]) -> bool:
    """Whether a quota shrinks. A new limit is less than no limit; a missing flavor is less, even than a quota of 0."""
    gone = any(key not in after for key in before if key[2] == _NOMINAL)
    limited = any(key not in before for key in after if key[2] in _LIMITS and (*key[:2], _NOMINAL) in before)
    return gone or limited or any(after[key] < old for key, old in before.items() if key in after)


def _quotas(manifest: Manifest) -> Mapping[Key, Quantity]:
    return dict(_amounts(to_canonical(manifest).manifest)) if manifest else {}


def _amounts(queue: Manifest) -> Iterator[tuple[Key, Quantity]]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for one in as_list(at(flavor, "resources")):
                for name in (_NOMINAL, *_LIMITS):
                    amount = quantity_at(at(one, name))
                    if amount is not None:
                        yield (as_text(at(flavor, "name")), as_text(at(one, "name")), name), amount


def blocked_by_former_copies(prediction: Prediction, view: ClusterView, manager: ClusterView | None) -> str:
    """Why a queue must stay stopped for now; empty if it may resume, or does not resume."""
    if not is_opening(prediction.live, prediction.entry.manifest) or prediction.ref.kind != "ClusterQueue":
        return ""
    copies = [workload for workload in view.live.values() if _is_copy_in(workload, prediction.ref.name, view)]
    if not copies:
        return ""
    if manager is None or _WORKLOADS not in manager.listed:
        return f"{len(copies)} workloads of the manager are here, and the manager's own workloads could not be observed"
    count = sum(_is_stale(copy, view, manager) for copy in copies)
    if not count:
        return ""
    then = "it resumes when the manager's Kueue is connected again and has removed them"
    return f"{count} workloads that the manager runs elsewhere, or no longer runs, would start here again; {then}"


def _is_copy_in(workload: Manifest, queue: str, view: ClusterView) -> bool:
    if workload.get("kind") != "Workload" or ORIGIN not in as_map(at(workload, "metadata", "labels")):
        return False
    name, namespace = as_text(at(workload, "spec", "queueName")), workload["metadata"]["namespace"]
    way_in = view.live.get(Ref(view.name, GROUP, "LocalQueue", namespace, name))
    is_here = queue in {queue_of(workload), at(way_in, "spec", "clusterQueue")}
    return is_here and not has_condition(workload, "Finished")


def _is_stale(copy: Manifest, view: ClusterView, manager: ClusterView) -> bool:
    """Whether the manager does not expect the copy to run here.

    A workload that is not placed yet may still come here, unless its copy has already started here.
    """
    metadata = copy["metadata"]
    known = manager.live.get(Ref(manager.name, GROUP, "Workload", metadata["namespace"], metadata["name"]))
    if known is None or has_condition(known, "Finished"):
        return True
    place = as_text(at(known, "status", "clusterName"))
    return place != view.name if place else has_begun(copy)


def hold_dependants(
    changes: Iterable[Change], refused: Collection[Ref], wanted: Mapping[Ref, Manifest]
) -> list[Change]:
    """Hold changes that refer to a refused object, or to an object that is held for this reason."""
    known = list(changes)
    stopped = {(ref.kind, ref.name): ref for ref in refused}
    needs = {change.ref: needs_of(change.ref, wanted[change.ref]) for change in known if stopped and _is_write(change)}
    while held := {ref: stopped[name] for ref, names in needs.items() if (name := _first(names, stopped))}:
        known = [_held(change, held[change.ref]) if change.ref in held else change for change in known]
        stopped = {(ref.kind, ref.name): ref for ref in held}
        needs = {ref: names for ref, names in needs.items() if ref not in held}
    return known


def _is_write(change: Change) -> bool:
    return change.action in _WRITES and change.rollout is None


def _first(names: frozenset[Name], stopped: Mapping[Name, Ref]) -> Name | None:
    return min(names & stopped.keys(), default=None)


def needs_of(ref: Ref, manifest: Manifest) -> frozenset[Name]:
    """The kind and name of every object of its cluster that an object needs in order to be written or to work."""
    role = as_map(manifest.get("roleRef"))
    more = [
        ("Namespace", ref.namespace),
        (as_text(role.get("kind")), as_text(role.get("name"))),
    ]
    return frozenset(referrers([manifest])) | {name for name in more if name[1]}


def _held(change: Change, why: Ref) -> Change:
    return change._replace(
        action=Action.HOLD, reason=Reason.BLOCKED, notes=(*change.notes, f"it waits for {why}"), token=None
    )
