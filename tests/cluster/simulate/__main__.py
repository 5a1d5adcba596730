"""Compares clusters, their twins and the arithmetic of effects on many situations.

python -m tests.cluster.simulate [--fair] [--wide] [--release 0.16.2] [FIRST [LAST]]
"""

import argparse
import sys

from reconciler.sandbox.fleet import start_empty
from reconciler.simulate.change import KueueSetup, Release
from tests.cluster.simulate.agreement import Agreement, Verdict
from tests.cluster.simulate.situations import situation
from tests.cluster.simulate.wide import wide_situation

FAIR = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
"""
DIFFERENCES = ("restored", "changed", "computed", "tie", "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.simulate")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("last", type=int, nargs="?", default=29)
    parser.add_argument("--release", default="0.19.0")
    parser.add_argument("--fair", dest="is_fair", action="store_true")
    parser.add_argument("--wide", dest="make", action="store_const", const=wide_situation, default=situation)
    chosen = parser.parse_args()
    setup = KueueSetup(release=Release(chosen.release, chosen.release), configuration=FAIR if chosen.is_fair else "")
    situations = [chosen.make(number, is_fair=chosen.is_fair) for number in range(chosen.first, chosen.last + 1)]
    sandbox = start_empty("agreement")
    try:
        report(Agreement(sandbox=sandbox, setup=setup, situations=situations).verdicts())
    finally:
        sandbox.discard()


def report(verdicts: list[Verdict]) -> None:
    for one in verdicts:
        for what in DIFFERENCES:
            if found := getattr(one, what):
                sys.stdout.write(f"{one.name} ({one.change}): {what}: {found}\n")
    counts = {what: sum(bool(getattr(one, what)) for one in verdicts) for what in DIFFERENCES}
    same = sum(not any(getattr(one, what) for what in DIFFERENCES) for one in verdicts)
    moved = [one.moved for one in verdicts if one.moved]
    sys.stdout.write(
        f"{len(verdicts)} situations, in {len(moved)} of which {sum(moved)} workloads start or lose quota; "
        f"{same} agree, {counts}\n"
    )


if __name__ == "__main__":
    main()
