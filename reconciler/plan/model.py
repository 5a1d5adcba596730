"""The plan and its outcome as values. A plan is complete: apply reads nothing else and decides nothing."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from reconciler.kubestellar.model import PlacementStep
from reconciler.kueue_config.model import Rollout
from reconciler.objects import ClusterName, Gap, Manifest, PreflightIssue, Ref, TokenRequestSpec
from reconciler.spec.files import SpecSource
from reconciler.state.applyset import Addresses, Inventory, SetName


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
    ADOPTED = "already exists and is adopted"
    UNRECORDED = "in sync, but not recorded as owned by kfleet"
    TAKEN = "takes fields over from another field manager"
    IMMUTABLE = "an immutable field changed"
    GONE = "no longer in the fleet"
    RELEASED = "no longer in the fleet; kfleet releases it and does not delete it"
    SAME = "in sync"
    STOPPED = "no longer in the fleet, but still in use: it takes no new jobs until it can be deleted"
    REOPENED = "no longer in the fleet, but still in use by others: it takes jobs again"
    IN_USE = "still in use"
    UNSEEN = "this cluster was not observed completely"
    ENDING = "is being deleted; kfleet creates it again afterwards"
    GOING = "no longer in the fleet, and is being deleted"
    SUSPENDED = "the fleet or the cluster is suspended"
    LEAVING = "is removed when nothing runs there any longer"
    RELEASING = "is released, and not deleted, when nothing runs there any longer"
    MOVED = "its worker is not the same cluster as before"
    BLOCKED = "refers to an object that is refused"
    WRITTEN_BACK = "another field manager reverts every write"
    UNFINISHED = "written, but Kueue was not observed running with it"


def finalizer_notes(live: Manifest) -> tuple[str, ...]:
    """What the deletion of an object waits for: each finalizer is removed by the controller that set it."""
    finalizers = live["metadata"].get("finalizers") or ()
    return (f"finalizers: {', '.join(finalizers)}",) if finalizers else ()


class Cause(StrEnum):
    """The origin of a difference: the cluster, git, or an observation."""

    DRIFT = "drift"
    SPEC = "spec"
    OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field before and after, masked in a Secret. `owner` is the field manager that the field is taken from."""

    path: str
    old: Any
    new: Any
    cause: Cause
    owner: str = ""


class Change(NamedTuple):
    """What happens to one object. It is a tuple for the same reason as a prediction.

    `uid` is that of the live object that was observed. `seen` and `wanted` are digests of the live and of the desired
    content: two plans can be compared by them without showing any content. `is_resumed` marks a queue that kfleet had
    stopped in order to delete it, and that stays after all. `token` must be issued before the object can be written.
    `removed` are fields that other field managers set and that git does not contain, each as its keys in the fieldsV1
    tree. With a `rollout` the object is Kueue's Configuration. It belongs to the installation of Kueue and is not a
    member of the fleet.
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
    removed: tuple[tuple[str, ...], ...] = ()
    token: TokenRequestSpec | None = None
    rollout: Rollout | None = None

    @property
    def is_awaited_by_workers(self) -> bool:
        """Whether this change of the manager, which is held, has to be made before workers lose objects."""
        is_unseen_config = self.reason is Reason.UNSEEN and self.ref.kind == "MultiKueueConfig"
        return self.reason in {Reason.SUSPENDED, Reason.WRITTEN_BACK} or is_unseen_config

    @property
    def is_unfinished_removal(self) -> bool:
        """Whether an object that must be deleted, for good or to be created again, still exists after this plan."""
        if self.action is Action.HOLD and self.reason is Reason.IN_USE:
            return not self.wanted
        return self.reason in {Reason.ENDING, Reason.GOING, Reason.STOPPED, Reason.REOPENED}

    def __repr__(self) -> str:
        """Omit the content: it may be secret."""
        return f"Change({self.ref}, {self.action}, {self.reason}, fields={self.fields}, notes={self.notes})"


class Refused(StrEnum):
    """Why kfleet writes nothing, or deletes nothing (TOO_MANY): a closed list."""

    CONTESTED = "another field manager owns fields that the fleet sets"
    FOREIGN = "belongs to another ApplySet"
    UNADOPTED = "already exists, and the policy does not let kfleet adopt it"
    FIXED = "an immutable field changed, and the object cannot be replaced without a loss"
    INVALID = "the API server rejects the object"
    EMPTY = "the fleet has no objects, but its clusters hold some"
    TOO_MANY = "more deletes than the policy allows"
    MOVED = "the cluster is not the same as before"
    SOURCE = "the fleet was applied from another source"
    HOME = "the fleet's lease and ledger would move to another cluster"
    SHARED = "another cluster of the fleet is the same API server"
    MANAGED = "another manager cluster still has jobs on workers of the fleet"
    CYCLE = "no write order avoids a cycle of cohorts"
    UNREADY = "the manager's Kueue would lose workers that run jobs"
    CONFIGURATION = "Kueue would not start with this Configuration"
    SCOPE = "the selection leaves out what it needs"
    DISRUPTION = "the plan evicts more workloads than the policy allows"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a guard refuses. Without a cluster it concerns the whole fleet; with a ref it concerns only that object."""

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

    `is_complete` is false after an incomplete observation: the inventory must not be narrowed, because objects that
    were not observed may still exist. It is also false where the cluster is suspended.
    The manager's inventory stores `fleet` and `addresses` for all clusters: their uids, and how workers are reached.
    `digests` prove to the next run that kfleet wrote these addresses. `source` is the source of the fleet. `home` is
    the cluster that holds the lease of a fleet without a manager.
    `is_ending` is set for a cluster that was removed from the spec when this plan deletes all objects of the fleet
    there; the inventory is deleted last.
    `unserved` are kinds of the inventory that the API server does not serve now, so they could not be listed.
    """

    name: ClusterName
    uid: str
    changes: tuple[Change, ...]
    set_name: SetName
    inventory: Inventory
    is_complete: bool = True
    fleet: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)
    digests: frozenset[str] = frozenset()
    source: SpecSource | None = None
    home: str = ""
    is_ending: bool = False
    unserved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A cluster that is being removed and must still wait. This is not a failure: the next run checks it again."""

    cluster: ClusterName
    why: str

    def __str__(self) -> str:
        return f"{self.cluster}: {self.why}"


