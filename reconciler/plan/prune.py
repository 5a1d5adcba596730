"""Decides what happens to objects of the fleet that are no longer in the spec.

Decision: a queue to prune is stopped first, and deleted when no workload holds its quota. A queue in use takes no new
jobs and waits until its running workloads have ended. Only drainOnDelete on the queue evicts them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.kubestellar.model import Verb
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at, quantity_at
from reconciler.kueue.references import REFERRERS, Name, referrers
from reconciler.kueue.workloads import HELD, holding_count, queue_of
from reconciler.multikueue.credentials import is_login
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.blocked import why_jobs_end_with
from reconciler.plan.model import Action, Cause, Change, FieldChange, Plan, Reason, finalizer_notes
from reconciler.plan.record import seen_name
from reconciler.render.model import Leaving, wave_of
from reconciler.render.queues import DRAIN
from reconciler.spec.settings import ADMISSION_GROUP, API_GROUP, GUARD, POLICY_KIND
from reconciler.state.applyset import is_member, kind_key
from reconciler.state.model import ClusterView
from reconciler.state.queues import FIELD, HOLD, is_queue, is_stopped

# Deleting one of these deletes everything in it, including jobs of other users.
RELEASED_KINDS = {"Namespace", "CustomResourceDefinition"}
MOST_NAMED = 3
_PLACING = {Verb.PLACE, Verb.MOVE, Verb.WITHDRAW}
_GOING = {Reason.GONE, Reason.STOPPED, Reason.IN_USE}

Referrers = Mapping[Name, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _PruneCandidates:
    """The fleet's objects on a cluster that are no longer desired. `drained` are queues whose workloads are evicted."""

    view: ClusterView
    live: Mapping[Ref, Manifest]
    drained: frozenset[str]


def members_of(view: ClusterView) -> dict[Ref, Manifest]:
    """The objects of a cluster that belong to the fleet."""
    own = view.set_name.id
    return {ref: live for ref, live in view.live.items() if is_member(own, live)}


def count_members(view: ClusterView) -> int:
    own = view.set_name.id
    return sum(is_member(own, live) for live in view.live.values())


def plan_prune(
    view: ClusterView, wanted: Iterable[Ref], after: Iterable[Manifest], leaving: Iterable[Leaving] = ()
) -> Iterator[Change]:
    """Plan the pruning of a cluster.

    `after` are the Kueue objects that stay, in their future state. Objects that they refer to must stay too.
    """
    removals = {entry.cluster: entry for entry in leaving}
    kept = set(wanted)
    live = {ref: live for ref, live in view.live.items() if ref not in kept and is_member(view.set_name.id, live)}
    if not live:
        return
    ending = [ref for ref, one in live.items() if one["metadata"].get("deletionTimestamp")]
    # Reported, and so kept in the inventory until it is gone: the next run must know that it may still exist.
    yield from (pruned(ref, live[ref], Action.HOLD, Reason.GOING, *finalizer_notes(live[ref])) for ref in ending)
    left = _PruneCandidates(view, live, frozenset(ref.name for ref, one in live.items() if _is_drained(ref, one)))
    changes = {
        ref: _waiting(ref, one, view, removals.get(view.name)) or _decide(ref, one, left)
        for ref, one in live.items()
        if ref not in ending
    }
    others = [one for one in after if not _is_evicted(one, changes)]
    changes = _with_users(changes, live, referrers(others))
    decided = _with_referred(changes, live, [*others, *(live[ref] for ref in ending)])
    yield from _with_removals(decided, live, removals)


def _is_evicted(manifest: Manifest, changes: Mapping[Ref, Change]) -> bool:
    """Whether this is a workload that no longer uses its flavors when they are deleted, because it is evicted."""
    if manifest.get("kind") != "Workload":
        return False
    return any(change.is_drained and ref.name == queue_of(manifest) for ref, change in changes.items())


