"""Reads manifests that users wrote: nothing here fails on a value of the wrong type, it reads as empty.

The structure check reports wrong types; every other rule can then report its own problems without checking types.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reconciler.quantity import Quantity, parse

# isinstance finds a plain dict at once in a tuple of types; checking for a Mapping alone takes several times as long.
MAPS = (dict, Mapping)
LISTS = (list, tuple)
NUMBERS = (int, float)
# The CRDs accept only these texts; the parser of quantities accepts a little more.
_QUANTITY = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?", re.ASCII
)


def as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, MAPS) else {}


def as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, LISTS) else ()


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def at(value: Any, *path: str) -> Any:
    """Return the nested value, or None if the path ends early."""
    for step in path:
        value = value.get(step) if isinstance(value, MAPS) else None
    return value


def indexed(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the items of a list, each with its path."""
    return ((f"{path}[{number}]", item) for number, item in enumerate(as_list(value)))


def quantity_at(value: Any) -> Quantity | None:
    """Return a quantity as the API server accepts it everywhere: a string or a whole number."""
    if isinstance(value, str):
        return _written(value)
    if isinstance(value, float) and not value.is_integer():
        return None
    return read_quantity(value)


def read_quantity(value: Any) -> Quantity | None:
    """Return a quantity as Kueue's own decoder accepts it, including fractions and surrounding space."""
    if isinstance(value, str):
        return _parsed(value)
    return _parsed(str(value)) if isinstance(value, NUMBERS) and not isinstance(value, bool) else None


# A fleet repeats few texts many times, and parsing one is the most expensive step of every check.
@lru_cache(maxsize=4096)
def _written(text: str) -> Quantity | None:
    return _parsed(text) if _QUANTITY.fullmatch(text) else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity | None:
    try:
        return parse(text)
    except ValueError:
        return None
