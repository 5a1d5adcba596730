"""The formats that kfleet's schemas use: each is read by the function that reads it later in earnest."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.quantity import parse, parse_amount, parse_percent
from reconciler.spec.duration import parse_duration


def check_format(name: str, value: Any) -> None:
    """ValueError says what is wrong. A value of another type is the matter of the keyword `type`."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        _READERS[name](value)


def _read_pattern(text: Any) -> None:
    try:
        re.compile(str(text))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error


_READERS: Mapping[str, Callable[[Any], object]] = {
    "quantity": parse,
    "amount": parse_amount,
    "percent": lambda value: parse_percent(str(value)),
    "kfleet-duration": lambda value: parse_duration(str(value)),
    "python-pattern": _read_pattern,
}
FORMATS = tuple(_READERS)