def _waiting(ref: Ref, live: Manifest, view: ClusterView, leaving: Leaving | None) -> Change | None:
    """Hold an object that a worker which cannot be removed yet still needs.

    Without its LocalQueue a held queue cannot be observed. Without its login the manager loses the running jobs.
    """
    if leaving is None:
        return None
    is_way_in = ref.kind == "LocalQueue" and at(live, "spec", "clusterQueue") in leaving.queues
    is_needed = leaving.is_whole or is_way_in or is_login(ref, view.set_name.fleet) or _is_serving(ref, leaving)
    reason = Reason.RELEASING if ref.kind in RELEASED_KINDS else Reason.LEAVING
    return pruned(ref, live, Action.HOLD, reason) if is_needed else None


def _with_removals(
    changes: Mapping[Ref, Change], live: Mapping[Ref, Manifest], removals: Mapping[ClusterName, Leaving]
) -> Iterator[Change]:
    """A worker that stays in a MultiKueueConfig keeps its MultiKueueCluster and login.

    The plan reports once, for the worker, what the removal waits for.
    """
    linked = [one for ref, one in live.items() if ref.kind == "MultiKueueCluster" and ref.name in removals]
    names = {("MultiKueueCluster", one["metadata"]["name"]) for one in linked} | referrers(linked).keys()
    for ref, change in changes.items():
        is_kept = change.reason is Reason.IN_USE and (ref.kind, ref.name) in names
        yield change._replace(reason=Reason.LEAVING, notes=()) if is_kept else change


def _is_serving(ref: Ref, leaving: Leaving) -> bool:
    """Whether KubeStellar needs the object for jobs on workers: their BindingPolicy, or what every policy needs."""
    is_other = ref.kind != POLICY_KIND or leaving.policies is None or ref.name in leaving.policies
    is_guard = (ref.group, ref.name) == (ADMISSION_GROUP, GUARD)
    return leaving.is_serving and (is_guard or (ref.group == API_GROUP and is_other))


def _with_users(changes: Mapping[Ref, Change], live: Mapping[Ref, Manifest], others: Referrers) -> dict[Ref, Change]:
    """Hold every object that an object outside the prune candidates refers to, and stop no such queue."""
    return {
        ref: _referred(ref, live[ref], others[ref.kind, ref.name])
        if change.reason in _GOING and (ref.kind, ref.name) in others
        else change
        for ref, change in changes.items()
    }


def _with_referred(
    changes: Mapping[Ref, Change], live: Mapping[Ref, Manifest], stays: list[Manifest]
) -> Mapping[Ref, Change]:
    """Hold every object that a staying object refers to. Held objects have references too, so this recurs."""
    staying = [live[ref] for ref, change in changes.items() if change.action is not Action.DELETE]
    named = referrers([*stays, *staying])
    held = {
        ref: _referred(ref, live[ref], named[ref.kind, ref.name])
        for ref, change in changes.items()
        if change.action is Action.DELETE and (ref.kind, ref.name) in named
    }
    return _with_referred({**changes, **held}, live, stays) if held else changes


def _referred(ref: Ref, live: Manifest, who: tuple[str, ...]) -> Change:
    """Hold an object that others still refer to. A queue that kfleet had stopped takes jobs again."""
    more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
    note = f"{', '.join(sorted(who)[:MOST_NAMED])}{more} still refer{'s' if len(who) == 1 else ''} to it"
    if is_stopped(live):
        reopened = pruned(ref, live, Action.UPDATE, Reason.REOPENED, note)
        return reopened._replace(fields=(FieldChange(f"spec.{FIELD}", live["spec"].get(FIELD), None, Cause.SPEC),))
    return pruned(ref, live, Action.HOLD, Reason.IN_USE, note)


def _decide(ref: Ref, live: Manifest, left: _PruneCandidates) -> Change:
    if left.view.gaps or _is_unlisted(ref, left.view):
        return pruned(ref, live, Action.HOLD, Reason.UNSEEN)
    if ref.kind in RELEASED_KINDS:
        return pruned(ref, live, Action.UPDATE, Reason.RELEASED)
    if is_queue(ref) and (count := holding_count(live)):
        return _decide_used(ref, live, left, count)
    return pruned(ref, live, Action.DELETE, Reason.GONE, *_pending(ref, live))


