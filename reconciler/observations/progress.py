"""How the copy of a job is, by the status that its own controller wrote on the worker."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.placement import Progress
from reconciler.placement.memory import ANNOTATION
from reconciler.spec.kubestellar import CLUSTER_LABEL, KNOWN_KINDS, CarriedKind, policy_name

ENDS = {
    "Complete": Progress.COMPLETE,
    "Completed": Progress.COMPLETE,
    "Succeeded": Progress.COMPLETE,
    "Failed": Progress.FAILED,
}
_SIGNS_OF_LIFE = ("failed", "succeeded", "terminating", "restarts")
_POLICY_LABEL = "status.kubestellar.io/binding-policy"


def read_progress(kind: CarriedKind, copy: Manifest | None, pods: int) -> Progress:
    """Of a copy that has not arrived nothing runs; of a kind that nobody knows, only its end can be told."""
    status = as_map(at(copy, "status"))
    true = {as_text(one.get("type")) for one in _conditions(status) if one.get("status") == "True"}
    if end := next((progress for word, progress in ENDS.items() if word in true), None):
        return end
    if "Running" in true or _is_ready(copy, status, pods) or _has_run(status, true):
        return Progress.RUNNING
    return Progress.WAITING if copy is None or kind in KNOWN_KINDS else Progress.UNKNOWN


def current_copy(job: Manifest, copy: Manifest | None) -> Manifest | None:
    """Not the copy of an earlier placement, or of an earlier job of this name, which is still on its way out."""
    mine, theirs = (at(one, "metadata", "annotations", ANNOTATION) for one in (job, copy))
    return None if mine and theirs and mine != theirs else copy


def read_combined(kind: CarriedKind, job: Manifest, reports: Iterable[Manifest], pods: int) -> Progress | None:
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
