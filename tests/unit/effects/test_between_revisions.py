"""Who is affected by the step from one revision to another, on the clusters of a snapshot."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler import cli
from reconciler.snapshot.recording import packed
from tests import fast_yaml
from tests.builders import (
    Document,
    cluster_document,
    cpu_group,
    flavor,
    fleet_document,
    local_queue,
    open_queue,
    resource_flavor,
    tenant,
)
from tests.repositories import commit, git
from tests.support import ROOT
from tests.unit.effects.recorded import recording_of
from tests.unit.effects.test_effects import TEAM, running, waiting
from tests.unit.view.live_objects import live_queue

Capture = pytest.CaptureFixture[str]
QUEUE: dict[str, Any] = {"namespaceSelector": {}}
LIVE = (
    TEAM,
    resource_flavor("default"),
    live_queue("a", cpu_group("4"), "3", **QUEUE),
    local_queue("main", "team", "a"),
    running("runs", "3", queueName="main"),
    waiting("waits", "2"),
)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / "fleet").mkdir(parents=True)
    monkeypatch.chdir(folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    write(folder, *team(4))
    commit(folder)
    (folder.parent / "world.json").write_bytes(packed(recording_of(east=LIVE), is_packed=False))
    return folder


def team(cpu: int, **more: Any) -> tuple[Document, ...]:
    return (
        flavor("default"),
        open_queue("a", "default", {"cpu": cpu}, **more),
        tenant("vision", "a", "team", localQueue="main"),
    )


def write(folder: Path, *documents: Document) -> None:
    everything = (fleet_document("demo"), cluster_document("east"), *documents)
    (folder / "fleet" / "fleet.yaml").write_text(fast_yaml.safe_dump_all(everything))


def diff(capsys: Capture, *options: str) -> str:
    assert cli.execute(["diff", "--snapshot", "../world.json", *options]) == 0
    return capsys.readouterr().out


def affected(capsys: Capture) -> list[tuple[str, str, str]]:
    found = json.loads(diff(capsys, "-o", "json"))
    jsonschema.validate(found, json.loads((ROOT / "schemas" / "diff.json").read_text()))
    assert found["effects"]["unknown"] == []
    return [(one["impact"], one["name"], one["tenant"]) for one in found["effects"]["workloads"]]


def test_drain_cut_and_removed_local_queue_name_the_jobs(repo: Path, capsys: Capture) -> None:
    write(repo, *team(4, stopPolicy="HoldAndDrain"))
    assert affected(capsys) == [("evicted", "runs", "vision"), ("stranded", "waits", "vision")]
    write(repo, *team(1))
    assert affected(capsys) == [("never admitted", "waits", "vision")]
    write(repo, *team(4)[:2])
    assert ("stranded", "waits", "") in affected(capsys)


SHARED: dict[str, Any] = {"cohort": "all", "preemption": {"reclaimWithinCohort": "Any"}}


def two_teams(cpu: int, **more: Any) -> tuple[Document, ...]:
    """The queue a and another one that may take back what a has borrowed of it."""
    return *team(cpu, **SHARED, **more), open_queue("b", "default", {"cpu": 4}, **SHARED)


@pytest.fixture
def shared_repo(repo: Path) -> Path:
    live_spec = {"cohortName": "all", "preemption": SHARED["preemption"]}
    queues = [live_queue(name, cpu_group("4"), used, **QUEUE, **live_spec) for name, used in (("a", "3"), ("b", "0"))]
    others = [one for one in LIVE if one["kind"] != "ClusterQueue"]
    (repo.parent / "world.json").write_bytes(packed(recording_of(east=[*others, *queues]), is_packed=False))
    write(repo, *two_teams(4))
    commit(repo)
    return repo


@pytest.mark.parametrize(
    ("documents", "impact", "name"),
    [
        pytest.param(two_teams(4, stopPolicy="HoldAndDrain"), "evicted", "runs", id="drain over a running job"),
        pytest.param(two_teams(2), "reclaimable", "runs", id="quota below what is in use"),
        pytest.param(
            tuple(one for one in two_teams(4) if one["kind"] != "Tenant"),
            "stranded",
            "waits",
            id="LocalQueue that goes",
        ),
    ],
)
def test_text_json_and_comment_name_the_job_that_loses(
    shared_repo: Path, capsys: Capture, documents: tuple[Document, ...], impact: str, name: str
) -> None:
    write(shared_repo, *documents)
    assert (impact, name) in [one[:2] for one in affected(capsys)]
    row = f"{impact}: east/Job/team/{name} (queue a"
    assert f"  {row}" in diff(capsys)
    shown, _, _ = diff(capsys, "-o", "markdown").partition("<details><summary>all effects")
    assert f"- {row}" in shown


def test_comment_has_a_section_with_who_is_affected(repo: Path, capsys: Capture) -> None:
    write(repo, *team(4, stopPolicy="HoldAndDrain"))
    lines = diff(capsys, "-o", "markdown").splitlines()
    at = lines.index("**Who is affected**, by a snapshot of 2026-11-18 16:00 UTC: 2 workloads lose something, 0 gain")
    assert lines[at + 2].startswith("- evicted: east/Job/team/runs (queue a, tenant vision)")
    assert "stranded: east/Job/team/waits" in diff(capsys)


def test_change_without_effects_says_so(repo: Path, capsys: Capture) -> None:
    (repo / "fleet" / "more.yaml").write_text(fast_yaml.safe_dump(flavor("other")))
    assert "  no queue, no job and no quota changes" in diff(capsys).splitlines()
    assert affected(capsys) == []


def test_changes_that_the_base_still_has_to_make_do_not_count(repo: Path, capsys: Capture) -> None:
    write(repo, *team(1))
    commit(repo)
    write(repo, *team(1), flavor("other"))
    assert affected(capsys) == []


def test_cluster_that_is_not_in_the_snapshot_is_unknown(repo: Path, capsys: Capture) -> None:
    (repo.parent / "world.json").write_bytes(packed(recording_of(west=LIVE), is_packed=False))
    write(repo, *team(1))
    assert "unknown: east: workloads: the cluster was not observed" in diff(capsys)
