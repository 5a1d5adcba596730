"""Commit statuses: which forge is meant, what it is sent, and what happens where it does not take it."""

import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.clients.forge import CommitState, CommitStatus, find_forge, tell_commit
from reconciler.controller.loop import RunSettings, run_loop
from reconciler.controller.status import REMEMBERED, Commits
from reconciler.errors import EdgeError
from reconciler.pipeline.load import Source
from tests.cluster.controller.forges import ForgeServer
from tests.repositories import commit, example_repository
from tests.support import eventually

pytestmark = pytest.mark.usefixtures("loopback")


TOKEN = "not-for-everybody"  # noqa: S105  (of these tests alone)
COMMIT = "c0ffee" * 6 + "c0de"


@pytest.fixture
def server() -> Iterator[ForgeServer]:
    made = ForgeServer()
    yield made
    made.close()


def status(state: CommitState = CommitState.SUCCESS, text: str = "as the fleet says") -> CommitStatus:
    return CommitStatus(COMMIT, state, text, "kfleet/research")


@pytest.mark.parametrize(
    ("kind", "path", "header", "value"),
    [
        ("github", f"/api/v3/repos/acme/fleet/statuses/{COMMIT}", "Authorization", f"Bearer {TOKEN}"),
        ("gitea", f"/api/v1/repos/acme/fleet/statuses/{COMMIT}", "Authorization", f"token {TOKEN}"),
        ("gitlab", f"/api/v4/projects/acme%2Ffleet/statuses/{COMMIT}", "PRIVATE-TOKEN", TOKEN),
    ],
)
def test_forge_gets_the_status_in_its_own_words(
    server: ForgeServer, kind: str, path: str, header: str, value: str
) -> None:
    forge = find_forge("", f"{kind}={server.url}/acme/fleet")
    tell_commit(forge, TOKEN, status(CommitState.FAILURE, "x" * 1000))
    told = server.told[0]
    assert (told.path, told.headers[header]) == (path, value)
    assert told.body["state"] == ("failed" if kind == "gitlab" else "failure")
    assert told.body["context"] == "kfleet/research"
    assert len(told.body["description"]) == 140


@pytest.mark.parametrize("code", [401, 403, 404, 422, 500, 302])
def test_forge_that_refuses_is_an_error_without_the_token(server: ForgeServer, code: int) -> None:
    server.answers.append(code)
    with pytest.raises(EdgeError, match=f"acme/fleet: answers {code}") as caught:
        tell_commit(find_forge("", f"gitea={server.url}/acme/fleet"), TOKEN, status())
    assert TOKEN not in str(caught.value)
    assert len(server.told) == 1  # a redirect is not followed


def test_token_that_is_none_is_reported_without_it(server: ForgeServer) -> None:
    with pytest.raises(EdgeError, match="line breaks") as caught:
        tell_commit(find_forge("", f"gitea={server.url}/acme/fleet"), f"{TOKEN}\nmore", status())
    assert TOKEN not in str(caught.value) and server.told == []


def test_forge_that_is_gone_is_an_error(server: ForgeServer) -> None:
    server.close()
    with pytest.raises(EdgeError, match="no response"):
        tell_commit(find_forge("", f"gitea={server.url}/acme/fleet"), TOKEN, status())


def test_gitlab_that_knows_a_status_already_gets_it_once(server: ForgeServer) -> None:
    server.answers.append(400)
    tell_commit(find_forge("", f"gitlab={server.url}/acme/fleet"), TOKEN, status())
    assert server.states(COMMIT) == ["success"]


@pytest.fixture
def commits(server: ForgeServer) -> Iterator[Commits]:
    forge = find_forge("", f"gitea={server.url}/acme/fleet")
    made = Commits(forge, lambda: TOKEN, timedelta(milliseconds=50))
    yield made
    made.close()


def test_commits_tell_each_thing_once(server: ForgeServer, commits: Commits) -> None:
    commits.want(status(CommitState.PENDING))
    eventually(lambda: server.states(COMMIT) == ["pending"])
    commits.want(status(CommitState.PENDING))
    commits.want(status())
    eventually(lambda: server.states(COMMIT) == ["pending", "success"])
    commits.want(status())
    commits.want(status(CommitState.FAILURE))
    eventually(lambda: server.states(COMMIT) == ["pending", "success", "failure"])


def test_commits_try_again_and_say_so_once(
    server: ForgeServer, commits: Commits, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.controller.status")
    server.answers += [500, 500, 500]
    commits.want(status())
    eventually(lambda: server.states(COMMIT) == ["success"] * 4)
    assert caplog.messages == ["commit status not sent"]
    assert TOKEN not in str([record.__dict__ for record in caplog.records])


def test_commits_forget_the_oldest_of_many(server: ForgeServer, commits: Commits) -> None:
    server.answers += [500] * 10_000
    for number in range(REMEMBERED + 20):
        commits.want(CommitStatus(f"{number:040}", CommitState.SUCCESS, "", "kfleet/research"))
    assert len(commits._wanted) == REMEMBERED


def test_first_commit_that_cannot_be_read_is_reported(
    server: ForgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    repository = example_repository(tmp_path / "repository")
    (repository / "fleet" / "broken.yaml").write_text("kind: [")
    head = commit(repository)
    stop = threading.Event()
    settings = RunSettings(
        Source(str(repository)),
        listen="127.0.0.1:0",
        commit_status="env:FORGE_TOKEN",
        forge=f"gitea={server.url}/acme/fleet",
    )
    running = threading.Thread(target=run_loop, args=(settings, stop))
    running.start()
    try:
        eventually(lambda: server.states(head) == ["failure"])
        assert "fleet/broken.yaml" in server.told[0].body["description"]
    finally:
        stop.set()
        running.join(30)
