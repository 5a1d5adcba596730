"""What is applied is what a commit holds: changes that are not committed are refused."""

from pathlib import Path

import pytest

from reconciler.errors import RefusedError
from reconciler.pipeline.offline import Source, committed
from tests.repositories import edit, example_repository, git


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
