"""Durations as Kubernetes writes them: 90s, 15m, 1h30m."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from reconciler.quantity import ZERO, Quantity, parse, parse_amount, parse_percent

LARGEST = timedelta(days=366)

_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
# The name of a pool becomes the value of a toleration.
LONGEST_NAME = 63

# Python treats {,3} as a repetition of up to three times; RE2 treats it as literal text.
_OPEN_REPEAT = re.compile(r"\{,\d*\}")
# RE2 reads this as a character class, Python as the letters themselves.
_NAMED_SET = re.compile(r"\[:\^?\w+:\]")


def parse_duration(text: str) -> timedelta:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write it like 90s, 15m or 1h30m")
    duration = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    if duration > LARGEST:
        raise ValueError(f"{text!r} is too long: at most {LARGEST.days} days")
    return duration


def is_found(pattern: str, name: str) -> bool:
    """Whether a pattern matches anywhere in a name; never in a name that is too long for a pool."""
    return len(name) <= LONGEST_NAME and _compiled(pattern).search(name) is not None


def check_pattern(pattern: str) -> None:
    """Raise ValueError if a pattern cannot be used."""
    if found := _OPEN_REPEAT.search(pattern):
        wanted = found[0].replace("{,", "{0,")
        raise ValueError(f"{pattern!r} contains {found[0]}, which is ambiguous: write {wanted}")
    if found := _NAMED_SET.search(pattern):
        raise ValueError(f"{pattern!r} contains {found[0]}, which is ambiguous: write the letters, such as a-z")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    _compiled(pattern)


# Called for every message, and for every pool of every observation.
@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    # Imported here so that only fleets with pools pay for loading the library.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        hint = "patterns use the syntax of RE2, without look-around, back-references and repeats above 1000"
        raise ValueError(f"{pattern!r} cannot be matched in linear time: {why}; {hint}") from error


def check_format(name: str, value: Any) -> None:
    """Raise ValueError for a wrong value. The keyword `type` handles values of another type."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        _READERS[name](value)


def _check_amount(value: Any) -> None:
    amount = parse_amount(value)
    if isinstance(amount, Quantity) and amount < ZERO:
        raise ValueError(f"{value} is negative: write 0 or more")


_READERS: Mapping[str, Callable[[Any], object]] = {
    "quantity": parse,
    "amount": _check_amount,
    "percent": lambda value: parse_percent(str(value)),
    "kfleet-duration": lambda value: parse_duration(str(value)),
    "pool-pattern": lambda value: check_pattern(str(value)),
}
FORMATS = tuple(_READERS)
