"""Decides what happens to one wanted object."""

from dataclasses import dataclass, replace

from reconciler.credential import TokenWish
from reconciler.desired.order import wave_of
from reconciler.kueue.immutable import changed_immutable
from reconciler.kueue.kinds import NEWEST
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest, Ref
from reconciler.ownership.applyset import MEMBER_LABEL, kind_text
from reconciler.ownership.content import content
from reconciler.ownership.dress import WANTED
from reconciler.ownership.fields import APPLY, applied_by, owners_of
from reconciler.ownership.hands import is_hand, shared_fields
from reconciler.ownership.stopped import FIELD, is_stopped
from reconciler.ownership.takeover import CLIENT_SIDE, predecessor_of
from reconciler.plan.fields import FIELD_MANAGER, abandoned, changed_fields, digest, removal
from reconciler.plan.masking import TO_BE_ISSUED, masked_problem
from reconciler.plan.model import Action, Cause, Change, FieldChange, Reason, Refusal, Refused
from reconciler.plan.sending import why_not_yet
from reconciler.plan.unseen import why_unseen
from reconciler.prediction import ClusterView, Conflict, Prediction
from reconciler.spec.choices import Adopt, Conflicts, Policy

_TRACKERS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
# What can be made again without a loss: nothing runs in it, and pending workloads find it again by its name.
_REPLACEABLE = {"LocalQueue", "AdmissionCheck"}


@dataclass(frozen=True, slots=True)
class Judge:
    """What a decision about an object stands on, beside the prediction."""

    policy: Policy
    view: ClusterView
    referred: frozenset[tuple[str, str]]


def decide(prediction: Prediction, judge: Judge) -> Change | Refusal:
    if prediction.entry.held:
        return _change(prediction, Action.HOLD, Reason.UNSEEN, prediction.entry.held)
    if prediction.live is None:
        return _create(prediction, judge)
    if prediction.live["metadata"].get("deletionTimestamp"):
        return _change(prediction, Action.HOLD, Reason.ENDING)
    if prediction.is_settled:
        return _change(prediction, Action.KEEP, Reason.SAME)
    return (
        _refuse_stranger(prediction, judge)
        or _replace(prediction, judge)
        or (_refuse_invalid(prediction) if prediction.problem else None)
        or _keep_equal(prediction, judge)
        or _refuse_contested(prediction, judge)
        or _put_off(prediction, judge)
        or _leave_unseen(prediction)
        or _update(prediction, judge)
    )


def _create(prediction: Prediction, judge: Judge) -> Change | Refusal:
    if any(gap.what == kind_text(prediction.ref) for gap in judge.view.gaps):
        # It may well be there and be somebody else's: nobody could look.
        return _change(prediction, Action.HOLD, Reason.UNSEEN)
    if _is_ending(Ref(prediction.ref.cluster, "", "Namespace", "", prediction.ref.namespace), judge.view):
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


def _refuse_stranger(prediction: Prediction, judge: Judge) -> Refusal | None:
    """Objects that belong to somebody else are not touched."""
    live = prediction.live or {}
    owner = _labels(live).get(MEMBER_LABEL)
    if owner == judge.view.set_name.id:
        return None
    if owner:
        hint = f"{owner}, by its label {MEMBER_LABEL}; take it out of that fleet or tool first, or give it another name"
        return Refusal(Refused.FOREIGN, hint, prediction.ref.cluster, prediction.ref)
    if judge.policy.adopt is Adopt.NEVER:
        hint = "set policy.adopt to unowned, or delete the object"
        return Refusal(Refused.UNADOPTED, hint, prediction.ref.cluster, prediction.ref)
    claimant = _claimant(prediction)
    if judge.policy.adopt is Adopt.UNOWNED and claimant:
        hint = f"{claimant} claims it; take it out there first, or set policy.adopt to always"
        return Refusal(Refused.UNADOPTED, hint, prediction.ref.cluster, prediction.ref)
    return None


