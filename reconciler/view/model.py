"""The nouns of the view. None is a value that was not observed; an empty tuple or 0 was observed.

Each name is the name in schemas/view.json, written with underscores; `is_` is left out there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.objects import ClusterName
from reconciler.quantity import Quantity
from reconciler.snapshot.model import Amounts, FlavorKey
from reconciler.spec.enums import CapacitySource, Dispatch, Role


class JobState(StrEnum):
    PENDING = "pending"
    RESERVED = "reserved"
    ADMITTED = "admitted"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    EVICTED = "evicted"
    INACTIVE = "inactive"
    UNKNOWN = "unknown"

    @property
    def is_queued(self) -> bool:
        """Whether it waits for quota, and so has a place in its queue."""
        return self in {JobState.PENDING, JobState.EVICTED}

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for quota or, with quota, for a check or a worker."""
        return self.is_queued or self is JobState.RESERVED

    @property
    def is_started(self) -> bool:
        return self in {JobState.ADMITTED, JobState.RUNNING}

    @property
    def is_over(self) -> bool:
        return self in {JobState.FINISHED, JobState.FAILED}


class DrainState(StrEnum):
    NO = "no"
    DRAINING = "draining"
    DRAINED = "drained"


class PoolState(StrEnum):
    FRESH = "fresh"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ViewGap:
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class FleetGap:
    cluster: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a plan says about one cluster: how many objects it changes, and how many because of manual edits."""

    changes: int
    drift: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEntry:
    name: ClusterName
    role: Role
    is_reachable: bool
    kubernetes: str
    kueue: str
    drain: DrainState | None
    is_in_sync: bool | None
    changes: int | None
    drift: int | None
    unhealthy: tuple[str, ...] | None
    gaps: tuple[ViewGap, ...]
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class QuotaShare:
    """Borrowed quota and the other side: a queue of the cohort, or the cohort itself if `queue` is empty."""

    queue: str
    cohort: str
    amount: Quantity


@dataclass(frozen=True, slots=True)
class Backing:
    """What is behind a flavor on a cluster."""

    nodes: int | None
    pools: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResource:
    flavor: str
    resource: str
    nominal: Quantity
    used: Quantity | None
    reserved: Quantity | None
    borrowed: Quantity | None
    lent: Quantity | None
    borrowing_limit: Quantity | None
    lending_limit: Quantity | None
    borrowed_from: tuple[QuotaShare, ...] | None
    lent_to: tuple[QuotaShare, ...] | None
    backing: Backing


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    id: str
    cluster: ClusterName
    name: str
    cohort: str
    cohort_path: tuple[str, ...]
    stopped: str
    is_active: bool | None
    inactive_reason: str
    tenants: tuple[str, ...]
    local_queues: tuple[str, ...] | None
    dispatch: Dispatch
    strategy: str
    pending: int | None
    reserving: int | None
    admitted: int | None
    resources: tuple[QueueResource, ...] | None


@dataclass(frozen=True, slots=True)
class CohortResource:
    flavor: str
    resource: str
    nominal: Quantity
    used: Quantity | None


@dataclass(frozen=True, slots=True)
class CohortEntry:
    cluster: ClusterName
    name: str
    parent: str
    queues: tuple[str, ...]
    resources: tuple[CohortResource, ...] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class JoinedResource:
    resource: str
    nominal: Quantity | None
    used: Quantity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedQueue:
    """The queues of one name over all clusters; `manager` is empty if no cluster dispatches their jobs."""

    name: str
    clusters: tuple[ClusterName, ...]
    manager: str
    pending: int | None
    running: int | None
    resources: tuple[JoinedResource, ...]


@dataclass(frozen=True, slots=True)
class JobCopy:
    cluster: ClusterName
    workload: str
    state: JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEntry:
    """A Workload and its job. `has_quota` is whether it is admitted where it was submitted, whatever its copies do.

    `reason` is in the words of Kueue, `why` is the first line of `kfleet why`, which may name other jobs.
    """

    id: str
    cluster: ClusterName
    namespace: str
    kind: str
    name: str
    workload: str
    owner: str
    tenant: str
    queue: str
    cluster_queue: str
    priority: int | None
    requested: Amounts
    state: JobState
    since: datetime | None
    created: datetime | None
    position: int | None
    reason: str
    why: str = ""
    runs_on: str | None
    copies: tuple[JobCopy, ...] | None
    flavors: Mapping[str, str]
    has_quota: bool = field(default=False, metadata={"is_internal": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEntry:
    """A source of capacity. `feeds` are the flavors whose quota is derived from it.

    `becomes` is None for a source that was never seen: the quota of its flavors is then not known from here.
    """

    name: str
    source: CapacitySource
    cluster: str
    flavor: str
    state: PoolState
    age: int | None
    counted: Amounts | None
    becomes: tuple[str, ...] | None
    feeds: frozenset[FlavorKey] = field(default=frozenset(), metadata={"is_internal": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantEntry:
    name: str
    namespaces: tuple[str, ...]
    queues: tuple[str, ...]
    pending: int | None
    running: int | None
    used: Amounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """The state of a fleet at one time. `pools` is None if capacity was not observed."""

    fleet: str
    revision: str
    taken_at: datetime
    clusters: tuple[ClusterEntry, ...]
    queues: tuple[QueueEntry, ...]
    cohorts: tuple[CohortEntry, ...]
    joined: tuple[JoinedQueue, ...]
    jobs: tuple[JobEntry, ...]
    pools: tuple[PoolEntry, ...] | None
    tenants: tuple[TenantEntry, ...]
    gaps: tuple[FleetGap, ...]
