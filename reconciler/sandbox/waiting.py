"""Limits of the machine at which a part ends, read from its log: which one it was, and how to raise it.

The parts are programs of others: they tell a limit only by the text of the kernel's error, in their last lines.
"""

import re
import resource
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, SandboxError
from reconciler.sandbox.processes import Part, is_alive, last_lines

INOTIFY = Path("/proc/sys/fs/inotify")
POLL = 0.05
READY_TIMEOUT = timedelta(minutes=3)  # a part that ends is noticed at once; this is for crowded machines


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLimit:
    """`is_hit` matches a line of the log."""

    is_hit: re.Pattern[str]
    name: str
    value: Callable[[], str]
    remedy: str


def _sysctl(name: str) -> Callable[[], str]:
    def read() -> str:
        try:
            return (INOTIFY / name).read_text().strip()
        except OSError:
            return "unknown"

    return read


def _of_process(kind: int) -> Callable[[], str]:
    def read() -> str:
        soft, _ = resource.getrlimit(kind)
        return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)

    return read


# The first that matches: with inotify, both texts mean another limit than without.
LIMITS = (
    MachineLimit(
        is_hit=re.compile(r"(inotify|fsnotify|watcher).*too many open files", re.IGNORECASE),
        name="fs.inotify.max_user_instances",
        value=_sysctl("max_user_instances"),
        remedy="sudo sysctl fs.inotify.max_user_instances=1024",
    ),
    MachineLimit(
        is_hit=re.compile(r"(inotify|fsnotify|watch).*no space left on device", re.IGNORECASE),
        name="fs.inotify.max_user_watches",
        value=_sysctl("max_user_watches"),
        remedy="sudo sysctl fs.inotify.max_user_watches=524288",
    ),
    MachineLimit(
        is_hit=re.compile(r"too many open files", re.IGNORECASE),
        name="the number of open files of a process (ulimit -n)",
        value=_of_process(resource.RLIMIT_NOFILE),
        remedy="ulimit -n 65536",
    ),
    MachineLimit(
        is_hit=re.compile(r"(pthread_create|newosproc|fork).*resource temporarily unavailable|failed to create new OS"),
        name="the number of processes and threads of a user (ulimit -u)",
        value=_of_process(getattr(resource, "RLIMIT_NPROC", resource.RLIMIT_NOFILE)),
        remedy="ulimit -u 65536",
    ),
    MachineLimit(
        is_hit=re.compile(r"cannot allocate memory|out of memory", re.IGNORECASE),
        name="the memory of the machine",
        value=lambda: "an API server with its Kueue takes about 400 MiB",
        remedy="kfleet sandbox up --workers with a smaller number",
    ),
)


def explain_limit(log: str) -> str:
    """Return which limit a part hit and what to do; nothing when its last lines name none."""
    for line in reversed(log.splitlines()):
        for limit in LIMITS:
            if limit.is_hit.search(line):
                return f"a limit of this machine was hit: {limit.name} ({limit.value()}); raise it: {limit.remedy}"
    return ""


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