def _claimant(prediction: Prediction) -> str:
    """Who else keeps this object: a controller that owns it, a tool that tracks it, or one that applies it."""
    live = prediction.live or {}
    metadata = live["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if not _is_document(prediction, owner):
            return f"{owner['kind']} {owner['name']}"
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    for mark, tool in _TRACKERS.items():
        if mark in marks:
            return tool
    appliers = [owner.manager for owner in owners_of(live) if owner.operation == APPLY and not owner.subresource]
    return next((manager for manager in appliers if not is_hand(manager) and manager != FIELD_MANAGER), "")


def _replace(prediction: Prediction, judge: Judge) -> Change | Refusal | None:
    """A field that cannot change in place: made again where nothing is lost, refused with the way out elsewhere."""
    ref = prediction.ref
    # What its server would make of it, where it said so: a field that git does not name stays as somebody else set it.
    after = to_canonical(prediction.result).manifest if prediction.result else prediction.entry.manifest
    fixed = changed_immutable(to_canonical(prediction.live or {}).manifest, after, NEWEST)
    if not fixed:
        return None
    paths = ", ".join(fixed)
    if ref.kind in _REPLACEABLE and (ref.kind, ref.name) not in judge.referred:
        if judge.view.gaps:
            return _change(prediction, Action.HOLD, Reason.UNSEEN, f"{paths} cannot change in place")
        made_again = _change(prediction, Action.REPLACE, Reason.IMMUTABLE, f"{paths} cannot change in place")
        return made_again._replace(fields=changed_fields(prediction))
    way_out = (
        f"{paths} cannot change in place: add another {ref.kind} with a new name, move its users over, then remove this"
    )
    return Refusal(Refused.FIXED, way_out, ref.cluster, ref)


def _refuse_contested(prediction: Prediction, judge: Judge) -> Refusal | None:
    """Where another program would go on to write what it wrote, also to an object that it does not claim."""
    ref, is_ours = prediction.ref, _is_member(prediction, judge)
    former = predecessor_of(prediction.live or {}) if not is_ours and _has_predecessor(prediction) else ""
    contested = [one for one in prediction.conflicts if one.manager != former and not is_hand(one.manager)]
    is_bound = judge.policy.conflicts is Conflicts.REFUSE and (is_ours or judge.policy.adopt is not Adopt.ALWAYS)
    return Refusal(Refused.CONTESTED, _contested_text(contested), ref.cluster, ref) if contested and is_bound else None


def _contested_text(conflicts: list[Conflict]) -> str:
    fields = ", ".join(f"{conflict.path.removeprefix('.')} ({conflict.manager})" for conflict in conflicts)
    return f"{fields}; take these fields out of the fleet or of the other tool, or set policy.conflicts to take"


def _keep_equal(prediction: Prediction, judge: Judge) -> Change | None:
    """An object of ours that says what is wanted: in other words only, which is no reason to fight over a field."""
    is_done = not _token_to_issue(prediction) and not is_stopped(prediction.live or {}) and not _unshared(prediction)
    is_equal = _is_member(prediction, judge) and is_done and not changed_fields(prediction)
    if is_equal and (prediction.conflicts or _is_recorded(prediction)):
        return _change(prediction, Action.KEEP, Reason.SAME)
    return None


def _put_off(prediction: Prediction, judge: Judge) -> Change | None:
    why = why_not_yet(prediction, judge.view)
    return _change(prediction, Action.HOLD, Reason.IN_USE, why) if why else None


def _leave_unseen(prediction: Prediction) -> Change | None:
    why = why_unseen(prediction)
    return _change(prediction, Action.HOLD, Reason.UNSEEN, why) if why else None


def _update(prediction: Prediction, judge: Judge) -> Change:
    fields, unshared = (*_fields(prediction), *_resumed(prediction)), _unshared(prediction)
    is_ours = _is_member(prediction, judge)
    reason = (Reason.CHANGED if fields or unshared else Reason.UNRECORDED) if is_ours else Reason.ADOPTED
    if prediction.conflicts and not all(is_hand(conflict.manager) for conflict in prediction.conflicts):
        reason = Reason.TAKEN
    is_taken_over = not is_ours and _has_predecessor(prediction)
    return _change(prediction, Action.UPDATE, reason)._replace(
        fields=(*fields, *unshared, *(abandoned(prediction) if is_taken_over else ())),
        is_forced=bool(prediction.conflicts),
        is_taken_over=is_taken_over,
        is_unshared=bool(unshared),
        is_resumed=is_stopped(prediction.live or {}),
    )


def _resumed(prediction: Prediction) -> tuple[FieldChange, ...]:
    """A queue that kfleet stopped to delete it goes on; its server does not say so, because that is a second write."""
    live, wanted = prediction.live or {}, prediction.wanted.get("spec") or {}
    if not is_stopped(live) or FIELD in wanted:
        return ()
    return (FieldChange(f"spec.{FIELD}", live["spec"].get(FIELD), None, Cause.SPEC),)


def _unshared(prediction: Prediction) -> tuple[FieldChange, ...]:
    """Fields that git names no more and that hands hold too: their server would leave them to these."""
    live = prediction.live or {}
    return tuple(
        removal(prediction.ref.kind, shared.path, shared.value, ", ".join(shared.hands))
        for shared in shared_fields(live, prediction.wanted, FIELD_MANAGER)
    )


def _has_predecessor(prediction: Prediction) -> bool:
    """Whether somebody owns fields who will not come back for them: kubectl, or the controller of our own document."""
    manager = predecessor_of(prediction.live or {})
    return bool(manager) and (manager == CLIENT_SIDE or _is_owned_by_document(prediction))


def _is_owned_by_document(prediction: Prediction) -> bool:
    references = (prediction.live or {})["metadata"].get("ownerReferences") or ()
    return any(_is_document(prediction, reference) for reference in references)


def _is_document(prediction: Prediction, reference: Manifest) -> bool:
    """Whether an owner is the very document of the fleet that asks for the object: a MasterQueue, then."""
    document = prediction.entry.document
    return (reference.get("kind"), reference.get("name")) == (document.kind, document.name)


def _fields(prediction: Prediction) -> tuple[FieldChange, ...]:
    """What changes; a token that has to be issued is not known yet."""
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
        seen=digest(content(prediction.live)) if prediction.live else "",
        wanted=digest(prediction.wanted),
        notes=(*prediction.entry.notes, *notes),
        is_static=prediction.is_static,
        token=_token_to_issue(prediction),
    )


def _token_to_issue(prediction: Prediction) -> TokenWish | None:
    wish = prediction.entry.token
    return wish if wish is not None and wish.reason else None


def _is_recorded(prediction: Prediction) -> bool:
    """Whether kfleet owns the same fields already, in the same version, for the same wish."""
    if prediction.live is None or prediction.result is None:
        return True
    return _record(prediction.live) == _record(prediction.result)


def _record(manifest: Manifest) -> tuple[object, ...]:
    owner = applied_by(manifest, FIELD_MANAGER)
    return (owner, (manifest["metadata"].get("annotations") or {}).get(WANTED))


def _is_member(prediction: Prediction, judge: Judge) -> bool:
    return _labels(prediction.live or {}).get(MEMBER_LABEL) == judge.view.set_name.id


def _labels(manifest: Manifest) -> Manifest:
    return (manifest.get("metadata") or {}).get("labels") or {}
