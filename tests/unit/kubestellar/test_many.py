"""Many jobs at once: all of them in one cycle, never more than there is, and always the same."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.model import ClusterNodes, Decision, ObservedPlacements, QueuedJob, Verb
from reconciler.objects import ClusterName
from reconciler.spec.enums import PlacementRule
from tests.unit.kubestellar.queued_jobs import NOW, node, placed, placement_spec, pods, queued_job

CLUSTERS = [f"c{number:02}" for number in range(20)]


def random_look(seed: int, jobs: int = 1000, nodes: int = 25, cores: str = "32", gpus: str = "8") -> ObservedPlacements:
    chance = random.Random(seed)  # noqa: S311  (a look, no secret)
    found = {
        ClusterName(name): ClusterNodes(
            tuple(node(f"n{one:03}", {"cpu": cores, "memory": "128Gi", "nvidia.com/gpu": gpus}) for one in range(nodes))
        )
        for name in CLUSTERS
    }
    many = [
        queued_job(
            f"j{number:04}",
            pods(
                chance.randint(1, 4),
                {"cpu": str(chance.choice([1, 4, 8])), "nvidia.com/gpu": str(chance.choice([1, 2, 4, 8]))},
            ),
            reserved_at=f"{number:06}",
        )
        for number in range(jobs)
    ]
    return ObservedPlacements(NOW, tuple(many), found)


def test_thousand_jobs_are_placed_in_one_cycle_where_there_is_room() -> None:
    decisions = decide_placements(placement_spec("{}", CLUSTERS), random_look(5, nodes=80))
    assert Counter(decision.verb for decision in decisions) == {Verb.PLACE: 1000}
    assert {decision.cluster for decision in decisions} == set(CLUSTERS)


@pytest.mark.parametrize("rule", list(PlacementRule))
def test_thousand_jobs_never_exceed_the_clusters_and_leave_no_hole_that_fits(rule: PlacementRule) -> None:
    spec = placement_spec(f"{{placement: {{rule: {rule}}}}}", CLUSTERS)
    seen = random_look(1)
    decisions = decide_placements(spec, seen)
    assert len(decisions) == 1000
    assert {decision.verb for decision in decisions} == {Verb.PLACE, Verb.WAIT}
    gpus, cores = used(decisions, "nvidia.com/gpu"), used(decisions, "cpu")
    assert all(amount <= 25 * 8 for amount in gpus.values())
    assert all(amount <= 25 * 32 for amount in cores.values())
    # More was asked for than there is: what could not be placed is what no cluster has a hole for.
    assert sum(gpus.values()) > 0.97 * 20 * 25 * 8


def test_jobs_never_exceed_the_scarcer_of_two_resources() -> None:
    """Nodes with as many GPUs as anybody wants: here the processors are what is full."""
    decisions = decide_placements(placement_spec("{}", CLUSTERS), random_look(1, jobs=600, cores="8", gpus="64"))
    cores = used(decisions, "cpu")
    assert all(amount <= 25 * 8 for amount in cores.values())
    assert sum(cores.values()) > 0.97 * 20 * 25 * 8


def used(decisions: Iterable[Decision], resource: str) -> Counter[str]:
    """What was placed on each cluster."""
    found: Counter[str] = Counter()
    for decision in decisions:
        if decision.cluster is not None:
            pods = decision.job.pod_sets
            found[decision.cluster] += sum(one.count * one.requests[resource].nanos // 10**9 for one in pods)
    return found


def test_same_look_gives_the_same_placements_whatever_the_order_of_its_parts() -> None:
    spec, seen = placement_spec("{}", CLUSTERS[:3]), random_look(2, jobs=200)
    there = [placed(one, ClusterName(CLUSTERS[number % 3])) for number, one in enumerate(seen.jobs[:80])]
    seen = replace(seen, jobs=(*there, *seen.jobs[80:]))
    shuffled = list(seen.jobs)
    random.Random(3).shuffle(shuffled)  # noqa: S311  (the same)
    nodes = {name: ClusterNodes(tuple(reversed(one.nodes))) for name, one in sorted(seen.nodes.items(), reverse=True)}
    again = ObservedPlacements(NOW, tuple(shuffled), nodes)
    assert decide_placements(spec, seen) == decide_placements(spec, again)


def test_placed_jobs_leave_no_room_for_more_than_the_clusters_hold() -> None:
    spec, seen = placement_spec("{}", CLUSTERS[:2]), random_look(4, jobs=400, nodes=10)
    first = decide_placements(spec, seen)
    there = [placed(one.job, one.cluster) for one in first if one.cluster is not None]
    waiting: list[QueuedJob] = [one.job for one in first if one.cluster is None]
    again = decide_placements(spec, ObservedPlacements(NOW, (*there, *waiting), seen.nodes))
    assert there and waiting
    assert {one.verb for one in again} == {Verb.STAY, Verb.WAIT}
