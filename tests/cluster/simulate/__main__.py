"""Compares twins with their originals on 60 situations, also after a change: `python -m tests.cluster.simulate`."""

import sys
from concurrent.futures import ThreadPoolExecutor

from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import start_empty
from reconciler.simulate.change import KueueSetup, Release
from reconciler.simulate.twin import Twin, World, start_twin
from tests.cluster.simulate.agreement import LIMIT, changed, differences, filled, observed, outcome, restored
from tests.cluster.simulate.situations import situation

FAIR = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
"""
RUNS = ((range(24), "0.19.0", ""), (range(24, 48), "0.19.0", FAIR), (range(48, 60), "0.16.2", ""))


def compare(numbers: range, release: str, configuration: str) -> None:
    """Print what differs between an original and its twin, before and after the same change on both."""
    sandbox = start_empty("agreement")
    try:
        setup = KueueSetup(release=Release(release, release), configuration=configuration)
        situations = [situation(number) for number in numbers]

        def start(name: str, world: World) -> Twin:
            return start_twin(sandbox, ClusterName(name), world)

        original = filled(start, setup, situations)
        before = original.settle(LIMIT)
        original.evictions.clear()
        twin = restored(start, setup, observed(original.api))
        at_first = outcome(twin, twin.settle(LIMIT))
        title = f"{release}, {'fair sharing' if configuration else 'plain'}, {len(situations)} situations"
        sys.stdout.write(f"{title}: restored: {differences(outcome(original, before), at_first, situations)}\n")
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(lambda each: outcome(each, changed(each, situations)), (original, twin))
        sys.stdout.write(f"{title}: changed: {len(one.evicted)} evicted, {differences(one, other, situations)}\n")
    finally:
        sandbox.discard()


if __name__ == "__main__":
    for numbers, release, configuration in RUNS:
        compare(numbers, release, configuration)
