"""What needs no cluster: start-up, validate, render."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fleets import write_fleet

KFLEET = str(Path(sys.executable).parent / "kfleet")
REPEATS = 5


def measure() -> list[tuple[str, str, str]]:
    """Rows of what, target, result."""
    rows = [("start-up of `kfleet --help`", "0.4 s", f"{_median('--help'):.2f} s")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "validate"
        documents = write_fleet(folder, workers=2, queues=1000)
        seconds = _median("validate", "--repo", str(folder), "--path", "fleet")
        rows.append((f"`kfleet validate` of {documents:,} documents", "3 s", f"{seconds:.2f} s"))
        folder = Path(scratch) / "render"
        write_fleet(folder, workers=10, queues=250)
        command = ("render", "--repo", str(folder), "--path", "fleet", "-o", f"dir={scratch}/out")
        seconds = _median(*command, repeats=3)
        objects = sum(1 for _ in Path(scratch, "out").rglob("*.yaml"))
        rows.append((f"`kfleet render` of {objects:,} objects into files", "-", f"{seconds:.2f} s"))
    return rows


def _median(*arguments: str, repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        subprocess.run([KFLEET, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    for what, target, result in measure():
        print(f"| {what} | {target} | {result} |")
