"""When two values of a field are the same: quantities by what they are worth, everything else literally."""

from collections.abc import Mapping
from typing import Any

from reconciler.quantity import parse

# Fields of Kueue that hold one quantity, and fields whose values all are quantities.
QUANTITIES = {"nominalQuota", "borrowingLimit", "lendingLimit", "weight"}
QUANTITY_MAPS = {"requests", "limits", "allocatable", "capacity", "hard", "overhead"}
# Below these everything is text: a label `weight: "1"` is not the same as `weight: "1.0"`.
TEXTS = {"labels", "annotations", "matchLabels", "nodeLabels", "nodeSelector", "data", "stringData", "binaryData"}


def is_equal(one: Any, other: Any, path: tuple[str, ...] = ()) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            is_equal(value, other[name], (*path, str(name))) for name, value in one.items()
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            is_equal(mine, theirs, path) for mine, theirs in zip(one, other, strict=True)
        )
    if one == other and isinstance(one, bool) == isinstance(other, bool):
        return True
    return is_quantity(path) and _is_same_quantity(one, other)


def is_quantity(path: tuple[str, ...]) -> bool:
    if not path or not TEXTS.isdisjoint(path[:-1]):
        return False
    return path[-1] in QUANTITIES or (len(path) > 1 and path[-2] in QUANTITY_MAPS)


def _is_same_quantity(one: Any, other: Any) -> bool:
    try:
        return parse(one) == parse(other)
    except ValueError:
        return False
