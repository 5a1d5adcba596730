"""Wait until parts of a sandbox are ready."""

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from threading import Event

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, SandboxError
from reconciler.sandbox.limits import explain_limit
from reconciler.sandbox.processes import Part, is_alive, last_lines

POLL = 0.05
READY_TIMEOUT = timedelta(minutes=3)  # a part that ends is noticed at once; this is for crowded machines


def wait_for(part: Part, is_ready: Callable[[], bool], is_abandoned: Event) -> None:
    deadline = time.monotonic() + READY_TIMEOUT.total_seconds()
    while not is_ready():
        if is_abandoned.is_set():
            raise SandboxError(part.name, "was not waited for")
        if not is_alive(part):
            end = last_lines(part.log)
            raise SandboxError(
                part.name, f"ended while it was starting; the end of {part.log}:\n{end}", explain_limit(end)
            )
        if time.monotonic() > deadline:
            end = last_lines(part.log)
            raise SandboxError(
                part.name,
                f"not ready after {READY_TIMEOUT.seconds} s; the end of {part.log}:\n{end}",
                explain_limit(end),
            )
        time.sleep(POLL)


def is_api_ready(api: ApiServer) -> bool:
    try:
        api.read_text("/readyz")
    except ClusterError:
        return False
    return True


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310  (always http to loopback)
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
