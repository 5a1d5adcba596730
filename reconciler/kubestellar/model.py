"""The nouns of placement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.capacity.nodes import Node
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.snapshot.model import NOT_DOWNSYNCED, Amounts, Downsynced


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
