"""Decides what happens to objects of the fleet that the spec does not name any more."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.desired import Leaving
from reconciler.desired.credentials import is_login
from reconciler.desired.order import wave_of
from reconciler.desired.queues import DRAIN
from reconciler.kueue.reading import at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest, Ref
from reconciler.ownership.applyset import MEMBER_LABEL
from reconciler.ownership.content import content
from reconciler.ownership.fields import has_applied
from reconciler.plan.fields import FIELD_MANAGER, digest
from reconciler.plan.model import Action, Change, Reason
from reconciler.plan.references import Name, references
from reconciler.prediction import ClusterView

# Deleting one of these deletes everything in it, jobs of other people included.
RELEASED_KINDS = {"Namespace", "CustomResourceDefinition"}


def members_of(view: ClusterView) -> dict[Ref, Manifest]:
    """The objects of a cluster that are the fleet's own."""
    own = view.set_name.id
    return {ref: live for ref, live in view.live.items() if _is_member(own, live)}


def count_members(view: ClusterView) -> int:
    own = view.set_name.id
    return sum(_is_member(own, live) for live in view.live.values())


def _is_member(own: str, live: Manifest) -> bool:
    """The label alone does not tell: MultiKueue copies jobs to workers, with all of their labels."""
    is_labelled = (live["metadata"].get("labels") or {}).get(MEMBER_LABEL) == own
    return is_labelled and has_applied(live, FIELD_MANAGER)


def decide_leftovers(
    view: ClusterView, wanted: Iterable[Ref], after: Iterable[Manifest], leaving: Leaving | None = None
) -> Iterator[Change]:
    """`after` are the Kueue objects that stay, as they will be: what they refer to has to stay too."""
    kept = set(wanted)
    leftovers = {ref: live for ref, live in view.live.items() if ref not in kept and _is_member(view.set_name.id, live)}
    if not leftovers:
        return
    ending = [ref for ref, live in leftovers.items() if live["metadata"].get("deletionTimestamp")]
    # Said, and so kept in the inventory until it is gone: the next run has to know that it may still be in the way.
    yield from (_change(ref, leftovers[ref], Action.HOLD, Reason.GOING) for ref in ending)
    changes = {
        ref: _waiting(ref, live, view, leaving) or _decide(ref, live, view)
        for ref, live in leftovers.items()
        if ref not in ending
    }
    stays = references([*after, *(_canonical(leftovers[ref]) for ref in ending)])
    yield from _with_referred(changes, leftovers, stays).values()


def _waiting(ref: Ref, live: Manifest, view: ClusterView, leaving: Leaving | None) -> Change | None:
    """Held where it belongs to something that cannot go yet.

    Without its LocalQueue a held queue cannot be watched, and without its login the manager loses the jobs that run.
    """
    if leaving is None:
        return None
    is_way_in = ref.kind == "LocalQueue" and at(live, "spec", "clusterQueue") in leaving.queues
    is_needed = leaving.is_whole or is_way_in or is_login(ref, view.set_name.fleet)
    return _change(ref, live, Action.HOLD, Reason.LEAVING) if is_needed else None


def _with_referred(
    changes: Mapping[Ref, Change], leftovers: Mapping[Ref, Manifest], stays: frozenset[Name]
) -> Mapping[Ref, Change]:
    """With everything held that something which stays refers to; what is held for that has references of its own."""
    staying = [_canonical(leftovers[ref]) for ref, change in changes.items() if change.action is Action.HOLD]
    named = stays | references(staying)
    note = "something that stays still refers to it"
    held = {
        ref: _change(ref, leftovers[ref], Action.HOLD, Reason.IN_USE, note=note)
        for ref, change in changes.items()
        if change.action is Action.DELETE and (ref.kind, ref.name) in named
    }
    return _with_referred({**changes, **held}, leftovers, stays) if held else changes


def _canonical(live: Manifest) -> Manifest:
    return to_canonical(live).manifest


def _decide(ref: Ref, live: Manifest, view: ClusterView) -> Change:
    if view.gaps:
        return _change(ref, live, Action.HOLD, Reason.UNSEEN)
    if ref.kind in RELEASED_KINDS:
        return _change(ref, live, Action.UPDATE, Reason.RELEASED)
    if ref.kind == "ClusterQueue" and (count := _reserving(live)):
        if (live["metadata"].get("annotations") or {}).get(DRAIN) != "true":
            note = f"{count} workloads hold its quota; they may end, or set drainOnDelete before the queue is removed"
            return _change(ref, live, Action.HOLD, Reason.IN_USE, note=note)
        drained = _change(ref, live, Action.DELETE, Reason.GONE, note=f"{count} workloads are evicted first")
        return drained._replace(is_drained=True)
    return _change(ref, live, Action.DELETE, Reason.GONE)


def _change(ref: Ref, live: Manifest, action: Action, reason: Reason, *, note: str = "") -> Change:
    metadata = live["metadata"]
    return Change(
        ref,
        action,
        reason,
        wave_of(ref),
        manifest=_bare(live),
        uid=metadata.get("uid", ""),
        seen=digest(content(live)),
        notes=(note,) if note else (),
    )


def _bare(live: Manifest) -> Manifest:
    """Only the identity: enough to delete it; applied, it takes off everything that kfleet put on the object."""
    identity = {name: live["metadata"][name] for name in ("name", "namespace") if live["metadata"].get(name)}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": identity}


def _reserving(live: Manifest) -> int:
    status = live.get("status") or {}
    return max(int(status.get("reservingWorkloads") or 0), int(status.get("admittedWorkloads") or 0))
