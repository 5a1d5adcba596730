"""`kfleet diff` with a base that cannot be found, and with the capacity of a snapshot."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git import Repo

from reconciler import cli
from reconciler.capacity.codec import look_record
from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.snapshot.model import FlavorKey
from reconciler.spec.enums import CapacitySource
from tests.builders import cluster_document, fleet_document, observed_flavor, open_queue, yaml_of

NOW = datetime(2026, 5, 4, tzinfo=UTC)
Capture = pytest.CaptureFixture[str]


def write(folder: Path, share: str) -> None:
    queue = open_queue("night", "cpu", {"cpu": share}, clusters={"names": ["hub"]})
    documents = (fleet_document(), cluster_document("hub", "standalone"), observed_flavor("cpu", "nodes"), queue)
    (folder / "fleet").mkdir(parents=True, exist_ok=True)
    (folder / "fleet" / "fleet.yaml").write_text(yaml_of(*documents))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits of a queue that gets half of what its nodes have, and a quarter in the working tree."""
    folder = tmp_path / "repo"
    with Repo.init(folder, mkdir=True, initial_branch="main") as repository:
        for share in ("60%", "50%"):
            write(folder, share)
            repository.git.add(all=True)
            repository.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", share])
    write(folder, "25%")
    monkeypatch.chdir(folder)
    return folder


def capacity_file(folder: Path, cpu: str) -> Path:
    source = SourceKey(CapacitySource.NODES, FlavorKey(ClusterName("hub"), "cpu"))
    amounts = {"cpu": parse(cpu)}
    ledger = Ledger((Entry(Sample(source, NOW, amounts), NOW, amounts),))
    path = folder / "seen.json"
    path.write_text(json.dumps(look_record(ObservedCapacity(NOW, ledger, ledger))))
    return path


def test_shares_become_numbers_with_the_capacity_of_a_snapshot(repo: Path, tmp_path: Path, capsys: Capture) -> None:
    assert cli.execute(["diff", "--base", "main"]) == 0
    assert "50% of observed -> 25% of observed" in capsys.readouterr().out
    assert cli.execute(["diff", "--base", "main", "--snapshot", str(capacity_file(tmp_path, "24"))]) == 0
    shown = capsys.readouterr().out
    assert "  hub  night  cpu  cpu  nominal  12 -> 6  (-6)" in shown and "of observed" not in shown
    assert (repo / "fleet").is_dir()


@pytest.mark.usefixtures("repo")
def test_base_that_does_not_exist_says_what_to_do(capsys: Capture) -> None:
    assert cli.execute(["diff", "--base", "trunk"]) == 1
    said = capsys.readouterr().err
    assert "there is no revision 'trunk'" in said
    assert "hint:  fetch trunk, or name the revision to compare with: --base REV" in said


def test_base_in_a_shallow_clone_says_how_to_get_the_history(
    repo: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo(repo) as repository:
        first = repository.git.rev_list("--max-parents=0", "HEAD")
    Repo.clone_from(f"file://{repo}", tmp_path / "shallow", depth=1).close()
    monkeypatch.chdir(tmp_path / "shallow")
    assert cli.execute(["diff", "--base", first]) == 1
    assert "hint:  this clone is shallow; fetch the history (git fetch --unshallow origin, " in capsys.readouterr().err
