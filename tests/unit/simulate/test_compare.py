"""Workloads before and after a change, and what is said about them."""

import json

import jsonschema
import pytest

from reconciler.objects import ClusterName, Gap
from reconciler.simulate.compare import Sides, moved_since, played_workloads, team_totals
from reconciler.simulate.model import Fate, PlayedCluster, PlayedWorkload, Simulation
from reconciler.simulate.stand_in import Eviction
from reconciler.simulate.text import NOTHING, simulation_lines, simulation_markdown, simulation_record
from reconciler.spec.schema import schema_folder
from tests.builders import Document
from tests.unit.view.live_objects import ADMITTED, NOW, condition, live_workload

EAST = ClusterName("east")
SCHEMA = json.loads((schema_folder() / "simulate.json").read_text())
WORDS = "Preempted to accommodate a workload (UID: taker, JobUID: UNKNOWN) due to reclamation within the cohort"


def running(name: str, cpu: str = "2") -> Document:
    return live_workload(name, *ADMITTED, queue="a", job=f"job-{name}", held={"cpu": cpu})


def waiting(name: str) -> Document:
    return live_workload(name, condition("QuotaReserved", "False", "Pending", "3 more needed"), job=f"job-{name}")


def played(
    before: list[Document], after: list[Document], evictions: dict[str, Eviction] | None = None
) -> tuple[PlayedWorkload, ...]:
    sides = Sides(
        cluster=EAST,
        before=tuple(before),
        after=tuple(after),
        evictions=evictions or {},
        originals={one["metadata"]["uid"]: one for one in before},
        queues={("team", "main"): "a"},
        tenants={"team": "blue"},
    )
    return played_workloads(sides)


def simulation(workloads: tuple[PlayedWorkload, ...], **more: object) -> Simulation:
    cluster = PlayedCluster(name=EAST, release="v0.19.0", played="0.19.0", workloads=workloads, seconds=4)
    return Simulation(base="main", head="feature", taken_at=NOW, clusters=(cluster,), seconds=12, **more)  # type: ignore[arg-type]


PREEMPTION = {"loser": Eviction("Preempted: InCohortReclamation", WORDS)}
CHANGED = played(
    [running("loser"), waiting("taker"), running("stays"), waiting("waits")],
    [waiting("loser"), running("taker", "3"), running("stays"), waiting("waits"), waiting("new")],
    PREEMPTION,
)


@pytest.mark.parametrize(
    ("before", "after", "reason", "fate"),
    [
        (running("w"), running("w"), "", Fate.RUNS),
        (running("w"), waiting("w"), "Preempted: InClusterQueue", Fate.PREEMPTED),
        (running("w"), waiting("w"), "ClusterQueueStopped", Fate.EVICTED),
        (running("w"), waiting("w"), "", Fate.EVICTED),
        (running("w"), running("w"), "Preempted: InClusterQueue", Fate.RESTARTED),
        (running("w"), live_workload("w", *ADMITTED, condition("Finished")), "", Fate.ENDED),
        (waiting("w"), running("w"), "", Fate.ADMITTED),
        (waiting("w"), waiting("w"), "", Fate.WAITS),
        (waiting("w"), waiting("w"), "Preempted: InClusterQueue", Fate.WAITS),
    ],
)
def test_fate_follows_from_both_sides_and_the_eviction(
    before: Document, after: Document, reason: str, fate: Fate
) -> None:
    (found,) = played([before], [after], {"w": Eviction(reason, "said")} if reason else {})
    assert found.fate is fate


def test_preempted_workload_names_who_took_its_quota() -> None:
    found = {one.name: one for one in CHANGED}
    loser = found["job-loser"]
    assert (loser.fate, loser.by, loser.why) == (Fate.PREEMPTED, "team/job-taker", WORDS)
    assert (loser.kind, loser.queue, loser.tenant) == ("Job", "a", "blue")
    assert (found["job-waits"].why, found["job-waits"].queue) == ("3 more needed", "a")
    assert found["job-new"].is_submitted


def test_teams_count_what_they_had_and_have() -> None:
    (team,) = team_totals(CHANGED)
    assert (team.name, team.is_tenant) == ("blue", True)
    # The submitted one waits afterwards, and was not there before.
    assert (team.running, team.pending) == ((2, 2), (2, 3))
    assert [(str(before), str(after)) for before, after in team.held.values()] == [("4", "5")]


def test_text_says_who_loses_by_whom_and_why_others_wait() -> None:
    lines = [*simulation_lines(simulation(CHANGED))]
    assert f"  preempted: east/Job/team/job-loser (queue a, tenant blue): by team/job-taker: {WORDS}" in lines
    assert "  admitted: east/Job/team/job-taker (queue a, tenant blue)" in lines
    assert "  still pending: east/Job/team/job-waits (queue a, tenant blue): 3 more needed" in lines
    assert "  blue  running 2  pending 2 -> 3  cpu 4 -> 5" in lines
    assert lines[-1] == "1 preempted, 2 still pending, 1 admitted, 1 keeps running (12 s)"


def test_long_lists_are_cut_with_a_count() -> None:
    workloads = played([waiting(f"w{number}") for number in range(12)], [waiting(f"w{number}") for number in range(12)])
    assert "  still pending: and 2 more" in [*simulation_lines(simulation(workloads))]


def test_nothing_to_simulate_and_unknown_clusters_are_said() -> None:
    empty = Simulation(base="a", head="b", taken_at=NOW)
    assert [*simulation_lines(empty)] == [NOTHING]
    assert NOTHING in simulation_markdown(empty)
    lost = Simulation(base="a", head="b", taken_at=NOW, unknown=(Gap(EAST, "simulate", "not observed"),))
    assert "unknown: east: simulate: not observed" in [*simulation_lines(lost)]
    assert "unknown: east" in simulation_markdown(lost)


def test_comment_shows_harm_first_and_folds_the_rest() -> None:
    text = simulation_markdown(simulation(CHANGED))
    shown, _, folded = text.partition("<details>")
    assert shown.index("**preempted**") < shown.index("**admitted**")
    assert "job-waits" not in shown and "job-waits" in folded


def test_record_has_every_workload_and_what_was_moved_before() -> None:
    record = simulation_record(simulation(CHANGED, notes=("said",)))
    jsonschema.validate(record, SCHEMA)
    assert record["counts"] == {
        "preempted": 1, "evicted": 0, "restarted": 0, "still pending": 2, "admitted": 1, "keeps running": 1,
        "ended": 0,
    }  # fmt: skip
    assert record["clusters"][0]["kueue"] == {"runs": "v0.19.0", "played": "0.19.0", "exact": True}
    assert record["clusters"][0]["workloads"][0] == {
        "fate": "preempted", "namespace": "team", "kind": "Job", "name": "job-loser", "queue": "a", "tenant": "blue",
        "submitted": False, "before": {"cpu": "2"}, "after": {}, "reason": "Preempted: InCohortReclamation",
        "why": WORDS, "by": "team/job-taker",
    }  # fmt: skip
    assert record["notes"] == ["said"]


def test_workloads_that_move_before_the_change_are_named() -> None:
    observed = [running("same"), running("lost"), waiting("started"), live_workload("ended", condition("Finished"))]
    restored = [running("same"), waiting("lost"), running("started")]
    assert [*moved_since(observed, restored)] == ["team/lost", "team/started"]
