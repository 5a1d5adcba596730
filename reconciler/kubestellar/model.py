"""The values of placement, and what is remembered of it on the job itself: where it is since when, and how it was."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.capacity.nodes import Node
from reconciler.decoding import load_json
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.snapshot.model import NOT_DOWNSYNCED, Amounts, Downsynced
from reconciler.spec.settings import CLUSTER_LABEL, IS_PLACED, PLACED_LABEL, DownsyncKind


@dataclass(frozen=True, slots=True)
class JobPodSet:
    """Equal pods of a job: what one of them asks for, and which nodes it may use.

    `labels` are those of the flavors that Kueue assigned and of the user's own node selector, `terms` the user's
    required node affinity, of which one has to match.
    """

    name: str
    count: int
    requests: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Manifest, ...] = ()
    terms: tuple[Manifest, ...] = ()
    flavors: tuple[str, ...] = ()


class Progress(StrEnum):
    """How a job's copy on its worker is; unknown if the worker could not be observed."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in {Progress.COMPLETE, Progress.FAILED}


@dataclass(frozen=True, slots=True)
class End:
    """How a job has ended, and where."""

    progress: Progress
    cluster: ClusterName

    def __str__(self) -> str:
        return f"{self.progress} on {self.cluster}"


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a job is, and what is remembered of its way: `left` says when it left which cluster.

    `has_run` is true once all of its pods were seen ready there.
    """

    cluster: ClusterName
    since: datetime | None = None
    moves: int = 0
    left: Mapping[ClusterName, datetime] = field(default_factory=dict)
    has_run: bool = False


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job of a queue that KubeStellar serves, with the Workload that Kueue made of it.

    `finished_at` is when Kueue learnt of its end, and with `is_reported` the job itself on the manager says so too.
    `end` is what kfleet noted of it: such a job is never placed again, also where its Workload was made anew.
    `preflight_issue` says why it cannot be downsynced as it is; `note` is what its check says now, None if it has
    none. `before` is the place that it had, where it has none now. `former` is where a copy of it is still on its way
    out, or may be, if that is unknown: `former_problem` says why. `is_there` is true where its copy was seen.
    """

    ref: Ref
    workload: str
    queue: str
    pod_sets: tuple[JobPodSet, ...]
    has_quota: bool
    finished_at: datetime | None = None
    is_reported: bool = False
    priority: int = 0
    reserved_at: str = ""
    placed: Placed | None = None
    progress: Progress = Progress.UNKNOWN
    preflight_issue: str = ""
    note: str | None = None
    before: Placed | None = None
    former: ClusterName | None = None
    former_problem: str = ""
    end: End | None = None
    is_there: bool = False

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None

    @property
    def is_settled(self) -> bool:
        """Whether its end is known to Kueue, and to its user."""
        return self.is_finished and self.is_reported


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of a cluster with what all their pods ask for (`other`); `problem` says why they were not seen."""

    nodes: tuple[Node, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ObservedPlacements:
    """Everything that placement stands on, at one moment.

    `originals` are the manifests behind the jobs, and `workloads` those of Kueue, by which a plan says what to write;
    `ends` are the statuses of copies that have ended.
    `inactive` are checks of ours that Kueue does not take yet; `downsynced` is what is still on workers, and in queues,
    that have nothing to do with KubeStellar any more.
    """

    now: datetime
    jobs: tuple[QueuedJob, ...] = ()
    nodes: Mapping[ClusterName, ClusterNodes] = field(default_factory=dict)
    originals: Mapping[Ref, Manifest] = field(default_factory=dict, repr=False)
    workloads: Mapping[Ref, Manifest] = field(default_factory=dict, repr=False)
    inactive: Mapping[str, Manifest] = field(default_factory=dict, repr=False)
    ends: Mapping[Ref, Manifest] = field(default_factory=dict, repr=False)
    gaps: tuple[Gap, ...] = ()
    downsynced: Downsynced = NOT_DOWNSYNCED


class Verb(StrEnum):
    """What happens to a job; a check is activated, so that Kueue lets jobs wait for it.

    A job that moves is withdrawn first, and placed when its copy is gone.
    """

    PLACE = "place"
    MOVE = "move"
    WITHDRAW = "withdraw"
    FINISH = "finish"
    WAIT = "wait"
    STAY = "stay"
    ACTIVATE = "activate"


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a job, and why. `cluster` is where it goes or is; `placed` is what is to be remembered of it."""

    job: QueuedJob
    verb: Verb
    why: str
    cluster: ClusterName | None = None
    placed: Placed | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One server-side apply, on a path of the manager."""

    path: str
    manifest: Manifest = field(repr=False)


@dataclass(frozen=True, slots=True)
class PlacementStep:
    """What happens to a job, or to the check that jobs wait for."""

    ref: Ref
    verb: Verb
    why: str
    cluster: ClusterName | None = None
    writes: tuple[Write, ...] = ()

    def __str__(self) -> str:
        name = "/".join(part for part in (self.ref.namespace, self.ref.name) if part)
        target = f" -> {self.cluster}" if self.cluster and self.verb is Verb.PLACE else ""
        return f"{self.verb} {name}{target}: {self.why}"


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
        return as_map(load_json(text))
    except ValueError:  # any client may have written it
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
