"""Workloads of Kueue and the jobs behind them, read for placement."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.kueue.pods import pod_amounts
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest, Ref
from reconciler.observations.progress import ENDS
from reconciler.placement import PodSet, QueuedJob
from reconciler.placement.matching import required_terms
from reconciler.placement.memory import read_before, read_placed
from reconciler.spec.model import Flavor, FleetSpec
from reconciler.spec.workers import carried_queues, placement_check

PENDING = "Pending"
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Owner:
    group: str
    kind: str
    name: str
    uid: str


def owner_of(workload: Manifest) -> Owner | None:
    """The job that a Workload was made of; those that somebody wrote by hand, and groups of pods, have none."""
    owners = [as_map(one) for one in as_list(at(workload, "metadata", "ownerReferences"))]
    found = next((one for one in owners if one.get("controller") is True), None)
    if found is None:
        return None
    group, slash, _ = as_text(found.get("apiVersion")).partition("/")
    return Owner(group if slash else "", *(as_text(found.get(key)) for key in ("kind", "name", "uid")))


def read_job(spec: FleetSpec, ref: Ref, job: Manifest | None, workload: Manifest | None) -> QueuedJob:
    """A job and its Workload, of which one may be missing."""
    queue = as_text(at(workload, "status", "admission", "clusterQueue"))
    check, placed = _check_of(spec, workload, queue), read_placed(job)
    # A job that Kueue lets run on the manager, or asks nobody a cluster for, must not run on a worker too.
    is_free = placed is not None or (check is not None and not _is_true(workload, "Admitted"))
    is_waiting = is_free and (check is None or check.get("state") == PENDING)
    return QueuedJob(
        ref,
        as_text(at(workload, "metadata", "name")),
        queue,
        _pod_sets(spec, workload),
        has_quota=_is_true(workload, "QuotaReserved") and is_waiting,
        finished_at=_time_of(workload, "Finished"),
        is_told=_has_ended(job),
        priority=int(at(workload, "spec", "priority") or 0),
        reserved_at=as_text(_condition(workload, "QuotaReserved").get("lastTransitionTime")),
        placed=placed,
        obstacle=_obstacle(job, workload) or _other_checks(workload, check),
        before=read_before(job),
        note=None if check is None else as_text(check.get("message")),
    )


def _check_of(spec: FleetSpec, workload: Manifest | None, queue: str) -> Mapping[str, object] | None:
    names = {one.name: placement_check(one) for one in carried_queues(spec)}
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    return next((one for one in states if one.get("name") == names.get(queue)), None)


def _obstacle(job: Manifest | None, workload: Manifest | None) -> str:
    if job is None:
        owner = owner_of(workload or {})
        what = f"a {owner.kind}.{owner.group}" if owner else "no job of a kind that it could carry"
        return f"its job is {what}: name the kind and its pod templates in the Fleet's spec.kubestellar.kinds"
    for assigned in map(as_map, as_list(at(workload, "status", "admission", "podSetAssignments"))):
        wanted = next((one for one in _sets(workload) if one.get("name") == assigned.get("name")), {})
        if assigned.get("count") not in (None, wanted.get("count")):
            return (
                f"Kueue reserved quota for {assigned.get('count')} of {wanted.get('count')} pods of "
                f"{assigned.get('name')}: KubeStellar carries a job whole or not at all, so do not set its least number"
            )
    return ""


def _other_checks(workload: Manifest | None, own: Mapping[str, object] | None) -> str:
    """A job runs when every check of its queue is ready, and not only ours."""
    states = [one for one in map(as_map, as_list(at(workload, "status", "admissionChecks"))) if one != own]
    names = sorted(as_text(one.get("name")) for one in states if one.get("state") != "Ready")
    return f"it waits for check {' and '.join(names)}" if names else ""


def _pod_sets(spec: FleetSpec, workload: Manifest | None) -> tuple[PodSet, ...]:
    flavors = {flavor.name: flavor for flavor in spec.flavors}
    assigned = {
        as_text(at(one, "name")): sorted({as_text(name) for name in as_map(at(one, "flavors")).values()})
        for one in as_list(at(workload, "status", "admission", "podSetAssignments"))
    }
    return tuple(_pod_set(one, flavors, assigned.get(as_text(one.get("name")), [])) for one in _sets(workload))


def _pod_set(pods: Manifest, flavors: Mapping[str, Flavor], assigned: list[str]) -> PodSet:
    pod = as_map(at(pods, "template", "spec"))
    own = [flavors[name] for name in assigned if name in flavors]
    labels = {key: value for flavor in own for key, value in flavor.node_labels.items()}
    # With the operator that Kueue fills in, because it compares what a job tolerates with what it expects.
    tolerations = tuple({"operator": "Equal", **one} for flavor in own for one in flavor.tolerations)
    return PodSet(
        as_text(pods.get("name")),
        int(pods.get("count") or 0),
        pod_amounts(pod),
        {**labels, **{key: as_text(value) for key, value in as_map(pod.get("nodeSelector")).items()}},
        (*map(as_map, as_list(pod.get("tolerations"))), *tolerations),
        required_terms(pod),
        tuple(assigned),
    )


def _sets(workload: Manifest | None) -> list[Manifest]:
    return [as_map(one) for one in as_list(at(workload, "spec", "podSets"))]


def _time_of(workload: Manifest | None, kind: str) -> datetime | None:
    """When a condition became true."""
    condition = _condition(workload, kind)
    if condition.get("status") != "True":
        return None
    try:
        return datetime.fromisoformat(as_text(condition.get("lastTransitionTime")))
    except ValueError:
        return LONG_AGO


def _has_ended(job: Manifest | None) -> bool:
    conditions = map(as_map, as_list(at(job, "status", "conditions")))
    return any(one.get("status") == "True" and one.get("type") in ENDS for one in conditions)


def _is_true(workload: Manifest | None, kind: str) -> bool:
    return _condition(workload, kind).get("status") == "True"


def _condition(workload: Manifest | None, kind: str) -> Mapping[str, object]:
    conditions = map(as_map, as_list(at(workload, "status", "conditions")))
    return next((one for one in conditions if one.get("type") == kind), {})
