"""Processes that outlive the command that started them, found again by pid and start time."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from reconciler.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Part:
    """One process of a sandbox: how it is started, where it listens, and which process it is now.

    `born` is what the kernel says about the start of that process, so that a pid that the kernel gave to
    another process is never mistaken for ours.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    port: int = 0
    pid: int = 0
    born: str = ""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}" if self.port else ""


def start(part: Part) -> Part:
    part.log.parent.mkdir(parents=True, exist_ok=True)
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        # Not subprocess.Popen: its object wants to be waited for, and these processes outlive us.
        pid = os.posix_spawn(
            part.command[0],
            part.command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(part.log), write, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise SandboxError(part.name, f"cannot start {part.command[0]}: {error.strerror}") from error
    return replace(part, pid=pid, born=birth(pid))


def is_alive(part: Part) -> bool:
    return bool(part.pid) and bool(part.born) and birth(part.pid) == part.born


def stop(parts: Iterable[Part], *, timeout: timedelta = timedelta(seconds=10)) -> None:
    """End processes, politely first, all at the same time; those that do not listen are killed."""
    waiting = [part for part in parts if _signal(part, signal.SIGTERM)]
    deadline = time.monotonic() + timeout.total_seconds()
    while waiting and time.monotonic() < deadline:
        time.sleep(0.02)
        waiting = [part for part in waiting if is_alive(part)]
    for part in waiting:
        _signal(part, signal.SIGKILL)
    while any(is_alive(part) for part in waiting):
        time.sleep(0.02)


def kill(*parts: Part) -> None:
    """End processes without warning, as a crash would."""
    waiting = [part for part in parts if _signal(part, signal.SIGKILL)]
    while waiting := [part for part in waiting if is_alive(part)]:
        time.sleep(0.01)


def last_lines(log: Path, count: int = 12) -> str:
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:])


def memory(part: Part) -> int:
    """Resident bytes, 0 where the platform does not tell."""
    try:
        pages = Path(f"/proc/{part.pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _signal(part: Part, number: signal.Signals) -> bool:
    if not is_alive(part):
        return False
    try:
        os.kill(part.pid, number)
    except ProcessLookupError:
        return False
    return True


def birth(pid: int) -> str:
    """The start time of a live process; empty when there is none, or only a zombie of it.

    A killed process whose first thread is a zombie already, while others still end, counts as alive: its sockets are
    open until the last thread has gone.
    """
    _reap(pid)
    try:
        # The name in brackets may hold anything, so count fields from its end: state is the 3rd, threads the 20th,
        # start the 22nd.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _birth_by_ps(pid)
    has_ended = fields[0] == "Z" and int(fields[17]) <= 1
    return "" if has_ended else fields[19]


def _birth_by_ps(pid: int) -> str:
    """The same where there is no /proc, as on macOS."""
    if Path("/proc/self/stat").exists():
        return ""
    command = ["/bin/ps", "-o", "lstart=,state=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    started, _, state = answer.stdout.strip().rpartition(" ")
    return "" if state.startswith("Z") else started.strip()


def _reap(pid: int) -> None:
    """Collect the process if it is a child of ours that has ended; otherwise it would stay as a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
