"""Which part of a plan a twin plays. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Refused
from reconciler.simulate.restore import CHECK, RESTORED, played_check

WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE})
# Guards that an operator can confirm. A simulation is there to see what is confirmed.
CONFIRMABLE = frozenset({Refused.TOO_MANY, Refused.DISRUPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedChange:
    """The plan of one cluster for its twin. `configuration` is a new Configuration of Kueue, if the plan has one."""

    plan: Plan
    configuration: str = field(default="", repr=False)
    notes: tuple[str, ...] = ()


def touched_clusters(plan: Plan) -> tuple[ClusterName, ...]:
    """The clusters on which a plan changes what decides about admission."""
    return tuple(one.name for one in plan.clusters if any(_is_played(change) for change in one.changes))


def why_refused(plan: Plan, cluster: ClusterName) -> str:
    """Why nothing would be written to a cluster, whatever an operator confirms."""
    kept = _without_confirmable(plan)
    if not kept.is_refused(cluster):
        return ""
    return "; ".join(str(one) for one in kept.refusals if one.ref is None and one.cluster in {None, cluster})


def played_change(plan: Plan, cluster: ClusterName) -> PlayedChange:
    part = next((one for one in plan.clusters if one.name == cluster), None)
    if part is None:
        return PlayedChange(plan=replace(plan, clusters=(), refusals=(), placements=()))
    rollout = next((change.rollout for change in part.changes if change.rollout and _is_written(change)), None)
    changes = tuple(_for_twin(change) for change in part.changes if _is_played(change) and not change.rollout)
    # Objects that the twin does not have are not gone from the fleet, so its inventory is not narrowed.
    played = replace(part, changes=changes, is_complete=False, is_ending=False, digests=part.inventory.digests)
    confirmed = _without_confirmable(plan)
    return PlayedChange(
        plan=replace(confirmed, clusters=(played,), placements=()),
        configuration=rollout.text if rollout else "",
        notes=tuple(_notes(plan, part)),
    )


def _without_confirmable(plan: Plan) -> Plan:
    return replace(plan, refusals=tuple(one for one in plan.refusals if one.reason not in CONFIRMABLE))


def _is_written(change: Change) -> bool:
    return change.action in WRITES or change.action is Action.DELETE


def _is_played(change: Change) -> bool:
    if not _is_written(change):
        return False
    if change.rollout is not None:
        return True
    if change.ref.group == GROUP and change.ref.kind in RESTORED:
        return change.ref.kind != CHECK or change.action is not Action.UPDATE
    return (change.ref.group, change.ref.kind) == ("", "Namespace") and change.action in WRITES


def _for_twin(change: Change) -> Change:
    is_check = change.ref.kind == CHECK and change.manifest is not None and change.action in WRITES
    return change._replace(manifest=played_check(change.manifest or {})) if is_check else change


def _notes(plan: Plan, part: ClusterPlan) -> Iterator[str]:
    yield from (
        f"played as if confirmed: {one}"
        for one in plan.refusals
        if one.reason in CONFIRMABLE and one.cluster == part.name
    )
    left = sorted({change.ref.kind for change in part.changes if _is_written(change) and not _is_played(change)})
    if left:
        yield f"not played, because a twin has nothing that acts on it: {', '.join(left)}"
