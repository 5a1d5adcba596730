"""Nodes and pools that are gone, and running jobs that end."""

import json
from datetime import timedelta
from typing import Any

import jsonschema
import pytest

from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.simulate.model import PlayedCluster, Simulation, StartAfter
from reconciler.simulate.restore import counts_nodes
from reconciler.simulate.stand_in import endings, next_end
from reconciler.simulate.text import simulation_lines, simulation_record
from reconciler.simulate.whatif import WhatIfError, changed_capacity, lost_workloads, removed_nodes
from reconciler.snapshot.model import FlavorKey, FleetObjects, PoolKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.schema import schema_folder
from tests.builders import Document, native, observed_flavor, resource_flavor, spec_of
from tests.unit.view.live_objects import ADMITTED, NOW, condition, live_workload, local_queue_of, seen_cluster

SCHEMA = json.loads((schema_folder() / "simulate.json").read_text())
EAST, WEST = ClusterName("east"), ClusterName("west")
READY = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}}
SPEC = spec_of(observed_flavor("cpu", "nodes", nodeLabels={"class": "cpu"}))
NODES = SourceKey(CapacitySource.NODES, FlavorKey(EAST, "cpu"))
POOL = SourceKey(CapacitySource.NATS, PoolKey("nats://bus", "pools", "cineca"))


def node(name: str, kind: str = "cpu") -> Document:
    labels = {"class": kind}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": READY}


OBJECTS = FleetObjects(
    taken_at=NOW,
    clusters={
        EAST: seen_cluster("east", node("a1"), node("a2"), node("b1"), node("g1", "gpu")),
        WEST: seen_cluster("west", node("a1")),
    },
)


def capacity(**amounts: str) -> ObservedCapacity:
    """What nodes (`cpu`) and a pool (`pool`) have, of which a smaller value does not count yet."""
    entries = [
        Entry(Sample(source, NOW, {"cpu": parse(amounts[name])}), NOW, {"cpu": parse("99")}, {"cpu": NOW})
        for name, source in (("cpu", NODES), ("pool", POOL))
    ]
    return ObservedCapacity(NOW, ledger=Ledger(tuple(entries)))


def granted(found: ObservedCapacity) -> list[str]:
    assert all(not entry.shrink_pending_since or str(entry.granted["cpu"]) == "99" for entry in found.ledger.entries)
    return [str(entry.granted["cpu"]) for entry in found.ledger.entries]


def test_patterns_choose_nodes_of_all_clusters_or_of_one() -> None:
    assert removed_nodes(OBJECTS, ["a*"]) == {EAST: {"a1", "a2"}, WEST: {"a1"}}
    assert removed_nodes(OBJECTS, ["east/a1", "east/b*"]) == {EAST: {"a1", "b1"}}
    with pytest.raises(WhatIfError, match="no observed node matches; there are: east/a1, east/a2"):
        removed_nodes(OBJECTS, ["c*"])


def test_removed_nodes_lower_the_capacity_of_their_flavor_at_once() -> None:
    # The fourth node is of no flavor, and one pod outside of Kueue uses 2 cpus.
    found = changed_capacity(capacity(cpu="10", pool="8"), SPEC, OBJECTS, removed_nodes(OBJECTS, ["east/a*"]), [])
    assert granted(found) == ["2", "99"]
    found = changed_capacity(capacity(cpu="10", pool="8"), SPEC, OBJECTS, removed_nodes(OBJECTS, ["east/*"]), [])
    assert granted(found) == ["0", "99"]
    found = changed_capacity(capacity(cpu="10", pool="8"), SPEC, OBJECTS, removed_nodes(OBJECTS, ["west/a1"]), [])
    assert granted(found) == ["99", "99"]


def test_pool_has_nothing_and_an_unknown_one_is_an_error() -> None:
    assert granted(changed_capacity(capacity(cpu="10", pool="8"), SPEC, OBJECTS, {}, ["cineca"])) == ["99", "0"]
    with pytest.raises(WhatIfError, match=r"no such pool was observed.*cineca"):
        changed_capacity(capacity(cpu="10", pool="8"), SPEC, OBJECTS, {}, ["cinecca"])


def sent(name: str, worker: str) -> Document:
    workload = running(name, podSets=[{"name": "main", "count": 2}], priority=5, priorityClassRef={"name": "high"})
    workload["status"]["clusterName"] = worker
    return workload


