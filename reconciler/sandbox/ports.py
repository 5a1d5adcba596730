"""Free ports on loopback, and their reservation until the parts that they are for listen.

Sandboxes that start at the same time, in one process or in several, must not choose the same port: a chosen port has no
listener for some seconds. Each choice therefore holds a file lock for as long as its process uses the sandbox, which
also keeps the port while a part is started again.
"""

import fcntl
import os
import random
import socket
import tempfile
import time
import weakref
from datetime import timedelta
from pathlib import Path

# Below the range that kernels hand out to outgoing connections, so that no other process takes the port of a
# part while the part is stopped for a moment.
RANGE = range(20000, 32000)


class ReservedPorts:
    """The ports that one sandbox has chosen; no other sandbox of this user takes them while this object exists."""

    def __init__(self) -> None:
        self._locks: dict[int, int] = {}
        weakref.finalize(self, _unlock, self._locks)

    def take(self, count: int) -> list[int]:
        """Choose ports without a listener that no sandbox has reserved; fewer if there are not so many."""
        taken: list[int] = []
        for port in random.sample(RANGE, len(RANGE)):
            if len(taken) == count:
                break
            if port not in self._locks and (lock := _lock(port)) is not None:
                if is_free(port):
                    self._locks[port] = lock
                    taken.append(port)
                else:
                    os.close(lock)
        return taken


def _lock(port: int) -> int | None:
    folder = Path(tempfile.gettempdir()) / f"kfleet-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _unlock(locks: dict[int, int]) -> None:
    for lock in locks.values():
        os.close(lock)


def becomes_free(port: int, timeout: timedelta = timedelta(seconds=10)) -> bool:
    """Whether a port is free, now or in a moment: the kernel closes the sockets of a killed process a little late."""
    deadline = time.monotonic() + timeout.total_seconds()
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the servers themselves do; otherwise a port that was just given back counts as taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
