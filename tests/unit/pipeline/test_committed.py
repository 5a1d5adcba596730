"""What is applied is what a commit holds: changes that are not committed are refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import RefusedError
from reconciler.pipeline.load import Source, committed, load_files, read_files
from reconciler.spec.files import SpecSource
from tests.repositories import commit, edit, example_repository, git


def test_committed_takes_the_commit_that_is_checked_out(tmp_path: Path) -> None:
    repo = example_repository(tmp_path / "repo")
    (repo / "README.md").write_text("not of the fleet")
    assert committed(Source(str(repo))).revision == git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize("folder", ["fleet", "overlays"])
@pytest.mark.parametrize("is_new", [True, False])
def test_committed_refuses_changes_of_the_fleet_and_of_its_overlays(
    tmp_path: Path, folder: str, *, is_new: bool
) -> None:
    repo = example_repository(tmp_path / "repo")
    path = next((repo / folder).rglob("*.yaml"))
    if is_new:
        (path.parent / "new.yaml").write_text("kind: Queue\n")
    else:
        edit(path, "apiVersion", "# changed\napiVersion")
    with pytest.raises(RefusedError, match=f"{folder} holds changes that are not committed"):
        committed(Source(str(repo), overlay="prod"))


def test_source_is_the_same_wherever_its_repository_lies(tmp_path: Path) -> None:
    repo = example_repository(tmp_path / "repo")
    git(tmp_path, "clone", "--quiet", str(repo), "copy")
    (repo / "fleet" / "new.yaml").write_text("")
    commit(repo)
    other = example_repository(tmp_path / "other")
    asked = [Source(str(repo)), Source(str(tmp_path / "copy")), Source(f"file://{repo}", revision="main")]
    found = [source_of(source) for source in asked]
    assert not any(one.is_other(found[0]) for one in found) and found[0].path == "fleet"
    edit_first_commit(other)
    assert source_of(Source(str(other))).is_other(found[0])
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repo}", "shallow")
    assert source_of(Source(str(tmp_path / "shallow"))).roots == ()
    assert source_of(Source("/", path=str(repo / "fleet"))) == SpecSource()
    assert load_files(read_files(Source(str(repo)))).spec.source is None


def source_of(source: Source) -> SpecSource:
    found = load_files(read_files(replace(source, is_identified=True))).spec.source
    assert found is not None
    return found


def edit_first_commit(repo: Path) -> None:
    git(repo, "commit", "--quiet", "--amend", "--message", "another beginning")
