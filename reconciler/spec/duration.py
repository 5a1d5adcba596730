"""Durations as Kubernetes writes them: 90s, 15m, 1h30m."""

import re
from datetime import timedelta

LARGEST = timedelta(days=366)

_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


def parse_duration(text: str) -> timedelta:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration: write it like 90s, 15m or 1h30m")
    duration = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    if duration > LARGEST:
        raise ValueError(f"{text!r} is too long: at most {LARGEST.days} days")
    return duration
