"""Decides what happens to one desired object."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.kueue.kinds import NEWEST
from reconciler.kueue.structure import changed_immutable
from reconciler.kueue.workloads import holding_count
from reconciler.objects import FIELD_MANAGER, Manifest, Ref, TokenRequestSpec
from reconciler.plan.blocked import (
    blocked_by_former_copies,
    blocked_by_missing_observation,
    blocked_by_running_workloads,
    rejected_by_multikueue,
    why_jobs_end_with,
)
from reconciler.plan.fields import abandoned, changed_fields, path_text, removal
from reconciler.plan.model import Action, Cause, Change, FieldChange, Reason, Refusal, Refused, finalizer_notes
from reconciler.plan.record import TO_BE_ISSUED, masked_problem, seen_name, wanted_name
from reconciler.render.model import wave_of
from reconciler.spec.enums import Adopt, Conflicts, Policy
from reconciler.state.applyset import MEMBER_LABEL, is_labelled
from reconciler.state.claimants import claimant, is_former_tool
from reconciler.state.managed_fields import applied_by, owners_at
from reconciler.state.manual_edits import (
    CLIENT_SIDE,
    is_covered,
    is_manual_manager,
    predecessor_of,
    shared_fields,
    unnamed_marks,
    without,
)
from reconciler.state.model import ClusterView, Conflict, Prediction
from reconciler.state.queues import is_stopped
from reconciler.state.tracking import WANTED

# These can be replaced without a loss: nothing runs in them, and pending workloads find them again by name.
_REPLACEABLE = {"LocalQueue", "AdmissionCheck"}


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The inputs of a decision about an object, in addition to its prediction.

    `dispatching` are the checks of MultiKueue that the fleet wants on the cluster.
    """

    policy: Policy
    view: ClusterView
    referred: frozenset[tuple[str, str]]
    manager: ClusterView | None = None
    dispatching: frozenset[str] = frozenset()


def decide(prediction: Prediction, context: PlanContext) -> Change | Refusal:
    if prediction.entry.held:
        return _change(prediction, Action.HOLD, Reason.UNSEEN, prediction.entry.held)
    if prediction.live is None:
        return _create(prediction, context)
    if prediction.live["metadata"].get("deletionTimestamp"):
        return _change(prediction, Action.HOLD, Reason.ENDING, *finalizer_notes(prediction.live))
    if prediction.is_settled:
        return _change(prediction, Action.KEEP, Reason.SAME)
    return (
        _refuse_foreign_owner(prediction, context)
        or _replace(prediction, context)
        or (_refuse_invalid(prediction) if prediction.problem else None)
        or _keep_equal(prediction, context)
        or _refuse_contested(prediction, context)
        or _blocked(prediction, context)
        or _leave_unseen(prediction)
        or _update(prediction, context)
    )


def _create(prediction: Prediction, context: PlanContext) -> Change | Refusal:
    if any(gap.kind == (prediction.ref.group, prediction.ref.kind) for gap in context.view.gaps):
        # The kind could not be listed: the object may exist and belong to another owner.
        return _change(prediction, Action.HOLD, Reason.UNSEEN)
    if _is_ending(Ref(prediction.ref.cluster, "", "Namespace", "", prediction.ref.namespace), context.view):
        return _change(prediction, Action.HOLD, Reason.ENDING, "its namespace is being deleted")
    if prediction.problem:
        return _refuse_invalid(prediction)
    return _change(prediction, Action.CREATE, Reason.MISSING)


def _is_ending(ref: Ref, view: ClusterView) -> bool:
    live = view.live.get(ref)
    return live is not None and bool(live["metadata"].get("deletionTimestamp"))


def _refuse_invalid(prediction: Prediction) -> Refusal:
    ref = prediction.ref
    problem = masked_problem(ref.kind, prediction.problem, prediction.status)
    return Refusal(Refused.INVALID, problem, ref.cluster, ref)


