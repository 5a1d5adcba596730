"""What is remembered of a placement, on the job itself: where it is since when, and how it was before."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.kubestellar.model import End, Placed, Progress, QueuedJob
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.spec.kubestellar import CLUSTER_LABEL, IS_PLACED, PLACED_LABEL, DownsyncKind

ANNOTATION = "kfleet.dev/placement"
# A second annotation: the first one identifies a copy, and KubeStellar does not update the copy of a Job later.
RAN_ANNOTATION = "kfleet.dev/placement-ran"
# For good, and with the uid: the Workload that says that a job has ended can be deleted, and a manifest can be copied.
ENDED_ANNOTATION = "kfleet.dev/placement-ended"
# The copies of one kind on one cluster, or why they could not be listed.
Listed = tuple[Manifest, ...] | str
Asked = tuple[ClusterName, DownsyncKind]
_ARRIVES_WITHIN = timedelta(minutes=1)


def read_placed(job: Manifest | None) -> Placed | None:
    """Where kfleet placed a job, by its labels: without them it did not, and without them no policy selects the job.

    The annotation alone may be gone or wrong. A job that had no place by that would run on when it loses its quota.
    """
    cluster = as_text(at(job, "metadata", "labels", CLUSTER_LABEL))
    if not cluster or at(job, "metadata", "labels", PLACED_LABEL) != IS_PLACED:
        return None
    kept = _kept(job) or {}
    if kept.get("cluster") != cluster:
        return Placed(ClusterName(cluster))
    return replace(_way(cluster, kept), has_run=at(job, "metadata", "annotations", RAN_ANNOTATION) == cluster)


def read_foreign(job: Manifest | None) -> str:
    """The cluster that a job brought with it in a label which only kfleet should set."""
    return "" if read_placed(job) else as_text(at(job, "metadata", "labels", CLUSTER_LABEL))


def read_before(job: Manifest | None) -> Placed | None:
    """The place that a job had: what is left of the memory where the label has gone."""
    kept = _kept(job)
    cluster = as_text(kept.get("cluster")) if kept else ""
    return _way(cluster, kept) if kept and cluster and read_placed(job) is None else None


def read_end(job: Manifest | None) -> End | None:
    """How a job has ended, and where; None where it has not, or where the note came with a manifest of another job."""
    kept = _json(as_text(at(job, "metadata", "annotations", ENDED_ANNOTATION)))
    if not kept or kept.get("uid") != at(job, "metadata", "uid"):
        return None
    progress = Progress.FAILED if kept.get("end") == Progress.FAILED else Progress.COMPLETE
    return End(progress, ClusterName(as_text(kept.get("cluster"))))


def write_end(end: End, uid: str) -> str:
    return json.dumps({"cluster": end.cluster, "end": end.progress.value, "uid": uid}, sort_keys=True)


def read_originals(job: Manifest | None) -> Mapping[str, Mapping[str, Any]]:
    """What the pod templates said before, by their path, as far as it was changed."""
    return {path: as_map(one) for path, one in as_map((_kept(job) or {}).get("original")).items()}


def write_memory(placed: Placed, originals: Mapping[str, Mapping[str, Any]]) -> str:
    content = {
        "cluster": placed.cluster,
        "since": placed.since.isoformat(timespec="seconds") if placed.since else "",
        "moves": placed.moves,
        "left": {name: time.isoformat(timespec="seconds") for name, time in placed.left.items()},
        "original": originals,
    }
    return json.dumps({name: value for name, value in content.items() if value}, sort_keys=True)


def _way(cluster: str, kept: Mapping[str, Any]) -> Placed:
    left = {ClusterName(name): time for name, text in as_map(kept.get("left")).items() if (time := _time(text))}
    moves = kept.get("moves")
    return Placed(ClusterName(cluster), _time(kept.get("since")), max(moves, 0) if isinstance(moves, int) else 0, left)


def _kept(job: Manifest | None) -> Mapping[str, Any] | None:
    return _json(as_text(at(job, "metadata", "annotations", ANNOTATION)))


def _json(text: str) -> Mapping[str, Any] | None:
    try:
        return as_map(json.loads(text))
    except (ValueError, RecursionError):  # any client may have written it
        return None


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(as_text(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


@dataclass(frozen=True, slots=True)
class Former:
    """Where a copy of a job is; `problem` says why it could not be seen whether there is one."""

    cluster: ClusterName
    problem: str = ""


def find_former(
    jobs: Mapping[Ref, QueuedJob], kinds: Mapping[Ref, DownsyncKind], copies: Mapping[Asked, Listed], now: datetime
) -> dict[Ref, Former]:
    """A cluster that a job has left counts as having its copy until an answer shows that the copy is gone."""
    places = {key: cluster for cluster, key in _places(copies)}
    found: dict[Ref, Former] = {}
    for ref, job in jobs.items():
        seen = places.get((kinds[ref], ref.namespace, ref.name))
        answer = copies.get((job.before.cluster, kinds[ref]), ()) if job.before else ()
        if seen is not None:
            found[ref] = Former(seen)
        elif job.before and isinstance(answer, str):
            found[ref] = Former(job.before.cluster, f"it cannot be seen ({answer})")
        elif job.before and _may_arrive(job.before, now) and (job.before.cluster, kinds[ref]) in copies:
            found[ref] = Former(job.before.cluster, "it had not arrived yet when the job was taken back")
    return found


def _may_arrive(before: Placed, now: datetime) -> bool:
    """By the distance: a clock that was set back must not make a job wait for an hour."""
    return before.since is not None and abs(now - before.since) < _ARRIVES_WITHIN


def _places(copies: Mapping[Asked, Listed]) -> Iterator[tuple[ClusterName, tuple[DownsyncKind, str, str]]]:
    for (cluster, kind), listed in sorted(copies.items(), key=lambda entry: str(entry[0])):
        for copy in () if isinstance(listed, str) else listed:
            yield cluster, (kind, copy["metadata"]["namespace"], copy["metadata"]["name"])
