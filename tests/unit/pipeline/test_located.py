"""A path of a fleet means what a shell would take it for, anywhere in a repository."""

from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.errors import RefusedError
from reconciler.pipeline.load import Source, committed, located, read_files
from tests.repositories import commit, example_repository, git


@pytest.fixture
def nested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a fleet at its top and another one in a folder, which is the current one."""
    repo = example_repository(tmp_path / "repo")
    (repo / "team").mkdir()
    for name in ("fleet", "overlays"):
        git(repo, "mv", name, f"team/{name}")
    (repo / "fleet").mkdir()
    (repo / "fleet" / "other.yaml").write_text("kind: Other\n")
    commit(repo)
    monkeypatch.chdir(repo / "team")
    return repo


@pytest.mark.parametrize("path", ["fleet", "../team/fleet", "./fleet/"])
def test_path_counts_from_the_current_folder_where_that_has_it(nested: Path, path: str) -> None:
    assert located(Source(path=path)) == Source(path="team/fleet")
    source = committed(located(Source(path=path, overlay="prod")))
    assert source.revision == git(nested, "rev-parse", "HEAD")
    assert set(read_files(source).files) == set(read_files(located(Source(path=path))).files)
    assert "team/fleet/queues.yaml" in read_files(source).files


def test_path_counts_from_the_top_of_the_repository_otherwise(nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert located(Source(path="team/fleet")) == Source(path="team/fleet")
    monkeypatch.chdir(nested)
    assert located(Source()) == Source()


def test_absolute_path_is_a_folder_of_the_repository_around_it(
    nested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absolute = str(nested / "team" / "fleet")
    assert located(Source(path=absolute)) == Source(path="team/fleet")
    monkeypatch.chdir(tmp_path)
    assert located(Source(path=absolute)) == Source(str(nested), path="team/fleet")
    assert committed(located(Source(path=absolute))).revision == git(nested, "rev-parse", "HEAD")


def test_folder_of_no_repository_is_named_when_a_commit_is_needed(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    with pytest.raises(RefusedError, match=f"{tmp_path}/fleet: is not in a git repository"):
        committed(located(Source(path=str(tmp_path / "fleet"))))


def test_folder_outside_of_repositories_and_other_repositories_stay_as_they_are(nested: Path, tmp_path: Path) -> None:
    for source in (
        Source(path=str(tmp_path / "fleet")),
        Source(str(nested)),
        Source("https://git.example.org/fleet.git"),
    ):
        assert located(source) == source


@pytest.mark.parametrize("arguments", [("validate",), ("diff", "--base", "HEAD"), ("render", "--revision", "HEAD")])
@pytest.mark.usefixtures("nested")
def test_commands_read_the_fleet_of_the_current_folder(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*arguments]) == 0
    assert "Other" not in capsys.readouterr().err
