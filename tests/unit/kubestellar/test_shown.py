"""Jobs as `kfleet status` and `kfleet why` show them."""

from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.cli.status import job_rows, jobs_text
from reconciler.kubestellar.model import ObservedPlacements, Progress
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.render import Rendered, Snapshot
from reconciler.render.model import Desired
from tests.support import ROOT
from tests.unit.kubestellar.queued_jobs import (
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


def rendered_with(placements: ObservedPlacements | None) -> Rendered:
    return Rendered(desired=Desired(()), snapshot=Snapshot(spec=placement_spec(), placements=placements))


def test_status_counts_jobs_by_cluster_and_state_and_names_those_without_one() -> None:
    jobs = [
        placed(queued_job("a", pods(1, ONE)), EAST),
        placed(queued_job("b", pods(1, ONE)), EAST, Progress.WAITING),
        placed(queued_job("c", pods(1, ONE)), EAST),
        placed(queued_job("d", pods(1, ONE), finished_at=NOW), WEST),
        placed(queued_job("e", pods(1, ONE), has_quota=False), WEST),
        queued_job("f", pods(1, {"cpu": "9"})),
    ]
    rendered = rendered_with(placement_look(jobs, east=[node("n", {"cpu": "8"})], west=[]))
    why = (
        "no cluster has room for 1 x (cpu 9) on a100; east: no node is large enough, cpu 8 at most; west: has no nodes"
    )
    assert jobs_text(job_rows(rendered)) == [
        "jobs on east: 2 running",
        "jobs on east: 1 waiting",
        "jobs on west: 1 finished",
        "jobs on west: 1 without quota",
        f"job team/f: {why}",
    ]


def test_status_cuts_a_long_list_and_shows_nothing_without_a_look() -> None:
    many = [queued_job(f"j{number:02}", pods(1, ONE)) for number in range(12)]
    rendered = rendered_with(placement_look(many, east=[], west=[]))
    lines = jobs_text(job_rows(rendered))
    assert len(lines) == 11 and lines[-1] == "and 2 more jobs without a cluster"
    assert job_rows(rendered_with(None)) == []


def test_example_is_clean_and_carries_jobs() -> None:
    computed = load_files(read_files(Source(path=str(EXAMPLE))))
    assert computed.findings == ()
    assert "BindingPolicy" in {entry.ref.kind for entry in computed.desired.objects}


def test_why_names_the_clusters_that_could_not_be_observed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert execute(["why", "astro/train", "--path", str(EXAMPLE)]) == 4
    shown = capsys.readouterr()
    assert shown.out == "unknown: astro/train was not found on the clusters that were observed\n"
    assert "not observed: manager: the cluster: " in shown.err