@dataclass(frozen=True, slots=True)
class Plan:
    """`contacted` are clusters that are not in git: kfleet reaches them by the access that an earlier apply stored."""

    fleet: str
    revision: str
    clusters: tuple[ClusterPlan, ...]
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    preflight_issues: tuple[PreflightIssue, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    placements: tuple[PlacementStep, ...] = ()
    contacted: tuple[ClusterName, ...] = ()

    @property
    def has_work(self) -> bool:
        return bool(self.writes or self.placements)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for cluster in self.clusters for change in cluster.changes)

    @property
    def writes(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.action not in {Action.KEEP, Action.HOLD})

    def is_refused(self, cluster: ClusterName) -> bool:
        """Whether nothing may be written to a cluster. A refusal about one object does not stop the others."""
        whole = [refusal for refusal in self.refusals if refusal.ref is None]
        refused = {refusal.cluster for refusal in whole if refusal.reason is not Refused.TOO_MANY}
        return not refused.isdisjoint({None, cluster})

    def keeps_all(self, cluster: ClusterName) -> bool:
        """Whether nothing may be deleted from a cluster, because the plan has too many deletes."""
        kept = {refusal.cluster for refusal in self.refusals if refusal.reason is Refused.TOO_MANY}
        return not kept.isdisjoint({None, cluster})

    def why_workers_keep(self, manager: ClusterName) -> str:
        """Why nothing may be deleted on workers: a manager that is not changed as planned may still need it."""
        part = next((entry for entry in self.clusters if entry.name == manager), None)
        if part is None:
            return f"{manager} could not be observed"
        if self.is_refused(manager):
            return f"the changes of {manager} were refused"
        refusal = next((refusal for refusal in self.refusals if refusal.cluster == manager), None)
        if refusal is not None:
            return f"{refusal.ref or f'the deletion of objects of {manager}'} is refused"
        held = next((change for change in part.changes if change.is_awaited_by_workers), None)
        return f"{held.ref} is held: {held.reason}" if held else ""

    @property
    def unfinished_removals(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.is_unfinished_removal)

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one change. `problem` is empty if it was done; `attempts` counts its requests.

    `is_waiting` means that nothing failed: the change waits for something else, and the next run continues.
    `is_tokenless` means that a worker issued no token for a Secret.
    """

    ref: Ref
    action: Action
    problem: str = ""
    attempts: int = 1
    is_waiting: bool = False
    is_tokenless: bool = False

    @property
    def is_done(self) -> bool:
        return not self.problem


# Receives each outcome as soon as it is known, to show the progress.
Tell = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """The outcome of a cluster's part of the plan. `problem` is set if not even the inventory could be written."""

    name: ClusterName
    outcomes: tuple[Outcome, ...] = ()
    problem: str = ""

    @property
    def is_done(self) -> bool:
        return not self.problem and all(outcome.is_done for outcome in self.outcomes)

    @property
    def may_delete(self) -> bool:
        """Whether all writes that deletes depend on are done. The token of a worker is not one of them."""
        return not self.problem and all(outcome.is_done or outcome.is_tokenless for outcome in self.outcomes)


def outcome_record(outcomes: Iterable[ClusterOutcome]) -> list[dict[str, Any]]:
    """The outcome of a plan as JSON values."""
    return [
        {
            "cluster": cluster.name,
            "done": cluster.is_done,
            "problem": cluster.problem,
            "changes": [
                {
                    "object": str(entry.ref),
                    "action": entry.action.value,
                    "done": entry.is_done,
                    "problem": entry.problem,
                    "attempts": entry.attempts,
                }
                for entry in cluster.outcomes
            ],
        }
        for cluster in outcomes
    ]