def test_jobs_of_a_worker_that_is_down_go_to_each_other_worker_with_their_queue() -> None:
    hub = seen_cluster("hub", sent("one", "east"), sent("two", "west"), live_workload("waits"))
    others = [
        seen_cluster("east", local_queue_of("q")),
        seen_cluster("west", local_queue_of("q")),
        seen_cluster("north"),
    ]
    objects = FleetObjects(taken_at=NOW, manager=hub.name, clusters={one.name: one for one in (hub, *others)})
    found = lost_workloads(objects, EAST)
    assert found.keys() == {WEST}
    (workload,) = found[WEST]
    assert workload["metadata"] == {"namespace": "team", "name": "one"}
    assert workload["spec"] == {"queueName": "main", "podSets": [{"name": "main", "count": 2}], "priority": 5}
    with pytest.raises(WhatIfError, match="the manager has no running job there"):
        lost_workloads(objects, ClusterName("north"))


def test_kueue_counts_nodes_only_beside_a_topology() -> None:
    assert not counts_nodes(OBJECTS.clusters[EAST])
    assert counts_nodes(seen_cluster("east", resource_flavor("near", topologyName="racks")))


def job(name: str, deadline: int | None = None, expected: str = "") -> Document:
    marks: dict[str, Any] = {"annotations": {"kfleet.dev/expected-duration": expected}} if expected else {}
    content: dict[str, Any] = {} if deadline is None else {"activeDeadlineSeconds": deadline}
    return {**native("Job", name, content, namespace="team", **marks), "apiVersion": "batch/v1"}


def running(name: str, **more: Any) -> Document:
    return live_workload(name, *ADMITTED, job=name, held={"cpu": "1"}, **more)


# Admitted at half past three; now it is four.
RUNNING = [
    running("none"),
    running("deadline"),
    running("expected"),
    running("limit", maximumExecutionTimeSeconds=2400),
]
JOBS = [job("deadline", 3600, "5h"), job("expected", expected="2h"), job("none", expected="soon"), job("limit")]


def test_remaining_time_is_the_shortest_that_is_known() -> None:
    found = {name: one.left for name, one in endings(RUNNING, JOBS, NOW).items()}
    assert found == {
        "none": None,
        "deadline": timedelta(minutes=30),
        "expected": timedelta(minutes=90),
        "limit": timedelta(minutes=10),
    }


def test_jobs_end_by_their_remaining_time_and_the_unknown_ones_last() -> None:
    known, left, order = endings(RUNNING, JOBS, NOW), list(RUNNING), []
    while ending := next_end(left, known):
        order.append(ending.name)
        left = [one for one in left if one["metadata"]["uid"] != ending.uid]
    assert order == ["team/limit", "team/deadline", "team/expected", "team/none"]
    assert next_end([live_workload("waits", condition("QuotaReserved", "False"))], known) is None
    assert next_end([running("submitted")], known) is None  # what was added has only just begun


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (StartAfter(latest=timedelta()), "submitted jobs start at once"),
        (
            StartAfter(ends=("team/a", "team/b"), latest=timedelta(minutes=95)),
            "submitted jobs start after 2 ends of running jobs (in 1h35m at the latest): team/a, team/b",
        ),
        (
            StartAfter(ends=("team/a",)),
            "submitted jobs start after 1 end of running jobs (no time is known for all of them): team/a",
        ),
        (
            StartAfter(ends=("team/a",), waiting=("team/x",)),
            "submitted jobs still wait after 1 end of running jobs: team/x",
        ),
        (StartAfter(waiting=("team/x",)), "submitted jobs still wait and no running job is left: team/x"),
    ],
)
def test_start_of_submitted_jobs_is_said(start: StartAfter, text: str) -> None:
    cluster = PlayedCluster(name=EAST, release="v0.19.0", played="0.19.0", workloads=(), start=start)
    simulation = Simulation(base="a", head="b", taken_at=NOW, clusters=(cluster,))
    assert f"  {text}" in [*simulation_lines(simulation)]
    record = simulation_record(simulation)
    jsonschema.validate(record, SCHEMA)
    assert record["clusters"][0]["start"]["ends"] == list(start.ends)
