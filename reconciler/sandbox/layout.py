"""Where the sandbox keeps things: what it built in the user's cache, what runs in the user's state folder."""

import os
import re
from pathlib import Path

from reconciler.errors import SandboxError

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def cache_folder() -> Path:
    return _base("XDG_CACHE_HOME", ".cache") / "sandbox"


def state_folder() -> Path:
    return _base("XDG_STATE_HOME", ".local/state") / "sandbox"


def sandbox_folder(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise SandboxError(f"sandbox {name!r}", "is no valid name: use lower-case letters, digits and '-', at most 32")
    return state_folder() / name


def _base(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / "kfleet"
