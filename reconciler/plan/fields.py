"""Finds the cause of a changed field: drift in the cluster, a change in git, or a new observation.

kfleet compares with the value that was desired when the object was last written. Items of a list are identified by
their position there, whatever their name in a difference. For a Secret no desired values are stored; there kfleet
checks whether the field is still as kfleet applied it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.kueue.structure import with_defaults
from reconciler.objects import FIELD_MANAGER, Manifest, merge_maps
from reconciler.plan.items import ItemPath, Order, Row, Step, is_order, position
from reconciler.plan.model import Cause, FieldChange
from reconciler.plan.record import masked_change
from reconciler.state.managed_fields import is_applied_at, owners_at
from reconciler.state.manual_edits import abandoned_fields, is_covered, predecessor_of
from reconciler.state.model import Prediction
from reconciler.state.tracking import (
    BY_SPEC,
    Fingerprints,
    Path,
    desired_field_hashes,
    fingerprints,
    is_same_origin,
    is_tracking_field,
    recorded_fields,
    recorded_name,
    wanted_hash,
)
from reconciler.state.values import LAST_APPLIED, SECRET_KINDS, content, is_equal


@dataclass(frozen=True, slots=True)
class History:
    """The desired state of an object now, and when it was last written.

    `by_spec` is the desired state by git alone, where observations change it. `whole` is the cause of every change,
    where the single fields cannot be distinguished. `moved` is the cause of a changed desired value that no field hash
    explains. `applied` is a live Secret, and the field manager whose fields in it count as applied.
    """

    by_spec: Manifest | None
    whole: Cause | None
    moved: Cause
    now: Fingerprints = frozenset()
    then: Fingerprints = frozenset()
    applied: tuple[Manifest, str] | None = field(default=None, repr=False)

    def cause(self, path: Path, old: Any, new: Any) -> Cause:
        if self.applied is not None and is_applied_at(self.applied[0], path, self.applied[1]):
            return Cause.SPEC
        if self.whole is not None:
            return self.whole
        wanted = fingerprints(new, path) & self.now
        is_same_desired = wanted <= self.then if wanted else not fingerprints(old, path) & self.then
        if is_same_desired:
            return Cause.DRIFT
        said = fingerprints(_value_at(self.by_spec, path), path, BY_SPEC) & self.now
        return Cause.OBSERVATION if said and said <= self.then else self.moved


def history_of(prediction: Prediction, manager: str) -> History:
    entry, live = prediction.entry, prediction.live or {}
    name, then = recorded_name(live), recorded_fields(live)
    moved = Cause.OBSERVATION if is_same_origin(entry, name) else Cause.SPEC
    if entry.ref.kind in SECRET_KINDS:
        whole = Cause.DRIFT if name == wanted_hash(entry) else Cause.SPEC
        return History(None, whole, Cause.SPEC, applied=(live, manager) if live else None)
    if name == wanted_hash(entry):
        return History(entry.by_spec, Cause.DRIFT, moved)
    if not then:
        return History(entry.by_spec, moved, moved)
    return History(entry.by_spec, None, moved, desired_field_hashes(prediction.wanted, entry), then)


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        else:
            is_item = isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)
            value = value[step] if is_item else None
    return value


def changed_fields(prediction: Prediction) -> tuple[FieldChange, ...]:
    """The fields that would change in a live object, without kfleet's own tracking metadata."""
    live = prediction.live or {}
    result = merge_maps(live, prediction.wanted) if prediction.result is None else prediction.result
    before, after = content(live), content(result)
    found = [row for row in differences(before, after) if not is_tracking_field(tuple(map(str, row[0])))]
    history = history_of(prediction, FIELD_MANAGER) if found else None
    return tuple(_changed_field(prediction, history, row, (before, after)) for row in found if history)


def _changed_field(prediction: Prediction, history: History, row: Row, values: tuple[Any, Any]) -> FieldChange:
    """Causes and owners are known by the numbers of list items; a person reads their names."""
    path, old, new = row
    before, after = (position(path, value) for value in values)
    numbers = after or before or ()
    was, is_now = (_value_at(values[0], numbers), _value_at(values[1], numbers)) if is_order(path) else (old, new)
    cause = history.cause(numbers, was, is_now)
    owners = owners_at(prediction.live or {}, before or numbers, but=FIELD_MANAGER)
    return _field(prediction.ref.kind, path, old, new, cause, ", ".join(owners))


def abandoned(prediction: Prediction) -> tuple[FieldChange, ...]:
    """Fields that are removed because a predecessor owned them and the fleet, which takes over, does not set them."""
    live = prediction.live or {}
    filled = with_defaults(prediction.entry.manifest)
    return tuple(
        removal(prediction.ref.kind, path, old, predecessor_of(live))
        for path, old in abandoned_fields(live, prediction.wanted)
        if not is_covered(path, prediction.unnamed)
        and path[-1] != LAST_APPLIED
        and path != ("metadata", "annotations")
        and not is_equal(_at(filled, path), old)
    )


def removal(kind: str, path: Path, old: Any, owner: str) -> FieldChange:
    """A field that is removed because git does not contain it, although another field manager owns it."""
    return _field(kind, path, old, None, Cause.SPEC, owner)


def _at(value: Any, path: Path) -> Any:
    """The value at a path. A value that the API server would default again at once is not a change."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _field(kind: str, path: ItemPath, old: Any, new: Any, cause: Cause, owner: str) -> FieldChange:
    """A changed field. It is masked here, before it enters the plan, so that no output can show a secret."""
    text = path_text(path)
    return FieldChange(text, *masked_change(kind, text, old, new), cause, owner)


def differences(old: Any, new: Any) -> Iterator[Row]:
    """Paths with the value before and after. Equal values are found here, without importing deepdiff."""
    if is_equal(old, new):
        return
    from reconciler.plan import difference  # noqa: PLC0415  (see the docstring of that module)

    yield from difference.differences(old, new)


def path_text(path: ItemPath) -> str:
    return "".join(map(_step_text, path)).removeprefix(".")


def _step_text(step: Step) -> str:
    if isinstance(step, Order):
        return f" ({step})"
    return f".{step}" if isinstance(step, str) and _is_plain(step) else f"[{step}]"


def _is_plain(step: str) -> bool:
    return step.replace("_", "").replace("-", "").isalnum()
