"""Commits that are not followed: the last good one stays, and the reason is told."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.controller.revisions import Followed, Revisions, Trust
from reconciler.pipeline.load import Source
from tests.repositories import commit, edit, example_repository, git
from tests.support import eventually
from tests.unit.controller.signers import SshSigner, signed_commit, ssh_signer

Follow = Callable[[Trust], Revisions]


@pytest.fixture
def ada(tmp_path: Path) -> SshSigner:
    return ssh_signer(tmp_path / "keys", "ada")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return example_repository(tmp_path / "repository")


@pytest.fixture
def follow(repository: Path) -> Iterator[Follow]:
    followed: list[Revisions] = []

    def begin(trust: Trust) -> Revisions:
        followed.append(Revisions(Source(repository.as_uri()), timedelta(hours=1), lambda _: None, trust))
        followed[-1].start()
        return followed[-1]

    yield begin
    for one in followed:
        one.close()


def looked(revisions: Revisions, want: Callable[[Followed], bool]) -> Followed:
    revisions.look_now()
    eventually(lambda: want(revisions.now))
    return revisions.now


def revision(followed: Followed) -> str:
    return followed.revision.spec.revision if followed.revision else ""


def test_commits_that_are_not_signed_are_not_followed(repository: Path, ada: SshSigner, follow: Follow) -> None:
    good = signed_commit(repository, ada)
    revisions = follow(Trust(str(ada.keys)))
    assert revision(revisions.now) == good
    edit(repository / "fleet" / "fleet.yaml", "name: science", "name: changed")
    bad = commit(repository)
    now = looked(revisions, lambda seen: bool(seen.problem))
    assert (revision(now), now.refused) == (good, bad)
    assert now.problem.endswith(f"{bad[:12]} is not signed")
    better = signed_commit(repository, ada)
    now = looked(revisions, lambda seen: not seen.problem)
    assert (revision(now), now.refused) == (better, "")


def test_key_that_is_added_later_counts_for_the_commit_that_waits(
    repository: Path, ada: SshSigner, follow: Follow, tmp_path: Path
) -> None:
    eve = ssh_signer(tmp_path / "keys", "eve")
    head = signed_commit(repository, eve)
    revisions = follow(Trust(str(ada.keys)))
    assert (revisions.now.revision, revisions.now.refused) == (None, head)
    ada.keys.write_text(ada.keys.read_text() + eve.keys.read_text())
    assert revision(looked(revisions, lambda seen: not seen.problem)) == head


def test_rewritten_history_is_followed_unless_forbidden(repository: Path, follow: Follow) -> None:
    first = git(repository, "rev-parse", "HEAD")
    edit(repository / "fleet" / "fleet.yaml", "name: science", "name: changed")
    second = commit(repository)
    free, strict = follow(Trust()), follow(Trust(is_fast_forward_only=True))
    git(repository, "reset", "--hard", first)
    assert revision(looked(free, lambda seen: revision(seen) == first)) == first
    now = looked(strict, lambda seen: bool(seen.problem))
    assert (revision(now), now.refused) == (second, first)
    assert now.problem.endswith(f"{first[:12]} is not a descendant of {second[:12]}: the history was rewritten")
    git(repository, "checkout", "--orphan", "other")
    # Otherwise it is the first commit again, where both are made within a second.
    edit(repository / "fleet" / "fleet.yaml", "name: science", "name: other")
    commit(repository)
    git(repository, "branch", "-f", "main", "other")
    git(repository, "checkout", "main")
    now = looked(strict, lambda seen: "have no commit in common" in seen.problem)
    assert revision(now) == second
    git(repository, "reset", "--hard", second)
    assert revision(looked(strict, lambda seen: not seen.problem)) == second


def test_commit_that_is_broken_is_named_again_when_the_repository_is_back(repository: Path, follow: Follow) -> None:
    good = git(repository, "rev-parse", "HEAD")
    revisions = follow(Trust())
    (repository / "fleet" / "broken.yaml").write_text("kind: [")
    bad = commit(repository)
    now = looked(revisions, lambda seen: bool(seen.problem))
    assert (revision(now), now.refused) == (good, bad)
    assert f"{bad[:12]} cannot be read: fleet/broken.yaml" in now.problem
    away = repository.rename(repository.parent / "away")
    now = looked(revisions, lambda seen: "cannot be fetched" in seen.problem)
    assert (revision(now), now.refused) == (good, "")
    away.rename(repository)
    now = looked(revisions, lambda seen: "cannot be read" in seen.problem)
    assert (revision(now), now.refused) == (good, bad)
