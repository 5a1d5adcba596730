"""What the choice of clusters takes: jobs that KubeStellar carries, all of them in one cycle."""

import random
import statistics
import time
from datetime import UTC, datetime

from fleets import HEADER

from reconciler.capacity.nodes import Node
from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.model import ClusterNodes, JobPodSet, ObservedPlacements, QueuedJob
from reconciler.objects import ClusterName, Ref
from reconciler.quantity import parse
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

REPEATS = 3
NODES = 80
AMOUNTS = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "8"}


def measure(jobs: int = 1000, clusters: int = 20) -> list[tuple[str, str, str]]:
    """Rows of what, target, result."""
    names = [f"c{number:02}" for number in range(clusters)]
    spec, look = _spec(names), _look(names, jobs)
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        decide_placements(spec, look)
        times.append(time.perf_counter() - started)
    what = f"choice among {clusters} clusters of {NODES} nodes each for {jobs:,} jobs that KubeStellar carries"
    return [(what, "-", f"{statistics.median(times):.2f} s")]


def _spec(names: list[str]) -> FleetSpec:
    documents = [f"{HEADER}kind: Fleet\nmetadata: {{name: bench}}\n"]
    documents.append(f"{HEADER}kind: Cluster\nmetadata: {{name: hub}}\nspec: {{role: manager}}\n")
    documents += [f"{HEADER}kind: Cluster\nmetadata: {{name: {name}}}\nspec: {{role: worker}}\n" for name in names]
    documents.append(f"{HEADER}kind: Flavor\nmetadata: {{name: all}}\nspec: {{capacity: {{source: nodes}}}}\n")
    quota = "[{flavor: all, resources: {cpu: 100%}}]"
    documents.append(f"{HEADER}kind: Queue\nmetadata: {{name: q}}\nspec: {{dispatch: kubestellar, quota: {quota}}}\n")
    return parse_fleet(FleetFiles("bench", "", {"fleet/all.yaml": "---\n".join(documents).encode()}))


def _look(names: list[str], jobs: int) -> ObservedPlacements:
    allocatable = {name: parse(amount) for name, amount in AMOUNTS.items()}
    nodes = tuple(Node(f"n{number:03}", {}, (), allocatable) for number in range(NODES))
    chance = random.Random(1)  # noqa: S311  (a world, no secret)
    seen = {ClusterName(name): ClusterNodes(nodes) for name in names}
    return ObservedPlacements(datetime.now(UTC), tuple(_job(number, chance) for number in range(jobs)), seen)


def _job(number: int, chance: random.Random) -> QueuedJob:
    wanted = {"cpu": str(chance.choice([1, 4, 8])), "nvidia.com/gpu": str(chance.choice([1, 2, 4, 8]))}
    pods = JobPodSet("main", chance.randint(1, 4), {name: parse(amount) for name, amount in wanted.items()})
    ref = Ref(ClusterName("hub"), "batch", "Job", "team", f"j{number:04}")
    return QueuedJob(ref, ref.name, "q", (pods,), has_quota=True, reserved_at=f"{number:06}")


if __name__ == "__main__":
    for what, target, result in measure():
        print(f"| {what} | {target} | {result} |")
