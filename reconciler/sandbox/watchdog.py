"""Takes a sandbox down when the process that owns it is gone, even if that one was killed.

Run as `python -m reconciler.sandbox.watchdog PID BIRTH NAME`.
"""

import sys
import time

from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.processes import birth

POLL = 1.0


def watch(owner: int, born: str, name: str) -> None:
    while birth(owner) == born:
        time.sleep(POLL)
    Sandbox.find(name).down()


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2], sys.argv[3])
