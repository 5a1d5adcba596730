"""Time and memory of `kfleet diff` and `simulate` on 1,000 workloads: `python -m tests.cluster.simulate.measure`."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler.snapshot.recording import packed
from tests import fast_yaml
from tests.builders import (
    Document,
    cluster_document,
    cpu_group,
    flavor,
    fleet_document,
    local_queue,
    main_tenant,
    namespace_object,
    open_queue,
    resource_flavor,
)
from tests.repositories import commit, git
from tests.support import kfleet_program
from tests.unit.effects.recorded import recording_of
from tests.unit.view.live_objects import ADMITTED, condition, live_queue, live_workload

QUEUES, WORKLOADS = 20, 1000
RECLAIMS: dict[str, Any] = {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}}
PROCFS = Path("/proc")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "repo"
        _write(repo)
        for command in (["diff"], ["simulate", "--for", "3m"]):
            _run([kfleet_program(), *command, "--snapshot", str(Path(folder) / "world.json")], repo)


def _run(command: list[str], repo: Path) -> None:
    """Print the time, the load before and after, and the most memory of the command and of all that it starts."""
    before, started = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, text=True)
    peaks = {"command": 0, "programs": 0}
    is_over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, is_over))
    watcher.start()
    said, _ = process.communicate()
    is_over.set()
    watcher.join()
    sys.stdout.write(said.splitlines()[-1] + "\n")
    sys.stdout.write(
        f"{command[1]}: {time.monotonic() - started:.1f} s, exit code {process.returncode}, load {before:.1f} to "
        f"{os.getloadavg()[0]:.1f}, at most {peaks['command']} MiB and {peaks['programs']} MiB of its programs\n"
    )


def _watch(process: int, peaks: dict[str, int], is_over: threading.Event) -> None:
    while not is_over.wait(0.3):
        own = _memory(process)
        programs = sum(_memory(one) for one in _of_sandbox(f"/simulate-{process}/"))
        peaks["command"], peaks["programs"] = max(peaks["command"], own), max(peaks["programs"], programs)


def _of_sandbox(folder: str) -> Iterator[int]:
    for entry in PROCFS.iterdir():
        if entry.name.isdigit():
            try:
                is_part = folder in (entry / "cmdline").read_text()
            except OSError:
                continue
            if is_part:
                yield int(entry.name)


def _memory(process: int) -> int:
    try:
        lines = (PROCFS / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)


def _write(repo: Path) -> None:
    """Half of the workloads hold all quota, half wait; every third queue gets less, every other one more."""
    (repo / "fleet").mkdir(parents=True)
    git(repo, "init", "--quiet", "--initial-branch", "main")
    for nominals in ((50, 50, 50), (50, 20, 90)):
        queues = [
            open_queue(f"q{at}", "default", {"cpu": nominals[at % 3]}, cohort=f"c{at % 4}", **RECLAIMS)
            for at in range(QUEUES)
        ]
        tenants = [main_tenant(f"q{at}", f"q{at}") for at in range(QUEUES)]
        documents = (fleet_document("demo"), cluster_document("east"), flavor("default"), *queues, *tenants)
        (repo / "fleet" / "fleet.yaml").write_text(fast_yaml.safe_dump_all(documents))
        if not (repo / ".git" / "refs" / "heads" / "main").exists():
            commit(repo)
    (repo.parent / "world.json").write_bytes(packed(recording_of(east=list(_live())), is_packed=False))


def _live() -> Iterator[Document]:
    made: list[Document] = [resource_flavor("default")]
    for at in range(QUEUES):
        name = f"q{at}"
        spec: dict[str, Any] = {"namespaceSelector": {}, "cohortName": f"c{at % 4}", **RECLAIMS}
        made += [
            namespace_object(name),
            live_queue(name, cpu_group("50"), "50", **spec),
            local_queue("main", name, name),
        ]
    made += [_workload(at) for at in range(WORKLOADS)]
    for number, one in enumerate(made):
        identity = {"uid": f"00000000-0000-4000-8000-{number:012}", "creationTimestamp": "2026-11-18T15:00:00Z"}
        yield {**one, "metadata": {"generation": 1, **identity, **one["metadata"]}}


def _workload(at: int) -> Document:
    is_running, queue = at % 2 == 0, f"q{at // 2 % QUEUES}"
    cpu = "2" if is_running else str(1 + at % 7)
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    conditions = ADMITTED if is_running else (condition("QuotaReserved", "False", "Pending", "not enough"),)
    made = live_workload(
        f"w{at}",
        *conditions,
        namespace=queue,
        queue=queue,
        created=at % 60,
        priority=at % 5,
        held={"cpu": cpu} if is_running else None,
        podSets=[pods],
        active=True,
    )
    made["metadata"]["uid"] = f"00000000-0000-4000-9000-{at:012}"
    if is_running:
        made["status"]["admission"]["podSetAssignments"][0]["count"] = 1
    return made


if __name__ == "__main__":
    main()
