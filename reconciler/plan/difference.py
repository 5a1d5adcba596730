"""The fields in which two values differ, found by deepdiff.

This is a separate module because importing deepdiff takes a third of a second, and a plan without changes never needs
it.
"""

from collections.abc import Iterator
from typing import Any

from deepdiff import DeepDiff
from deepdiff.helper import notpresent
from deepdiff.operator import BaseOperatorPlus

from reconciler.plan.items import Row, by_name, orders
from reconciler.state.values import is_equal, is_quantity


def differences(old: Any, new: Any) -> Iterator[Row]:
    """Paths with the value before and after; None stands for a missing field."""
    before, after = _unequal_parts(*by_name(old, new))
    found = DeepDiff(
        before, after, view="tree", threshold_to_diff_deeper=0, custom_operators=[_SameQuantity()], verbose_level=2
    )
    rows = [
        (tuple(item.path(output_format="list")), _value(item.t1), _value(item.t2))
        for items in found.values()
        for item in items
    ]
    rows += orders(old, new)
    yield from sorted(
        rows, key=lambda row: [str(step).zfill(6) if isinstance(step, int) else str(step) for step in row[0]]
    )


def _unequal_parts(old: Any, new: Any) -> tuple[Any, Any]:
    """Both values without their equal parts: deepdiff would visit every leaf of these, and is slow."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in old if name in new and not _is_same(old[name], new[name])]
        parts = {name: _unequal_parts(old[name], new[name]) for name in names}
        before = {name: value for name, value in old.items() if name not in new}
        after = {name: value for name, value in new.items() if name not in old}
        return (
            before | {name: part for name, (part, _) in parts.items()},
            after | {name: part for name, (_, part) in parts.items()},
        )
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [
            (None, None) if _is_same(one, other) else _unequal_parts(one, other)
            for one, other in zip(old, new, strict=True)
        ]
        return [one for one, _ in pairs], [other for _, other in pairs]
    return old, new


def _is_same(one: Any, other: Any) -> bool:
    return one == other and is_equal(one, other)


class _SameQuantity(BaseOperatorPlus):
    """Makes deepdiff treat `9`, `"9"` and `9000m` as equal quantities."""

    def match(self, level: Any) -> bool:
        return is_quantity(_names(level)) and is_equal(level.t1, level.t2, _names(level))

    def give_up_diffing(self, level: Any, diff_instance: Any) -> bool:  # noqa: ARG002  (deepdiff's signature)
        return True

    def normalize_value_for_hashing(self, parent: Any, obj: Any) -> Any:  # noqa: ARG002  (the same)
        return obj


def _names(level: Any) -> tuple[str, ...]:
    return tuple(step for step in level.path(output_format="list") if isinstance(step, str))


def _value(value: Any) -> Any:
    return None if value is notpresent else value
