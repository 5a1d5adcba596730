"""`make soak`: walk after walk, each with the next seed, until the time is over."""

import argparse
import tempfile
import time
from pathlib import Path

from reconciler.sandbox import fleet as sandbox_fleet
from tests.soak.course import options, prepare, take


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="how long to walk")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first walk")
    parser.add_argument("--steps", type=int, default=30, help="steps of each walk before its peace")
    parser.add_argument("--run", action="store_true", help="walk under a controller, instead of with applies")
    parser.add_argument("--kubestellar", action="store_true", help="walk with a fleet whose jobs KubeStellar carries")
    chosen = parser.parse_args()
    deadline = time.monotonic() + chosen.seconds
    broken, walks, steps = 0, 0, 0
    name = f"soak{chosen.seed}{'-kubestellar' if chosen.kubestellar else ''}"
    sandbox = sandbox_fleet.up(options(name, is_downsynced=chosen.kubestellar))
    try:
        prepare(sandbox)
        while time.monotonic() < deadline:
            seed = chosen.seed + walks
            with tempfile.TemporaryDirectory() as folder:
                said, violations = take(sandbox, Path(folder), seed, chosen.steps, is_run=chosen.run)
            walks, steps, broken = walks + 1, steps + len(said), broken + bool(violations)
            print(f"seed {seed}: {len(said)} steps, {len(violations)} rules broken", flush=True)  # noqa: T201
            if violations:
                print(*said, "RULES BROKEN", *violations, sep="\n  ", flush=True)  # noqa: T201
    finally:
        sandbox.down()
    print(f"{walks} walks, {steps} steps; {broken} walks broke a rule")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