def _refuse_foreign_owner(prediction: Prediction, context: PlanContext) -> Refusal | None:
    """Refuse to change an object that belongs to another fleet, tool or controller."""
    live = prediction.live or {}
    owner = _labels(live).get(MEMBER_LABEL)
    if owner == context.view.set_name.id:
        return None
    if owner:
        who = f"the fleet {name}" if (name := context.view.fleets.get(owner)) else owner
        hint = f"{who}, by its label {MEMBER_LABEL}; remove it from that fleet or tool first, or give it another name"
        return Refusal(Refused.FOREIGN, hint, prediction.ref.cluster, prediction.ref)
    if context.policy.adopt is Adopt.NEVER:
        hint = "set policy.adopt to unowned, or delete the object"
        return Refusal(Refused.UNADOPTED, hint, prediction.ref.cluster, prediction.ref)
    claimed_by = _claimant(prediction)
    if context.policy.adopt is Adopt.UNOWNED and claimed_by:
        hint = f"{claimed_by} owns it; remove it there first, or set policy.adopt to always"
        return Refusal(Refused.UNADOPTED, hint, prediction.ref.cluster, prediction.ref)
    return None


def _claimant(prediction: Prediction) -> str:
    """The other owner of this object: a controller that owns it, a tool that tracks it, or one that applies it."""
    live = prediction.live or {}
    metadata = live["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if not _is_document(prediction, owner):
            return f"{owner['kind']} {owner['name']}"
    return claimant(live)


def _replace(prediction: Prediction, context: PlanContext) -> Change | Refusal | None:
    """An immutable field changed: replace the object where nothing is lost, otherwise refuse with a remedy."""
    ref = prediction.ref
    # Use the result of the dry run where there is one: it keeps metadata that git does not contain.
    result = prediction.result and without(prediction.result, prediction.unnamed)
    after = to_canonical(result).manifest if result else prediction.entry.manifest
    fixed = changed_immutable(to_canonical(prediction.live or {}).manifest, after, NEWEST)
    if not fixed:
        return None
    paths = ", ".join(fixed)
    if ref.kind in _REPLACEABLE and (ref.kind, ref.name) not in context.referred:
        if context.view.gaps:
            return _change(prediction, Action.HOLD, Reason.UNSEEN, f"{paths} cannot change in place")
        if ref.kind == "LocalQueue" and (why := why_jobs_end_with(prediction.live or {}, context.view)):
            note = f"{paths} cannot change in place: {why}; it is replaced when they have ended"
            return _change(prediction, Action.HOLD, Reason.IN_USE, note)
        made_again = _change(prediction, Action.REPLACE, Reason.IMMUTABLE, f"{paths} cannot change in place")
        return made_again._replace(fields=changed_fields(prediction))
    way_out = f"add another {ref.kind} with a new name, move its users there, then remove this one"
    return Refusal(Refused.FIXED, f"{paths} cannot change in place: {way_out}", ref.cluster, ref)


def _refuse_contested(prediction: Prediction, context: PlanContext) -> Refusal | None:
    """Refuse fields that another controller would keep writing, even on an object that it does not own."""
    ref, is_ours = prediction.ref, _is_labelled(prediction, context)
    former = predecessor_of(prediction.live or {}) if not is_ours and _has_predecessor(prediction) else ""
    live_conflicts = (one for one in _conflicts(prediction) if not (is_ours and _has_left(prediction, one)))
    contested = [one for one in live_conflicts if one.manager != former and not is_manual_manager(one.manager)]
    is_bound = context.policy.conflicts is Conflicts.REFUSE and (is_ours or context.policy.adopt is not Adopt.ALWAYS)
    return Refusal(Refused.CONTESTED, _contested_text(contested), ref.cluster, ref) if contested and is_bound else None


def _has_left(prediction: Prediction, conflict: Conflict) -> bool:
    """Whether the owner of the field handed the object over: it would never release its fields by itself."""
    return is_former_tool(prediction.live or {}, conflict.manager)


def _conflicts(prediction: Prediction) -> tuple[Conflict, ...]:
    """Fields that other managers own with another value; where git alone decides, every field that they own."""
    unnamed = (Conflict(path_text(one.path), name) for one in prediction.unnamed for name in one.managers)
    return (*prediction.conflicts, *unnamed)


def _contested_text(conflicts: list[Conflict]) -> str:
    fields = ", ".join(f"{conflict.path.removeprefix('.')} ({conflict.manager})" for conflict in conflicts)
    return (
        f"{fields}; remove these fields from the other tool, set the same values in git, "
        "or set policy.conflicts to take"
    )


def _keep_equal(prediction: Prediction, context: PlanContext) -> Change | None:
    """Keep an object of the fleet whose content is as desired. Equal values in another form need no conflict."""
    is_done = not _token_to_issue(prediction) and not is_stopped(prediction.live or {}) and not _unshared(prediction)
    is_done = is_done and not prediction.unnamed
    is_equal = _is_labelled(prediction, context) and is_done and not changed_fields(prediction)
    if is_equal and (prediction.conflicts or _is_recorded(prediction)):
        return _change(prediction, Action.KEEP, Reason.SAME)
    return None


def _blocked(prediction: Prediction, context: PlanContext) -> Change | None:
    running = blocked_by_running_workloads(prediction, context.view, context.dispatching)
    why = running or blocked_by_former_copies(prediction, context.view, context.manager)
    return _change(prediction, Action.HOLD, Reason.IN_USE, why) if why else None


def _leave_unseen(prediction: Prediction) -> Change | None:
    why = blocked_by_missing_observation(prediction)
    return _change(prediction, Action.HOLD, Reason.UNSEEN, why) if why else None


def _update(prediction: Prediction, context: PlanContext) -> Change:
    is_ours = _is_labelled(prediction, context)
    unshared, fields = _unshared(prediction), (*_fields(prediction), *_removed(prediction, is_ours=is_ours))
    reason = (Reason.CHANGED if fields or unshared else Reason.UNRECORDED) if is_ours else Reason.ADOPTED
    contested = (one for one in _conflicts(prediction) if not is_manual_manager(one.manager))
    if not all(is_ours and _has_left(prediction, one) for one in contested):
        reason = Reason.TAKEN
    is_taken_over = not is_ours and _has_predecessor(prediction)
    notes = [*rejected_by_multikueue(prediction, context.dispatching), *([] if is_ours else _kept_marks(prediction))]
    notes += _adoption(prediction, is_unchanged=not fields) if reason is Reason.ADOPTED else []
    return _change(prediction, Action.UPDATE, reason, *notes)._replace(
        fields=(*fields, *unshared, *(abandoned(prediction) if is_taken_over else ())),
        is_forced=bool(prediction.conflicts),
        is_taken_over=is_taken_over,
        is_unshared=bool(unshared),
        is_resumed=is_stopped(prediction.live or {}),
        removed=tuple(one.keys for one in prediction.unnamed),
    )


def _adoption(prediction: Prediction, *, is_unchanged: bool) -> Iterator[str]:
    """What adoption does to an object that works already, and to its workloads."""
    if is_unchanged:
        yield "only labels are added"
    if prediction.ref.kind == "ClusterQueue" and is_unchanged and (count := holding_count(prediction.live or {})):
        yield "1 workload runs on" if count == 1 else f"{count} workloads run on"


def _kept_marks(prediction: Prediction) -> Iterator[str]:
    for part in ("labels", "annotations"):
        if names := unnamed_marks(prediction.live or {}, prediction.wanted, part):
            yield f"keeps {part} that are not in git: {', '.join(sorted(names))}"


def _removed(prediction: Prediction, *, is_ours: bool) -> Iterator[FieldChange]:
    """Fields that are removed because git does not contain them.

    If kfleet never owned the field, a user or another controller set it, and the cause is drift.
    """
    live = prediction.live or {}
    for one in prediction.unnamed:
        is_drift = is_ours and FIELD_MANAGER not in owners_at(live, one.path, but="")
        field = removal(prediction.ref.kind, one.path, one.value, ", ".join(one.managers))
        yield replace(field, cause=Cause.DRIFT) if is_drift else field


def _unshared(prediction: Prediction) -> tuple[FieldChange, ...]:
    """Fields that git no longer contains and that a manual edit owns too: the API server would keep them for it.

    In a namespace they stay: its labels affect everything in it, and they may be older than the fleet.
    """
    live = prediction.live or {}
    if prediction.ref.kind == "Namespace":
        return ()
    return tuple(
        removal(prediction.ref.kind, shared.path, shared.value, ", ".join(shared.managers))
        for shared in shared_fields(live, prediction.wanted, FIELD_MANAGER)
        if not is_covered(shared.path, prediction.unnamed)
    )


def _has_predecessor(prediction: Prediction) -> bool:
    """Whether a manager that will not write again owns fields: kubectl, or the controller of our own document.

    In kinds that are not Kueue's, fields outside git belong to others: there is nothing to take over.
    """
    if prediction.ref.group != KUEUE_GROUP:
        return False
    manager = predecessor_of(prediction.live or {})
    return bool(manager) and (manager == CLIENT_SIDE or _is_owned_by_document(prediction))


def _is_owned_by_document(prediction: Prediction) -> bool:
    references = (prediction.live or {})["metadata"].get("ownerReferences") or ()
    return any(_is_document(prediction, reference) for reference in references)


def _is_document(prediction: Prediction, reference: Manifest) -> bool:
    """Whether the owner is the document of the fleet that the object is rendered from, that is a MasterQueue."""
    document = prediction.entry.document
    return (reference.get("kind"), reference.get("name")) == (document.kind, document.name)


def _fields(prediction: Prediction) -> tuple[FieldChange, ...]:
    """The changed fields. A token that must be issued is not known yet."""
    fields = changed_fields(prediction)
    if _token_to_issue(prediction) is None:
        return fields
    return tuple(
        replace(field, new=TO_BE_ISSUED, cause=Cause.OBSERVATION) if field.path.startswith("data") else field
        for field in fields
    )


def _change(prediction: Prediction, action: Action, reason: Reason, *notes: str) -> Change:
    if action is Action.KEEP:
        return Change(prediction.ref, action, reason, wave_of(prediction.ref))
    metadata = (prediction.live or {}).get("metadata") or {}
    return Change(
        prediction.ref,
        action,
        reason,
        wave_of(prediction.ref),
        manifest=prediction.wanted,
        uid=metadata.get("uid", ""),
        seen=seen_name(prediction.ref.kind, prediction.live) if prediction.live else "",
        wanted=wanted_name(prediction.ref.kind, prediction.wanted),
        notes=(*prediction.entry.notes, *notes),
        is_static=prediction.is_static,
        token=_token_to_issue(prediction),
    )


def _token_to_issue(prediction: Prediction) -> TokenRequestSpec | None:
    request = prediction.entry.token
    return request if request is not None and request.reason else None


def _is_recorded(prediction: Prediction) -> bool:
    """Whether kfleet already owns the same fields, in the same version, for the same desired state."""
    if prediction.live is None or prediction.result is None:
        return True
    return _record(prediction.live) == _record(prediction.result)


def _record(manifest: Manifest) -> tuple[object, ...]:
    owner = applied_by(manifest, FIELD_MANAGER)
    return (owner, (manifest["metadata"].get("annotations") or {}).get(WANTED))


def _is_labelled(prediction: Prediction, context: PlanContext) -> bool:
    return is_labelled(context.view.set_name.id, prediction.live or {})


def _labels(manifest: Manifest) -> Manifest:
    return (manifest.get("metadata") or {}).get("labels") or {}
