"""The nouns of a story: what happened to a job, where it is now and why, and what would let it in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.admission.model import Remedy
from reconciler.objects import ClusterName, Gap, Manifest


class State(StrEnum):
    """Where a job is: the first word of every answer."""

    NOT_QUEUED = "not queued"
    NEVER = "never"
    WAITS = "waits"
    UNKNOWN = "unknown"
    INACTIVE = "inactive"
    ADMITTED = "admitted"
    RUNS = "runs"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoryReason:
    """The state of a job and the reason in one sentence: the first line of the answer."""

    state: State
    text: str

    def __str__(self) -> str:
        return f"{self.state}: {self.text}"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a pending workload in its ClusterQueue, from 1, and the number of pending workloads there."""

    queue: str
    position: int
    total: int


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One event of the story. `time` is as the API server wrote it; empty if it is not recorded."""

    time: str
    cluster: ClusterName
    what: str


@dataclass(frozen=True, slots=True)
class QueuedAhead:
    """A workload that is ahead in the same ClusterQueue."""

    position: int
    name: str
    priority: int
    requests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The state of an AdmissionCheck of a workload, with the message of its controller."""

    name: str
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What a worker does with its copy of a job."""

    cluster: ClusterName
    reason: StoryReason
    message: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A job and its Workload on one cluster, of which one may be missing."""

    cluster: ClusterName
    job: Manifest | None = field(default=None, repr=False)
    workload: Manifest | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The whole answer. `message` is what Kueue itself says, word by word; `flavors` explains it per flavor."""

    cluster: ClusterName
    title: str
    reason: StoryReason
    workload: str = ""
    local_queue: str = ""
    cluster_queue: str = ""
    dispatch: str = "none"
    runs_on: ClusterName | None = None
    place: Place | None = None
    ahead: tuple[QueuedAhead, ...] = ()
    message: str = ""
    flavors: tuple[str, ...] = ()
    checks: tuple[CheckAnswer, ...] = ()
    workers: tuple[WorkerAnswer, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    steps: tuple[StoryStep, ...] = ()
    gaps: tuple[Gap, ...] = ()
