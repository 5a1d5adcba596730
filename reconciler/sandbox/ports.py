"""Free ports on loopback."""

import random
import socket
import time
from collections.abc import Collection
from datetime import timedelta

# Below the range that kernels hand out to outgoing connections, so that nobody takes the port of a part while it is
# stopped for a moment.
RANGE = range(20000, 32000)


def free_ports(count: int, given: Collection[int] = ()) -> list[int]:
    """Ports that nobody listens on, without those that were given away and may not be listened on yet."""
    ports: list[int] = []
    for port in random.sample(RANGE, len(RANGE)):
        if port not in given and is_free(port):
            ports.append(port)
        if len(ports) == count:
            break
    return ports


def becomes_free(port: int, patience: timedelta = timedelta(seconds=10)) -> bool:
    """Whether a port is free, now or in a moment: the kernel closes the sockets of a killed process a little late."""
    deadline = time.monotonic() + patience.total_seconds()
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
