"""The fields in which two values differ, found by deepdiff.

A module of its own, because deepdiff takes a third of a second to import, and a plan with nothing to do never needs it.
"""

from collections.abc import Iterator
from typing import Any

from deepdiff import DeepDiff
from deepdiff.operator import BaseOperatorPlus

from reconciler.ownership.values import is_equal, is_quantity

Path = tuple[str | int, ...]


def differences(old: Any, new: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Paths with the value before and after; None stands for a field that is not there."""
    found = DeepDiff(
        old, new, view="tree", threshold_to_diff_deeper=0, custom_operators=[_SameQuantity()], verbose_level=2
    )
    rows = [
        (tuple(item.path(output_format="list")), _value(item.t1), _value(item.t2))
        for items in found.values()
        for item in items
    ]
    yield from sorted(rows, key=lambda row: [str(step).zfill(6) if isinstance(step, int) else step for step in row[0]])


class _SameQuantity(BaseOperatorPlus):
    """Tells deepdiff that `9`, `"9"` and `9000m` are no difference."""

    def match(self, level: Any) -> bool:
        return is_quantity(_names(level)) and is_equal(level.t1, level.t2, _names(level))

    def give_up_diffing(self, level: Any, diff_instance: Any) -> bool:  # noqa: ARG002  (deepdiff's signature)
        return True

    def normalize_value_for_hashing(self, parent: Any, obj: Any) -> Any:  # noqa: ARG002  (the same)
        return obj


def _names(level: Any) -> tuple[str, ...]:
    return tuple(step for step in level.path(output_format="list") if isinstance(step, str))


def _value(value: Any) -> Any:
    return None if repr(value) == "not present" else value
