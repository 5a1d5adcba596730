"""Refuse sockets of the Internet families in this process.

Python imports a module of this name when it starts, so a process whose PYTHONPATH names this folder is guarded too.
What was refused is also written down: kfleet turns errors of a connection into a gap, and the test would not see them.
"""

import os
import sys
from pathlib import Path
from typing import Any

RECORD = "KFLEET_TEST_SOCKETS"
# urllib3 asks by this bind, when it is imported, whether the machine has IPv6.
_ASKS_FOR_IPV6 = ("::1", 0)
_EVENTS = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"})


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Sockets with a path instead of an address stay allowed: event loops wake themselves by them."""
    record = os.environ.get(RECORD)
    if event not in _EVENTS or not record:
        return
    address = arguments[:2] if event == "socket.getaddrinfo" else arguments[1]
    if not isinstance(address, tuple) or address == _ASKS_FOR_IPV6:
        return
    what = f"{event} {address}"
    with Path(record).open("a") as file:
        file.write(f"{what}\n")
    raise RuntimeError(f"{what}: a test of the unit tier opens no socket; it belongs to tests/cluster")


sys.addaudithook(refuse)
