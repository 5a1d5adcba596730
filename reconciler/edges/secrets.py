"""Secrets that the command line names: never the text itself, but a file or a variable that holds it."""

import os
from pathlib import Path

from reconciler.errors import EdgeError

VARIABLE = "env:"


def read_secret(option: str, place: str) -> str:
    """The text at a place, `env:NAME` or a file; read again for every use, so that a renewed one counts."""
    text = _from_variable(option, place) if place.startswith(VARIABLE) else _from_file(option, place)
    if not text:
        raise EdgeError(f"{option} {place}", "is empty", "an empty secret would let everybody in")
    return text


def _from_variable(option: str, place: str) -> str:
    name = place.removeprefix(VARIABLE)
    if name not in os.environ:
        raise EdgeError(f"{option} {place}", f"the environment variable {name} is not set")
    return os.environ[name].strip()


def _from_file(option: str, place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", "") or "is no text").lower()
        hint = "say the path of a file, or env:NAME for an environment variable"
        raise EdgeError(f"{option} {place}", f"cannot be read: {reason}", hint) from error
