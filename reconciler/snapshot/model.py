"""What was observed: the live objects of the clusters, and the observations from which kfleet derives values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.kueue_config.model import SeenConfiguration
from reconciler.multikueue.model import FormerJobs, Links, WorkerRemovals
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import Quantity
from reconciler.spec.enums import Role
from reconciler.spec.settings import PolicyShape

Amounts = Mapping[str, Quantity]
KindKey = tuple[str, str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    """The live objects of one cluster, by group and kind. A kind that is missing here was not observed.

    Objects of Kueue are in the API version that the server returned. `kueue` is the tag of Kueue's image and
    `kubernetes` the version of the API server; each is empty if it could not be read. `configuration` is the text of
    Kueue's own Configuration. `namespace` is the namespace of Kueue.
    """

    name: ClusterName
    role: Role
    is_reachable: bool = True
    kubernetes: str = ""
    kueue: str = ""
    configuration: str = ""
    namespace: str = "kueue-system"
    objects: Mapping[KindKey, tuple[Manifest, ...]] = field(default_factory=dict, repr=False)
    gaps: tuple[Gap, ...] = ()

    def has(self, group: str, kind: str) -> bool:
        """Whether the kind was observed completely. Only then is an object that is missing not there."""
        return (group, kind) in self.objects

    def of(self, group: str, kind: str) -> tuple[Manifest, ...]:
        return self.objects.get((group, kind), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetObjects:
    """The live objects of all clusters of a fleet, observed at one time."""

    taken_at: datetime
    manager: ClusterName | None = None
    clusters: Mapping[ClusterName, ClusterObjects] = field(default_factory=dict)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(gap for cluster in self.clusters.values() for gap in cluster.gaps)

    def reachable(self) -> Iterable[ClusterObjects]:
        return (cluster for cluster in self.clusters.values() if cluster.is_reachable)
