"""How the copy of a job is, by the status that its own controller wrote on the worker."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reconciler.kubestellar.model import (
    ANNOTATION,
    End,
    JobPodSet,
    Progress,
    QueuedJob,
    read_before,
    read_end,
    read_foreign,
    read_placed,
)
from reconciler.kueue.reading import as_list, as_map, as_text, at, pod_amounts
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.spec.model import FleetSpec
from reconciler.spec.settings import CLUSTER_LABEL, KNOWN_KINDS, DownsyncKind, check_of, policy_name

ENDS = {
    "Complete": Progress.COMPLETE,
    "Completed": Progress.COMPLETE,
    "Succeeded": Progress.COMPLETE,
    "Failed": Progress.FAILED,
}
_SIGNS_OF_LIFE = ("failed", "succeeded", "terminating", "restarts")
_POLICY_LABEL = "status.kubestellar.io/binding-policy"
PENDING = "Pending"
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def read_progress(kind: DownsyncKind, copy: Manifest | None, pods: int) -> Progress:
    """A copy that has not arrived runs nothing; for a kind without known status fields only the end can be read."""
    status = as_map(at(copy, "status"))
    true = {as_text(one.get("type")) for one in _conditions(status) if one.get("status") == "True"}
    if end := next((progress for word, progress in ENDS.items() if word in true), None):
        return end
    if "Running" in true or _is_ready(copy, status, pods) or _has_run(status, true):
        return Progress.RUNNING
    return Progress.WAITING if copy is None or kind in KNOWN_KINDS else Progress.UNKNOWN


def read_end_of_copy(kind: DownsyncKind, copy: Manifest, pods: int) -> End | None:
    """How a copy has ended that kfleet had placed and taken back: its end may have come in that moment."""
    kept = read_before({"metadata": {"annotations": at(copy, "metadata", "annotations")}})
    progress = read_progress(kind, copy, pods)
    return End(progress, kept.cluster) if kept and progress.is_over else None


def current_copy(job: Manifest, copy: Manifest | None) -> Manifest | None:
    """Not the copy of an earlier placement, or of an earlier job of this name, which is still on its way out."""
    mine, theirs = (at(one, "metadata", "annotations", ANNOTATION) for one in (job, copy))
    return None if mine and theirs and mine != theirs else copy


def read_combined(kind: DownsyncKind, job: Manifest, reports: Iterable[Manifest], pods: int) -> Progress | None:
    """The same by a CombinedStatus: a table of the clusters that a policy took a job to, with the status it has there.

    It is named after the uids of both. One of an earlier job of this name, or of a cluster that the job has left, may
    still be there, and must not tell the end of this one.
    """
    uid = as_text(at(job, "metadata", "uid"))
    policy = policy_name(ClusterName(as_text(at(job, "metadata", "labels", CLUSTER_LABEL))))
    for report in reports:
        is_of_job = as_text(at(report, "metadata", "name")).startswith(f"{uid}.")
        if is_of_job and at(report, "metadata", "labels", _POLICY_LABEL) == policy:
            for status in _statuses(report):
                return read_progress(kind, {**job, "status": status}, pods)
    return None


def _statuses(report: Manifest) -> Iterator[Mapping[str, Any]]:
    for result in map(as_map, as_list(report.get("results"))):
        for row in map(as_map, as_list(result.get("rows"))):
            for column in map(as_map, as_list(row.get("columns"))):
                if column.get("type") == "Object":
                    yield as_map(column.get("object"))


def _is_ready(copy: Manifest | None, status: Mapping[str, Any], pods: int) -> bool:
    """A Job counts its pods, a JobSet its jobs."""
    parts = [as_map(one) for one in as_list(status.get("replicatedJobsStatus"))]
    wanted = sum(_count(as_map(one).get("replicas", 1)) for one in as_list(at(copy, "spec", "replicatedJobs")))
    ready = sum(_count(part.get("ready")) + _count(part.get("succeeded")) for part in parts or [status])
    return 0 < (wanted if parts else pods) <= ready


def _has_run(status: Mapping[str, Any], true: set[str]) -> bool:
    """Whether pods of it have ended or are made anew. Then it had its nodes, and what ails it is not their lack."""
    parts = [status, *map(as_map, as_list(status.get("replicatedJobsStatus")))]
    return "Restarting" in true or any(_count(part.get(name)) for part in parts for name in _SIGNS_OF_LIFE)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _conditions(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [as_map(one) for one in as_list(status.get("conditions"))]


@dataclass(frozen=True, slots=True)
class JobOwner:
    group: str
    kind: str
    name: str
    uid: str


def owner_of(workload: Manifest) -> JobOwner | None:
    """The job that a Workload was made for; one that a user wrote by hand, or one for a pod group, has none."""
    owners = [as_map(one) for one in as_list(at(workload, "metadata", "ownerReferences"))]
    found = next((one for one in owners if one.get("controller") is True), None)
    if found is None:
        return None
    group, slash, _ = as_text(found.get("apiVersion")).partition("/")
    return JobOwner(group if slash else "", *(as_text(found.get(key)) for key in ("kind", "name", "uid")))


def read_job(
    spec: FleetSpec, ref: Ref, job: Manifest | None, workload: Manifest | None, live: Iterable[Manifest] = ()
) -> QueuedJob:
    """A job and its Workload, of which one may be missing. `live` are the ResourceFlavors on the manager."""
    queue = as_text(at(workload, "status", "admission", "clusterQueue"))
    check, placed = _check_of(workload, queue), read_placed(job)
    # A job that Kueue runs on the manager, or for which no check asks for a cluster, must not run on a worker too.
    is_free = placed is not None or (check is not None and not _is_true(workload, "Admitted"))
    is_waiting = is_free and (check is None or check.get("state") == PENDING)
    return QueuedJob(
        ref,
        as_text(at(workload, "metadata", "name")),
        queue,
        _pod_sets({**_live_flavors(live), **_flavors(spec)}, workload),
        has_quota=_is_true(workload, "QuotaReserved") and is_waiting,
        finished_at=_time_of(workload, "Finished"),
        is_reported=_has_ended(job),
        priority=int(at(workload, "spec", "priority") or 0),
        reserved_at=as_text(_condition(workload, "QuotaReserved").get("lastTransitionTime")),
        placed=placed,
        preflight_issue=_preflight_issue(job, workload) or _other_checks(workload, check),
        before=read_before(job),
        end=read_end(job),
        note=None if check is None else as_text(check.get("message")),
    )


def _check_of(workload: Manifest | None, queue: str) -> Mapping[str, object] | None:
    """Ours, also of a queue that the spec does not dispatch by KubeStellar any more."""
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    return next((one for one in states if one.get("name") == check_of(queue)), None)


def _preflight_issue(job: Manifest | None, workload: Manifest | None) -> str:
    if job is None:
        owner = owner_of(workload or {})
        what = f"a {owner.kind}.{owner.group}" if owner else "no job of a kind that it could carry"
        return f"its job is {what}: name the kind and its pod templates in the Fleet's spec.kubestellar.kinds"
    if brought := read_foreign(job):
        return f"it has the label {CLUSTER_LABEL}={brought}, which only kfleet sets: take it off"
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


@dataclass(frozen=True, slots=True)
class _FlavorNodes:
    """How pods get to the nodes of a flavor."""

    labels: Mapping[str, str]
    tolerations: tuple[Manifest, ...]


def _flavors(spec: FleetSpec) -> Mapping[str, _FlavorNodes]:
    return {flavor.name: _FlavorNodes(flavor.node_labels, flavor.tolerations) for flavor in spec.flavors}


def _live_flavors(live: Iterable[Manifest]) -> Mapping[str, _FlavorNodes]:
    """A flavor that is no longer in git: jobs with its quota still belong on its nodes."""
    found = {}
    for one in live:
        labels = {key: as_text(value) for key, value in as_map(at(one, "spec", "nodeLabels")).items()}
        tolerations = tuple(map(as_map, as_list(at(one, "spec", "tolerations"))))
        found[as_text(at(one, "metadata", "name"))] = _FlavorNodes(labels, tolerations)
    return found


def _pod_sets(flavors: Mapping[str, _FlavorNodes], workload: Manifest | None) -> tuple[JobPodSet, ...]:
    assigned = {
        as_text(at(one, "name")): sorted({as_text(name) for name in as_map(at(one, "flavors")).values()})
        for one in as_list(at(workload, "status", "admission", "podSetAssignments"))
    }
    return tuple(_pod_set(one, flavors, assigned.get(as_text(one.get("name")), [])) for one in _sets(workload))


def _pod_set(pods: Manifest, flavors: Mapping[str, _FlavorNodes], assigned: list[str]) -> JobPodSet:
    pod = as_map(at(pods, "template", "spec"))
    own = [flavors[name] for name in assigned if name in flavors]
    labels = {key: value for flavor in own for key, value in flavor.labels.items()}
    # With the operator that Kueue fills in, because it compares what a job tolerates with what it expects.
    tolerations = tuple({"operator": "Equal", **one} for flavor in own for one in flavor.tolerations)
    return JobPodSet(
        name=as_text(pods.get("name")),
        count=int(pods.get("count") or 0),
        requests=pod_amounts(pod),
        labels={**labels, **{key: as_text(value) for key, value in as_map(pod.get("nodeSelector")).items()}},
        tolerations=(*map(as_map, as_list(pod.get("tolerations"))), *tolerations),
        terms=_required_terms(pod),
        flavors=tuple(assigned),
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


def _required_terms(pod_spec: Manifest) -> tuple[Manifest, ...]:
    """The terms of a required node affinity; a pod needs one of them."""
    required = at(pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(as_map(term) for term in as_list(at(required, "nodeSelectorTerms")))
