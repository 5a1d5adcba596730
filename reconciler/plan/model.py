"""The plan as values. It is complete: who applies it reads nothing else and decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from reconciler.credential import TokenWish
from reconciler.objects import ClusterName, Gap, Manifest, Obstacle, Ref
from reconciler.ownership.applyset import Inventory, SetName
from reconciler.ownership.memory import Addresses
from reconciler.plan.placements import PlacementStep
from reconciler.rollout import Rollout


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    KEEP = "keep"
    HOLD = "hold"


class Reason(StrEnum):
    """Why an object gets its action: a closed list."""

    MISSING = "not in the cluster"
    CHANGED = "differs"
    ADOPTED = "exists already and nobody claims it"
    UNRECORDED = "as wanted, but not recorded as kfleet's"
    TAKEN = "fields are taken from another manager"
    IMMUTABLE = "a field that cannot change in place changed"
    GONE = "no longer in the fleet"
    RELEASED = "no longer in the fleet; kfleet lets go of it and does not delete it"
    SAME = "as wanted"
    IN_USE = "still in use"
    UNSEEN = "the look at this cluster was incomplete"
    ENDING = "is being deleted; it is made again when it is gone"
    GOING = "no longer in the fleet, and is being deleted"
    SUSPENDED = "the fleet or the cluster is suspended"
    LEAVING = "goes when nothing runs there any more"
    MOVED = "its worker is not the cluster it was"
    UNFINISHED = "written, but Kueue was not seen to run with it"


class Cause(StrEnum):
    """Where a difference comes from: the cluster, git, or what was observed."""

    DRIFT = "drift"
    SPEC = "spec"
    OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field before and after, masked in a Secret; `owner` is another manager that the field is taken from."""

    path: str
    old: Any
    new: Any
    cause: Cause
    owner: str = ""


class Change(NamedTuple):
    """What happens to one object. A tuple for the same reason as a prediction.

    `uid` is of the live object that the plan saw; `seen` and `wanted` are short names for what it said and for what it
    should say, so that a plan can be told from another one without showing any content. A queue that kfleet had stopped
    to delete it, and that stays after all, `is_resumed`. `token` is one that has to be
    issued before the object can be written. With a `rollout` the object is Kueue's Configuration, which belongs to
    whoever installed Kueue: it is no member of the fleet.
    """

    ref: Ref
    action: Action
    reason: Reason
    wave: int
    fields: tuple[FieldChange, ...] = ()
    manifest: Manifest | None = None
    uid: str = ""
    seen: str = ""
    wanted: str = ""
    notes: tuple[str, ...] = ()
    is_static: bool = False
    is_forced: bool = False
    is_drained: bool = False
    is_taken_over: bool = False
    is_unshared: bool = False
    is_resumed: bool = False
    token: TokenWish | None = None
    rollout: Rollout | None = None

    def __repr__(self) -> str:
        """Without the content, which may be secret."""
        return f"Change({self.ref}, {self.action}, {self.reason}, fields={self.fields}, notes={self.notes})"


class Refused(StrEnum):
    """Why nothing is written: a closed list."""

    CONTESTED = "another manager owns fields that the fleet sets"
    FOREIGN = "belongs to another applyset"
    UNADOPTED = "exists already, and the policy does not let kfleet take it over"
    FIXED = "a field that cannot change in place changed, and replacing would lose something"
    INVALID = "the server refuses the object"
    EMPTY = "the fleet has no objects at all, but the clusters hold some"
    TOO_MANY = "more deletes than the policy allows"
    MOVED = "the cluster is not the one it was"
    CYCLE = "no order of writing keeps the cohorts free of a cycle"
    UNREADY = "the manager's Kueue would give up workers that run jobs"
    CONFIGURATION = "Kueue would not start with this Configuration"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard's no. Without a cluster it is about the whole fleet; with a ref, about one object of the cluster."""

    reason: Refused
    problem: str
    cluster: ClusterName | None = None
    ref: Ref | None = None

    def __str__(self) -> str:
        where = str(self.ref or self.cluster or "fleet")
        return f"{where}: {self.reason}: {self.problem}"


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What happens to one cluster, and what apply must know about it.

    After a look that was not complete, the inventory may not be narrowed: what was not seen may still be there. Nor is
    it touched where the cluster is suspended.
    `fleet` and `addresses` are what the manager remembers of all clusters: their uids, and how workers are reached.
    A cluster that has left the spec `is_ending` when all that the fleet has there goes, the inventory at last.
    `unserved` are kinds of the inventory that its server does not know now, so that nobody could look for them.
    """

    name: ClusterName
    uid: str
    changes: tuple[Change, ...]
    set_name: SetName
    inventory: Inventory
    is_complete: bool = True
    fleet: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)
    is_ending: bool = False
    unserved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A cluster on its way out that cannot go yet. It is no failure: the next run looks again."""

    cluster: ClusterName
    why: str

    def __str__(self) -> str:
        return f"{self.cluster}: {self.why}"


@dataclass(frozen=True, slots=True)
class Plan:
    fleet: str
    revision: str
    clusters: tuple[ClusterPlan, ...]
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    placements: tuple[PlacementStep, ...] = ()

    @property
    def has_work(self) -> bool:
        return bool(self.writes or self.placements)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for cluster in self.clusters for change in cluster.changes)

    @property
    def writes(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.action not in {Action.KEEP, Action.HOLD})

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)
