"""The nouns of effects. An effect is about one queue, or about one workload."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Gap, Ref
from reconciler.plan.model import Action, Change, Plan
from reconciler.quantity import Quantity

WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE})


class Impact(StrEnum):
    """What happens to a workload, the most harmful first."""

    EVICTED = "evicted"
    PREEMPTED = "preempted"
    STRANDED = "stranded"
    NEVER = "never admitted"
    RECLAIMABLE = "reclaimable"
    STARTS = "starts"
    POSSIBLE = "possible again"

    @property
    def is_harm(self) -> bool:
        return self not in {Impact.STARTS, Impact.POSSIBLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEffect:
    """One workload that a plan affects. `by` are the queues that may reclaim its quota."""

    cluster: ClusterName
    namespace: str
    name: str
    kind: str
    queue: str
    tenant: str
    impact: Impact
    why: str
    by: tuple[str, ...] = ()

    def __str__(self) -> str:
        who = f"{self.cluster}/{self.kind}/{self.namespace}/{self.name}"
        team = f", tenant {self.tenant}" if self.tenant else ""
        return f"{who} (queue {self.queue}{team}): {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEffect:
    """One flavor and resource of a queue before and after. None is a queue or a flavor that does not exist.

    `most` is what the queue could use if all others were idle: its own quota and what it may borrow. A larger job is
    never admitted. `free` is the largest job that would start at once.
    """

    cluster: ClusterName
    queue: str
    tenants: tuple[str, ...]
    flavor: str
    resource: str
    nominal_before: Quantity | None
    nominal_after: Quantity | None
    most_before: Quantity
    most_after: Quantity
    lent_before: Quantity
    lent_after: Quantity
    free_before: Quantity
    free_after: Quantity
    in_use: Quantity

    @property
    def is_loss(self) -> bool:
        return self.most_after < self.most_before

    @property
    def is_above(self) -> bool:
        """Whether more is in use than the queue will have of its own."""
        return self.in_use > (self.nominal_after or Quantity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The effects of a plan on the clusters that were observed. `unknown` has a gap for each of the others."""

    quotas: tuple[QuotaEffect, ...] = ()
    workloads: tuple[WorkloadEffect, ...] = ()
    unknown: tuple[Gap, ...] = ()

    def count(self, impact: Impact) -> int:
        return sum(one.impact is impact for one in self.workloads)

    def __bool__(self) -> bool:
        return bool(self.quotas or self.workloads or self.unknown)


NO_EFFECTS = Effects()


def may_have_effects(plan: Plan) -> bool:
    """Whether a plan writes or deletes anything on which the admission of jobs depends."""
    return any(is_relevant(change) for change in plan.changes)


def is_relevant(change: Change) -> bool:
    """A change of Kueue's Configuration counts too: its rules of admission may be others afterwards."""
    is_written = change.action in WRITES or change.action is Action.DELETE
    return is_written and (change.rollout is not None or is_scheduled(change.ref))


def is_scheduled(ref: Ref) -> bool:
    """Whether the admission of jobs depends on the object."""
    return ref.group == GROUP or (ref.group, ref.kind) == ("", "Namespace")
