"""`kfleet validate`: every problem with file and line, in three formats."""

import json
from pathlib import Path

import git
import pytest

from reconciler import cli
from tests.repositories import example_repository

GOOD = """\
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: test}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: one}
spec: {role: standalone}
"""
UNKNOWN_QUEUE = """\
apiVersion: kfleet.dev/v1alpha1
kind: Tenant
metadata: {name: astro}
spec:
  namespaces: [astro]
  queue: nowhere
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fleet_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "fleet.yaml").write_text(GOOD)
    return tmp_path / "fleet"


@pytest.mark.usefixtures("fleet_folder")
def test_validate_of_a_good_fleet_counts_nothing(capsys: Capture) -> None:
    assert cli.execute(["validate"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "0 errors, 0 warnings\n"
    assert captured.err == "fleet: working tree (uncommitted)\n"


def test_validate_says_once_what_it_does_not_read(fleet_folder: Path, capsys: Capture) -> None:
    (fleet_folder / "queues.yaml.bak").write_text("a: 1")
    assert cli.execute(["validate"]) == 0
    assert capsys.readouterr().err == (
        "fleet: working tree (uncommitted)\n"
        "note: 1 file is not read: fleet/queues.yaml.bak (does not end in .yaml, .yml, .json)\n"
    )
    for number in range(6):
        (fleet_folder / f"{number}.txt").touch()
    cli.execute(["validate"])
    assert capsys.readouterr().err.endswith("and 2 more\n")


def test_validate_reads_a_queue_from_json(fleet_folder: Path, capsys: Capture) -> None:
    broken = {"apiVersion": "kfleet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"qouta": []}}
    (fleet_folder / "queue.json").write_text(json.dumps(broken, indent="\t"))
    assert cli.execute(["validate"]) == 1
    assert "fleet/queue.json:8: error:" in capsys.readouterr().out


def test_validate_names_file_line_field_and_rule(fleet_folder: Path, capsys: Capture) -> None:
    (fleet_folder / "tenants.yaml").write_text(UNKNOWN_QUEUE)
    assert cli.execute(["validate"]) == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first.startswith("fleet/tenants.yaml:6: error: KF001: spec.queue: ")
    assert "nowhere" in first
    assert summary == "1 error, 0 warnings"


def test_validate_reports_every_unreadable_file_at_once(fleet_folder: Path, capsys: Capture) -> None:
    (fleet_folder / "a.yaml").write_text("a: [1")
    (fleet_folder / "b.yaml").write_text("a: 1\na: 2\n")
    (fleet_folder / "c.yaml").write_bytes(b"\xff\xfe")
    assert cli.execute(["validate"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["fleet/a.yaml", "fleet/b.yaml", "fleet/c.yaml"]
    assert all(" error: KF200: " in line for line in lines[:-1])


def test_validate_prints_json_for_machines(fleet_folder: Path, capsys: Capture) -> None:
    (fleet_folder / "tenants.yaml").write_text(UNKNOWN_QUEUE)
    assert cli.execute(["validate", "-o", "json"]) == 1
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["rule"] == "KF001" and finding["severity"] == "error"
    assert (finding["file"], finding["line"], finding["field"]) == ("fleet/tenants.yaml", 6, "spec.queue")


def test_validate_prints_annotations_that_survive_odd_text(fleet_folder: Path, capsys: Capture) -> None:
    (fleet_folder / "ten,ants:%.yaml").write_text(UNKNOWN_QUEUE.replace("nowhere", '"no\\nwhere"'))
    assert cli.execute(["validate", "-o", "github"]) == 1
    line = capsys.readouterr().out.rstrip("\n")
    assert line.startswith("::error file=fleet/ten%2Cants%3A%25.yaml,line=6,title=KF")
    assert "\n" not in line


def test_validate_reads_a_revision_and_not_the_files_around_it(fleet_folder: Path, capsys: Capture) -> None:
    repo = git.Repo.init(fleet_folder.parent)
    repo.index.add(["fleet/fleet.yaml"])
    commit = repo.index.commit(
        "good", author=git.Actor("a", "a@example.test"), committer=git.Actor("a", "a@example.test")
    )
    repo.close()
    (fleet_folder / "tenants.yaml").write_text(UNKNOWN_QUEUE)
    assert cli.execute(["validate"]) == 1
    assert cli.execute(["validate", "--revision", "HEAD"]) == 0
    assert f"revision {commit.hexsha[:12]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--path", "nowhere"], "there is no folder"),
        (["--revision", "HEAD"], "is not a git repository"),
        (["--repo", "http://example.test/x.git"], "the transport 'http' is not allowed"),
        (["--overlay", "nowhere"], "nowhere"),
    ],
)
@pytest.mark.usefixtures("fleet_folder")
def test_validate_of_a_wrong_source_is_one_message(arguments: list[str], message: str, capsys: Capture) -> None:
    assert cli.execute(["validate", *arguments]) == 1
    captured = capsys.readouterr()
    assert message in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_folder_in_a_repository_is_read_as_the_folder_that_it_is(tmp_path: Path, capsys: Capture) -> None:
    outer = example_repository(tmp_path / "outer")
    inner = outer / "examples" / "fleet"
    inner.mkdir(parents=True)
    (inner / "fleet.yaml").write_text(GOOD)
    assert cli.execute(["render", "--repo", str(inner.parent), "--cluster", "hub"]) == 1
    assert "there are: one" in capsys.readouterr().err
    assert cli.execute(["apply", "--repo", str(inner.parent)]) == 3
    assert "is not in a git repository, so there is no commit to apply" in capsys.readouterr().err


def test_validate_reports_two_tenants_with_one_local_queue_once(fleet_folder: Path, capsys: Capture) -> None:
    flavor = "apiVersion: kfleet.dev/v1alpha1\nkind: Flavor\nmetadata: {name: f}\nspec: {capacity: {source: nodes}}\n"
    queue = (
        "apiVersion: kfleet.dev/v1alpha1\nkind: Queue\nmetadata: {name: q}\n"
        "spec: {quota: [{flavor: f, resources: {cpu: 1}}]}\n"
    )
    teams = [UNKNOWN_QUEUE.replace("nowhere", "q").replace("name: astro", f"name: {name}") for name in ("a", "b")]
    (fleet_folder / "all.yaml").write_text("---\n".join((flavor, queue, *teams)))
    assert cli.execute(["validate"]) == 1
    (first, summary) = capsys.readouterr().out.splitlines()
    assert " KF065: " in first and summary == "1 error, 0 warnings"


PROD = """\
apiVersion: kfleet.dev/v1alpha1
kind: Overlay
metadata: {name: prod}
spec:
  patches: [{target: {kind: Cluster, name: %s}, merge: {spec: {kueue: {version: "%s"}}}}]