def _decide_used(ref: Ref, live: Manifest, left: _PruneCandidates, count: int) -> Change:
    queue = ref.name if ref.kind == "ClusterQueue" else as_text(at(live, "spec", "clusterQueue"))
    if queue in left.drained:
        drained = pruned(ref, live, Action.DELETE, Reason.GONE, f"{count} workloads are evicted first")
        return drained._replace(is_drained=True)
    if ref.kind == "LocalQueue" and (why := why_jobs_end_with(live, left.view)):
        return pruned(ref, live, Action.HOLD, Reason.IN_USE, f"{why}; it is deleted when they have ended")
    note = f"{count} workloads hold its quota; it takes no new ones, and is deleted when they have ended"
    note += "; to evict them, set drainOnDelete before you remove the queue" if ref.kind == "ClusterQueue" else ""
    policy = at(live, "spec", FIELD)
    if policy in HELD:
        return pruned(ref, live, Action.HOLD, Reason.IN_USE, note)
    stopped = pruned(ref, live, Action.UPDATE, Reason.STOPPED, note)
    return stopped._replace(fields=(FieldChange(f"spec.{FIELD}", policy, HOLD, Cause.SPEC),))


def _pending(ref: Ref, live: Manifest) -> Iterator[str]:
    """Pending workloads do not keep a queue from being deleted, so the plan reports them here."""
    if is_queue(ref) and (count := int(at(live, "status", "pendingWorkloads") or 0)):
        yield f"{count} workloads are pending in it; they stay pending until they get another queue"


def _is_unlisted(ref: Ref, view: ClusterView) -> bool:
    """Whether a kind that may refer to the object exists but could not be listed.

    One that the fleet has objects of exists also where the server does not name it for a while.
    """
    kinds = {(GROUP, kind) for kind in REFERRERS.get(ref.kind, ())}
    known = view.served.keys() | {kind_key(text) for text in (view.inventory.kinds if view.inventory else ())}
    return any(kind in known and kind not in view.listed for kind in kinds)


def _is_drained(ref: Ref, live: Manifest) -> bool:
    is_asked = (live["metadata"].get("annotations") or {}).get(DRAIN) == "true"
    return ref.kind == "ClusterQueue" and is_asked and not live["metadata"].get("deletionTimestamp")


def pruned(ref: Ref, live: Manifest, action: Action, reason: Reason, *notes: str) -> Change:
    """A change of an object that is no longer desired."""
    metadata = live["metadata"]
    return Change(
        ref,
        action,
        reason,
        wave_of(ref),
        manifest=_bare(live),
        uid=metadata.get("uid", ""),
        seen=seen_name(ref.kind, live),
        notes=notes,
    )


def _bare(live: Manifest) -> Manifest:
    """Only the identity. It is enough to delete the object; applied, it removes every field that kfleet owns."""
    identity = {name: live["metadata"][name] for name in ("name", "namespace") if live["metadata"].get(name)}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": identity}


def takes_away(plan: Plan) -> bool:
    """Whether a plan takes something away, or lets a job run where its former copy may still be."""
    return any(map(_takes_away, plan.writes)) or any(step.verb in _PLACING for step in plan.placements)


def _takes_away(change: Change) -> bool:
    if change.action in {Action.DELETE, Action.REPLACE}:
        return True
    is_of_kueue = change.ref.group == GROUP
    return is_of_kueue and change.action is Action.UPDATE and not all(map(_only_adds, change.fields))


def _only_adds(field: FieldChange) -> bool:
    """Whether a field is new or an amount grows. Any other change takes something away from a user."""
    if field.old is None:
        return True
    before, after = quantity_at(field.old), quantity_at(field.new)
    return before is not None and after is not None and before <= after
