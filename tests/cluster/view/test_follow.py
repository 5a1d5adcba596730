"""`kfleet get -w` and `kfleet status -w` follow what happens on a real cluster until they are interrupted."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.builders import flavor, main_job, main_tenant, open_queue
from tests.cluster.live_fleet import LiveFleet
from tests.support import SLOWEST, kfleet_program

LONGEST = SLOWEST * 30


@contextmanager
def following(live_fleet: LiveFleet, *arguments: str) -> Iterator[Iterator[str]]:
    """The lines that a command writes. It ends when a user interrupts it, or when it says nothing for too long."""
    process = subprocess.Popen(
        [kfleet_program(), *arguments, "--repo", str(live_fleet.folder)],
        stdout=subprocess.PIPE,
        text=True,
        # A shell that runs tests in the background makes them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    timer = threading.Timer(LONGEST, process.kill)
    timer.start()
    assert process.stdout is not None
    try:
        yield iter(process.stdout)
    finally:
        timer.cancel()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_watched_jobs_and_status_follow_the_cluster(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), open_queue(name, name, {"cpu": "1"}), main_tenant(name, name))
    live_fleet.converge()
    with following(live_fleet, "status", "-w") as lines:
        told = (line for line in lines if "4 objects in sync" in line)
        assert next(told).startswith("worker1: ") and next(told).startswith("worker1: ")
    with following(live_fleet, "get", "jobs", "-w", "-n", name) as lines:
        assert next(lines) == "no jobs\n"
        live_fleet.api().create(main_job("first", name, seconds=3600))
        assert next(line for line in lines if "running" in line).split()[:3] == [name, "first", "Job"]
