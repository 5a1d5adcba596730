"""The nouns of an admission check: what a user submits, and how Kueue would treat it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reconciler.objects import ClusterName, Manifest

Requests = Mapping[str, int]


class Verdict(StrEnum):
    """From the best to the worst; a document on several clusters gets the best of them."""

    ADMITTED = "admitted"
    WAITS = "waits"
    UNKNOWN = "unknown"
    NEVER = "never"
    NOT_QUEUED = "not queued"


class AdmissionReason(StrEnum):
    """Why something is not admitted: a closed list."""

    NO_LABEL = "no queue label"
    NO_INTEGRATION = "kind not managed"
    NO_NAMESPACE = "no namespace"
    NO_LOCAL_QUEUE = "no local queue"
    NO_CLUSTER_QUEUE = "no cluster queue"
    STOPPED = "queue stopped"
    INACTIVE = "queue inactive"
    NOT_SELECTED = "namespace not selected"
    NO_PRIORITY_CLASS = "no priority class"
    NOT_COVERED = "resource not covered"
    NO_FLAVOR = "no matching flavor"
    TOO_LARGE = "larger than the quota"
    NO_ROOM = "no room now"
    NOT_SENT = "not sent to workers"
    NO_WORKER = "no worker takes it"
    NOT_SEEN = "not known"


@dataclass(frozen=True, slots=True)
class PodSet:
    """Identical pods. `requests` are those of one pod, in Kueue's units; fewer than `count` may be enough."""

    name: str
    count: int
    requests: Requests
    pod: Manifest = field(default_factory=dict, repr=False)
    annotations: Mapping[str, Any] = field(default_factory=dict, repr=False)
    least: int | None = None

    def total(self, count: int) -> dict[str, int]:
        return {name: amount * count for name, amount in self.requests.items()}


@dataclass(frozen=True, slots=True)
class Submission:
    """A job of any kind. `copies` is the number of Workloads that Kueue creates for it, each with these pod sets.

    `framework` is the integration that manages it, by its name in Kueue's Configuration. `notes` are the assumptions
    that were made when reading it. `placed_on` is the cluster that a new job names itself by KubeStellar's label;
    `is_running` is a job that was read from a cluster where it runs.
    """

    kind: str
    namespace: str
    name: str
    framework: str
    queue: str
    priority_class: str
    pod_sets: tuple[PodSet, ...]
    copies: int = 1
    managed_by: str = ""
    cannot_be_sent: str = ""
    placed_on: str = ""
    is_running: bool = False
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True)
class AdmissionIssue:
    """One reason why it is not admitted, and the remedy."""

    verdict: Verdict
    reason: AdmissionReason
    problem: str
    remedy: str = ""


class RemedyKind(StrEnum):
    """The single changes that can let a job in: a closed list."""

    JOB_ENDS = "a job that ends"
    QUOTA = "more quota"
    BORROWING_LIMIT = "a higher borrowing limit"
    FLAVOR = "another flavor"
    OTHER = "a change of the job or its queue"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, verified by the quota arithmetic where `is_verified` is true."""

    kind: RemedyKind
    text: str
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """The flavors of one pod set by resource, and how many of its pods would start."""

    pod_set: str
    count: int
    flavors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one cluster; `workers` are the answers for a queue that dispatches its jobs.

    `remedies` are the smallest single changes that would let it in there.

    A job with `is_downsynced` runs on a worker that is chosen after its admission.
    """

    cluster: ClusterName
    queue: str = ""
    cluster_queue: str = ""
    issues: tuple[AdmissionIssue, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    notes: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    workers: tuple["Answer", ...] = ()
    is_downsynced: bool = False

    @property
    def verdict(self) -> Verdict:
        verdicts = [issue.verdict for issue in self.issues]
        return max(verdicts, key=_ORDER.index, default=Verdict.ADMITTED)

    @property
    def runs_on(self) -> tuple[ClusterName, ...]:
        """Return the clusters on which its pods could start now."""
        if self.verdict is not Verdict.ADMITTED or self.is_downsynced:
            return ()
        taking = tuple(worker.cluster for worker in self.workers if worker.verdict is Verdict.ADMITTED)
        return taking if self.workers else (self.cluster,)


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission, and the answers of the clusters to which it could be submitted."""

    submission: Submission
    answers: tuple[Answer, ...]

    @property
    def verdict(self) -> Verdict:
        return min((answer.verdict for answer in self.answers), key=_ORDER.index, default=Verdict.UNKNOWN)


_ORDER = tuple(Verdict)
