"""The nouns of a simulation. A twin is a sandbox cluster with the objects of one cluster of the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.objects import ClusterName, Gap
from reconciler.quantity import Quantity


class Fate(StrEnum):
    """What the change does to a workload, the most harmful first."""

    PREEMPTED = "preempted"
    EVICTED = "evicted"
    RESTARTED = "restarted"
    WAITS = "still pending"
    ADMITTED = "admitted"
    RUNS = "keeps running"
    ENDED = "ended"

    @property
    def is_harm(self) -> bool:
        return self in {Fate.PREEMPTED, Fate.EVICTED, Fate.RESTARTED}

    @property
    def has_held(self) -> bool:
        """Whether such a workload held quota before the change."""
        return self.is_harm or self in {Fate.RUNS, Fate.ENDED}

    @property
    def holds(self) -> bool:
        """Whether it holds quota after the change."""
        return self in {Fate.RESTARTED, Fate.ADMITTED, Fate.RUNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedWorkload:
    """One workload before and after the change. `why` is what Kueue said, and `by` the workload that preempted it."""

    cluster: ClusterName
    namespace: str
    name: str
    kind: str
    queue: str
    tenant: str
    fate: Fate
    held_before: Mapping[str, Quantity] = field(default_factory=dict)
    held_after: Mapping[str, Quantity] = field(default_factory=dict)
    reason: str = ""
    why: str = ""
    by: str = ""
    is_submitted: bool = False

    def __str__(self) -> str:
        team = f", tenant {self.tenant}" if self.tenant else ""
        return f"{self.cluster}/{self.kind}/{self.namespace}/{self.name} (queue {self.queue}{team})"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAfter:
    """When the submitted jobs start. `ends` are running jobs that ended first here, in this order.

    `latest` is the longest remaining time of them, None if one of them does not say how long it runs.
    `waiting` are submitted jobs that still wait.
    """

    ends: tuple[str, ...] = ()
    latest: timedelta | None = None
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCluster:
    """One cluster as its twin played it.

    `release` is the Kueue that runs on the cluster, empty if that is not known, and `played` the one of the twin.
    `moved` are workloads that changed before the change was made; `seconds` is the time from the change until nothing
    moved. It is not `is_settled` if the time ran out before.
    """

    name: ClusterName
    release: str
    played: str
    workloads: tuple[PlayedWorkload, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    start: StartAfter | None = None
    is_settled: bool = True
    seconds: float = 0

    @property
    def is_exact(self) -> bool:
        return self.release.removeprefix("v") == self.played


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamTotals:
    """What a tenant has before and after; without a tenant it is a namespace."""

    name: str
    is_tenant: bool
    running: tuple[int, int]
    pending: tuple[int, int]
    held: Mapping[str, tuple[Quantity, Quantity]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """`unknown` has a gap for each touched cluster that could not be played. `seconds` is the time of everything."""

    base: str
    head: str
    taken_at: datetime
    clusters: tuple[PlayedCluster, ...] = ()
    unknown: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0

    @property
    def workloads(self) -> tuple[PlayedWorkload, ...]:
        return tuple(one for cluster in self.clusters for one in cluster.workloads)

    @property
    def is_settled(self) -> bool:
        return all(cluster.is_settled for cluster in self.clusters)