"""


@pytest.mark.parametrize(("name", "version", "rule"), [("one", "0.9", "KF010"), ("gone", "0.19", "KF207")])
def test_validate_checks_every_overlay(fleet_folder: Path, name: str, version: str, rule: str, capsys: Capture) -> None:
    folder = fleet_folder.parent / "overlays" / "prod"
    folder.mkdir(parents=True)
    (folder / "overlay.yaml").write_text(PROD % (name, version))
    (fleet_folder / "tenants.yaml").write_text(UNKNOWN_QUEUE)
    assert cli.execute(["validate"]) == 1
    assert rule not in capsys.readouterr().out
    assert cli.execute(["validate", "--all-overlays"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert sum("KF001" in line for line in lines) == 1
    assert any(rule in line and "(with overlay prod)" in line for line in lines)
    assert cli.execute(["validate", "--all-overlays", "--overlay", "prod"]) != 0


def test_validate_is_strict_about_warnings(fleet_folder: Path) -> None:
    flavor = "apiVersion: kfleet.dev/v1alpha1\nkind: Flavor\nmetadata: {name: f}\nspec: {capacity: {source: nodes}}\n"
    assert cli.execute(["validate", "--strict"]) == 0
    (fleet_folder / "flavor.yaml").write_text(flavor)
    assert (cli.execute(["validate"]), cli.execute(["validate", "--strict"])) == (0, 1)
