"""The nouns of scheduling: workloads and queues as Kueue's scheduler sees them, and what it then does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from reconciler.admission.fit import Group
from reconciler.admission.model import PodSet
from reconciler.objects import Manifest
from reconciler.scheduling.usage import Held, Pair, UsageNode


class PreemptionReason(StrEnum):
    """Kueue's own reasons for a preemption."""

    IN_QUEUE = "InClusterQueue"
    RECLAIM = "InCohortReclamation"
    FAIR = "InCohortFairSharing"
    BORROW = "InCohortReclaimWhileBorrowing"


class FlavorMode(IntEnum):
    """How a flavor could be assigned, the best last."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedWorkload:
    """A workload that waits or holds quota. Those of one queue with the same `shape` have the same chances.

    One that `is_tried` has been tried in vain before.
    """

    uid: str
    queue: str
    priority: int
    queued_at: datetime
    manifest: Manifest = field(repr=False)
    pod_sets: tuple[PodSet, ...] = field(repr=False)
    shape: str = field(repr=False)
    held: Held = field(default_factory=dict)
    reserved_at: float = 0.0
    is_tried: bool = False

    @property
    def turn(self) -> tuple[int, datetime, str]:
        """The order in which a queue tries its workloads."""
        return -self.priority, self.queued_at, self.uid

    @property
    def candidate_order(self) -> tuple[int, float, str]:
        """The order in which workloads are preempted: the least important and latest ones first."""
        return self.priority, -self.reserved_at, self.uid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueueRules:
    """What a ClusterQueue says about flavors, order and preemption."""

    node: UsageNode
    groups: tuple[Group, ...]
    is_strict: bool
    within_queue: str
    reclaim: str
    can_borrow_to_preempt: bool
    borrow_threshold: int | None
    tries_next_to_borrow: bool
    tries_next_to_preempt: bool
    prefers_preemption: bool
    is_all_topology: bool

    @property
    def name(self) -> str:
        return self.node.name.name

    def group_of(self, resource_name: str) -> Group | None:
        return next((group for group in self.groups if resource_name in group.covered), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """How Kueue is configured. Without `is_fair`, the classical order and preemption apply."""

    is_fair: bool = False
    has_final_share: bool = True
    has_initial_share: bool = True
    prefers_non_borrowing: bool = True
    reclaims_own_quota: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """A workload to preempt, and why Kueue may."""

    workload: QueuedWorkload
    reason: PreemptionReason


@dataclass(frozen=True, slots=True)
class FlavorChoice:
    """The flavors that a workload would get. `needing` are the pairs that only a preemption could free."""

    mode: FlavorMode = FlavorMode.NO_FIT
    usage: Held = field(default_factory=dict)
    needing: frozenset[Pair] = frozenset()
    borrowing: int = 0
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who loses its quota, to whom, and why."""

    workload: QueuedWorkload
    by: QueuedWorkload
    reason: PreemptionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What the scheduler did until nothing moved, by uid. Without `is_settled` it did not come to an end."""

    admitted: Mapping[str, Held] = field(default_factory=dict)
    preempted: Mapping[str, Preemption] = field(default_factory=dict)
    is_settled: bool = True
