"""Words for values and choices in messages."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

MOST_SHOWN = 60


def suggest(wrong: str, allowed: Iterable[str]) -> str:
    """`; did you mean x?`, or nothing."""
    by_lower = {each.lower(): each for each in allowed}
    close = get_close_matches(wrong.lower()[:MOST_SHOWN], list(by_lower), n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def shown(value: Any) -> str:
    """A value as it may stand in a message: short, texts in quotes."""
    text = repr(value) if isinstance(value, str) else plain(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    return "nothing" if value is None else str(value)
