"""How many tests this machine carries side by side, and what it lets one user watch."""

import os
from dataclasses import dataclass
from pathlib import Path

# Measured: a manager and two workers with Kueue take 2.1 GiB; a test may add a cluster or two, or a second fleet.
MEMORY_OF_A_WORKER = 4 * 2**30
# Measured: a fleet takes about 40 instances of inotify; a second one may stand beside it.
INSTANCES_OF_A_WORKER = 100
# Measured: the start of an API server with Kueue's definitions takes 8 s of CPU, and 5 s where its garbage is collected
# less often; it then holds up to 1 GiB instead of half of it.
MEMORY_FOR_SPEED = 6 * 2**30
RARE_COLLECTION = {"GOGC": "300", "GOMEMLIMIT": "900MiB"}
# Names a sandbox that is up already and stays so: for tests that are run again and again (tests/mutation.py).
RUNNING_SANDBOX = "KFLEET_TEST_SANDBOX"
INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
_WANTED_INSTANCES = 1024


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    memory: int
    instances: int

    @property
    def workers(self) -> int:
        """One more than cores, because tests with clusters wait for them; fewer where memory or inotify would end."""
        limits = (self.cores + 1, self.memory // MEMORY_OF_A_WORKER, self.instances // INSTANCES_OF_A_WORKER)
        return max(1, min(limits))

    @property
    def server_settings(self) -> dict[str, str]:
        """Environment variables for the servers of the tests, which are written in Go: memory for speed."""
        return RARE_COLLECTION if self.memory >= self.workers * MEMORY_FOR_SPEED else {}


def this_machine() -> Machine:
    return Machine(os.cpu_count() or 1, _available_memory(), _instances())


def raise_instances() -> str:
    """Let one user have more instances of inotify, where the kernel allows it; what was done, for people."""
    before = _instances()
    if before >= _WANTED_INSTANCES:
        return ""
    try:
        INSTANCES.write_text(str(_WANTED_INSTANCES))
    except OSError:
        return f"inotify instances: {before}; more would allow more workers: sysctl fs.inotify.max_user_instances=1024"
    return f"inotify instances: raised from {before} to {_WANTED_INSTANCES} (fs.inotify.max_user_instances)"


def _instances() -> int:
    return int(INSTANCES.read_text()) if INSTANCES.exists() else _WANTED_INSTANCES


def _available_memory() -> int:
    """What the kernel would give to new programs, and no more than this control group may have."""
    if not (meminfo := Path("/proc/meminfo")).exists():
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    lines = meminfo.read_text().splitlines()
    (available,) = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return available if text == "max" else min(available, int(text))
