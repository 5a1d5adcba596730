"""Small things that tests use."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from reconciler.errors import ClusterError

OLD_KUEUE = "0.16.2"


class Kfleet(Protocol):
    def __call__(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]: ...


def kfleet_program() -> str:
    return str(Path(sys.executable).parent / "kfleet")


def eventually(look: Callable[[], Any], seconds: float = 30) -> Any:
    """What `look` returns once that is something; the last thing it returned is in the failure."""
    deadline = time.monotonic() + seconds
    while not (seen := _seen(look)):
        assert time.monotonic() < deadline, f"still {seen!r} after {seconds} s"
        time.sleep(0.1)
    return seen


def _seen(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except ClusterError as error:
        if error.status == 404:
            return None
        raise
