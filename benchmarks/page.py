"""What the page costs the process that serves it: 10,000 objects of 20 clusters, without a reader and with ten.

Clusters are those of a snapshot, whose answers are decoded anew for each view, as those of live clusters are. A plan is
not part of it: the leader of `kfleet run` shows that of its last cycle.
"""

import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.observe import connect_recorded
from reconciler.snapshot.recording import unpacked
from reconciler.web.events import Feed
from reconciler.web.live import ClusterSource, Current
from reconciler.web.server import WebServer
from tests.cluster.web.large_snapshot import write_large_fleet
from tests.cluster.web.reading import get

JOBS, READERS = 4_000, 10
REFRESH = timedelta(seconds=3)
IDLE, FOLLOWED = 10, 60  # seconds
TICKS = os.sysconf("SC_CLK_TCK")
Row = tuple[str, str, str]


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        snapshot = write_large_fleet(Path(scratch), JOBS)
        with _serving(Path(scratch), snapshot) as (process, address):
            idle, before = _spent(process, IDLE), _memory(process)
            get(f"{address}/api/view")
            readers = [threading.Thread(target=_follow, args=(address,), daemon=True) for _ in range(READERS)]
            for reader in readers:
                reader.start()
            busy, after = _spent(process, FOLLOWED), _memory(process)
    part = 100 * busy / FOLLOWED
    return [
        (f"page without a reader: processor time in {IDLE} s", "0 s", f"{idle:.2f} s"),
        (
            f"page with {READERS} readers of 10,000 objects, a view every {REFRESH.seconds} s: part of one processor",
            "-",
            f"{part:.0f} %",
        ),
        ("the same, memory of the process before and after", "-", f"{before:.0f} and {after:.0f} MiB"),
    ]


@contextmanager
def _serving(folder: Path, snapshot: Path) -> Iterator[tuple[int, str]]:
    command = [sys.executable, __file__, str(folder), str(snapshot)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _serve(folder: str, snapshot: str) -> None:
    gc.enable()
    current = Current(load_files(read_files(Source(folder))))
    recording = unpacked(Path(snapshot).read_bytes())
    source = ClusterSource(lambda: current, partial(connect_recorded, recording=recording))
    server = WebServer("--listen", "127.0.0.1:0", Feed(source, REFRESH), None)
    print(server.port, flush=True)
    threading.Event().wait()


def _follow(address: str) -> None:
    with urllib.request.urlopen(f"{address}/api/events") as stream:  # noqa: S310  (of this machine)
        while stream.read1(1 << 20):
            pass


def _spent(process: int, seconds: float) -> float:
    """The processor time of a process in the next seconds."""
    before = _processor_time(process)
    time.sleep(seconds)
    return _processor_time(process) - before


def _processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _memory(process: int) -> float:
    lines: dict[str, Any] = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines()
    )
    return int(lines["VmRSS"].split()[0]) / 1024


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _serve(*sys.argv[1:])
    else:
        for row in measure():
            print("| " + " | ".join(row) + " |", flush=True)
