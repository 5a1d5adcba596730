"""`make bench`: every measurement, printed and kept in RESULTS.md."""

import gc
import platform
from pathlib import Path

import effects
import first_answer
import live
import offline
import online
import page
import placements

RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> None:
    gc.set_threshold(200_000, 50, 50)  # as the command does
    lines: list[str] = []
    for part in (offline, placements, effects, page, first_answer, online, live):
        for what, target, result in part.measure():
            lines.append(f"| {what} | {target} | {result} |")
            print(lines[-1], flush=True)
    table = "\n".join(lines)
    machine = f"{platform.system()} {platform.machine()} with Python {platform.python_version()}"
    text = f"""# Results

Made by `make bench` on {machine}. Ratios are what counts: both sides of each were measured in the
same run on the same machine. 500 pools for five minutes are measured apart: `python benchmarks/pools.py`.

| what | target | result |
|---|---|---|
{table}
"""
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
