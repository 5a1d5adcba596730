"""The fields in which two states of an object differ, and where each difference comes from."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from reconciler.kueue.defaults import with_defaults
from reconciler.ownership.content import LAST_APPLIED, content
from reconciler.ownership.dress import is_dress
from reconciler.ownership.fields import owners_at
from reconciler.ownership.takeover import abandoned_fields, predecessor_of
from reconciler.ownership.values import is_equal
from reconciler.plan.causes import history_of
from reconciler.plan.masking import masked
from reconciler.plan.model import Cause, FieldChange
from reconciler.prediction import Prediction

FIELD_MANAGER = "kfleet"

Path = tuple[str | int, ...]


def changed_fields(prediction: Prediction) -> tuple[FieldChange, ...]:
    """What would change in a live object, without kfleet's own book-keeping."""
    live = prediction.live or {}
    result = _laid_over(live, prediction.wanted) if prediction.result is None else prediction.result
    found = [row for row in differences(content(live), content(result)) if not is_dress(row[0])]
    history = history_of(prediction) if found else None
    kind = prediction.ref.kind
    return tuple(
        _field(kind, path, old, new, history.cause(path, old, new), ", ".join(owners_at(live, path, but=FIELD_MANAGER)))
        for path, old, new in found
        if history
    )


def abandoned(prediction: Prediction) -> tuple[FieldChange, ...]:
    """Fields that go because a predecessor owned them and the fleet, which takes over, does not name them."""
    live = prediction.live or {}
    filled = with_defaults(prediction.entry.manifest)
    return tuple(
        removal(prediction.ref.kind, path, old, predecessor_of(live))
        for path, old in abandoned_fields(live, prediction.wanted)
        if path[-1] != LAST_APPLIED and path != ("metadata", "annotations") and not is_equal(_at(filled, path), old)
    )


def removal(kind: str, path: Path, old: Any, owner: str) -> FieldChange:
    """A field that goes because git does not name it, although somebody else holds it."""
    return _field(kind, path, old, None, Cause.SPEC, owner)


def _at(value: Any, path: Path) -> Any:
    """What the server fills in again at once is no change."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _field(kind: str, path: Path, old: Any, new: Any, cause: Cause, owner: str) -> FieldChange:
    """Masked here, where it comes into the plan: what is not in it cannot be shown by anybody."""
    text = path_text(path)
    return FieldChange(text, masked(kind, text, old), masked(kind, text, new), cause, owner)


def _laid_over(live: Any, wanted: Any) -> Any:
    """What becomes of an object as far as that can be told without the server: the wanted fields, and all others."""
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    return {**live, **{name: _laid_over(live.get(name), value) for name, value in wanted.items()}}


def digest(value: Any) -> str:
    """A short name for a content."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def differences(old: Any, new: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Paths with the value before and after; that nothing differs is told without any help."""
    if is_equal(old, new):
        return
    from reconciler.plan import difference  # noqa: PLC0415  (see the top of that file)

    yield from difference.differences(old, new)


def path_text(path: Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) or not _is_plain(step) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _is_plain(step: str) -> bool:
    return step.replace("_", "").replace("-", "").isalnum()
