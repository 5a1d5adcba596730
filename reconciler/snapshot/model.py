"""The observations beside the objects of the fleet, from which kfleet derives values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.kueue_config.model import SeenConfiguration
from reconciler.multikueue.model import FormerJobs, Links, WorkerRemovals
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import Quantity
from reconciler.spec.kubestellar import PolicyShape

Amounts = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True, order=True)
class FlavorKey:
    """A flavor on one cluster. It has a capacity."""

    cluster: ClusterName
    flavor: str


Capacities = Mapping[FlavorKey, Amounts]


class Freshness(StrEnum):
    FRESH = "fresh"
    STALE = "stale"


@dataclass(frozen=True, slots=True, order=True)
class PoolKey:
    """The identity of a pool: the servers of its message bus, the parent subject of the pools, and its name."""

    bus: str
    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A resource pool and its current capacity. A stale pool stays in the list, without capacity."""

    place: PoolKey
    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    freshness: Freshness = Freshness.FRESH


@dataclass(frozen=True, slots=True, order=True)
class UsageKey:
    """The usage of a flavor by a queue."""

    cluster: ClusterName
    queue: str
    flavor: str


Usage = Mapping[UsageKey, Amounts]


@dataclass(frozen=True, slots=True)
class ClosingQueue:
    """A live queue of the manager that goes over to KubeStellar, or that leaves it.

    A job of KubeStellar is never Admitted on the manager: without its check it would start there, beside its copy.
    `downsynced` counts the jobs that are on workers, or whose copy is not known to be gone; `reserving` those that hold
    quota. One that `is_sending` goes over from MultiKueue, which knows by itself what runs on its workers.
    """

    manifest: Manifest = field(repr=False)
    downsynced: int = 0
    reserving: int = 0
    is_sending: bool = False

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Downsynced:
    """The copies of jobs that KubeStellar still has on workers to which no queue dispatches any longer.

    `occupied` has each worker that may still have copies, with the reason; a worker that is not in it has none.
    `problem` is why not even the manager's jobs were observed: then everything must stay unchanged. `placed` are all
    clusters with unfinished jobs.
    """

    occupied: Mapping[ClusterName, str] = field(default_factory=dict)
    closing: tuple[ClosingQueue, ...] = ()
    problem: str = ""
    placed: frozenset[ClusterName] = frozenset()


NOT_DOWNSYNCED = Downsynced()

# The `what` of a Gap for a cluster's live queues and flavors, from which usage and former pools are read.
LIVE_QUEUES = "usage of queues"


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of a run. A missing entry was not observed; it never means that the thing does not exist.

    `pools` are in the order in which queues try them; None if kfleet did not listen. `policy_shape` is the form of a
    BindingPolicy that the manager's KubeStellar accepts. `former_jobs` are those of a manager that another cluster is
    now, or none.
    """

    capacities: Capacities = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    pools: tuple[Pool, ...] | None = None
    usage: Usage = field(default_factory=dict)
    links: Links | None = None
    removals: WorkerRemovals | None = None
    configurations: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    policy_shape: PolicyShape | None = None
    downsynced: Downsynced = NOT_DOWNSYNCED
    former_jobs: FormerJobs = field(default_factory=FormerJobs)

    @property
    def unlisted(self) -> frozenset[ClusterName]:
        """Clusters whose live queues could not be listed."""
        return frozenset(gap.cluster for gap in self.gaps if gap.what == LIVE_QUEUES)


NOTHING_SEEN = Observations()
