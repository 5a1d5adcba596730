"""Jobs as `kfleet status` and `kfleet explain workload` show them."""

from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.cli.status_jobs import job_rows, jobs_text
from reconciler.desired import Desired
from reconciler.pipeline.offline import Computed, Source, compute, read_files
from reconciler.placement import Progress
from tests.support import ROOT
from tests.unit.placement.queued_jobs import (
    EAST,
    NOW,
    WEST,
    node,
    placed,
    placement_look,
    placement_spec,
    pods,
    queued_job,
)

ONE = {"cpu": "1"}
EXAMPLE = ROOT / "docs" / "examples" / "kubestellar" / "fleet"


def test_status_counts_jobs_by_cluster_and_state_and_names_those_without_one() -> None:
    jobs = [
        placed(queued_job("a", pods(1, ONE)), EAST),
        placed(queued_job("b", pods(1, ONE)), EAST, Progress.WAITING),
        placed(queued_job("c", pods(1, ONE)), EAST),
        placed(queued_job("d", pods(1, ONE), finished_at=NOW), WEST),
        placed(queued_job("e", pods(1, ONE), has_quota=False), WEST),
        queued_job("f", pods(1, {"cpu": "9"})),
    ]
    computed = Computed(
        placement_spec(), Desired(()), (), placing=placement_look(jobs, east=[node("n", {"cpu": "8"})], west=[])
    )
    why = (
        "no cluster has room for 1 x (cpu 9) on a100; east: no node is large enough, cpu 8 at most; west: has no nodes"
    )
    assert jobs_text(job_rows(computed)) == [
        "jobs on east: 2 running",
        "jobs on east: 1 waiting",
        "jobs on west: 1 finished",
        "jobs on west: 1 without quota",
        f"job team/f: {why}",
    ]


def test_status_cuts_a_long_list_and_shows_nothing_without_a_look() -> None:
    many = [queued_job(f"j{number:02}", pods(1, ONE)) for number in range(12)]
    computed = Computed(placement_spec(), Desired(()), (), placing=placement_look(many, east=[], west=[]))
    lines = jobs_text(job_rows(computed))
    assert len(lines) == 11 and lines[-1] == "and 2 more jobs without a cluster"
    assert job_rows(Computed(placement_spec(), Desired(()), ())) == []


def test_example_is_clean_and_carries_jobs() -> None:
    computed = compute(read_files(Source(path=str(EXAMPLE))))
    assert computed.findings == ()
    assert "BindingPolicy" in {entry.ref.kind for entry in computed.desired.objects}


def test_explain_says_why_the_manager_could_not_be_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert execute(["explain", "workload", "astro/train", "--path", str(EXAMPLE)]) == 1
    assert "manager: " in capsys.readouterr().err
