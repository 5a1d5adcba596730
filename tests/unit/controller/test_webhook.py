"""Pushes that a forge announces: who may wake the controller, by what, and what everybody else is told."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients.nats_login import read_secret
from reconciler.controller.triggers import Push, PushAnswer, PushResult, verify_push
from reconciler.errors import EdgeError
from tests.unit.controller.pushes import MAIN, SECRET, digest, github


def gitea(body: bytes) -> dict[str, str]:
    """Gitea also sends what GitHub sends."""
    return {**github(body), "x-gitea-event": "push", "x-gitea-signature": digest(body)}


def forgejo(body: bytes) -> dict[str, str]:
    return {"x-forgejo-event": "push", "x-forgejo-signature": digest(body)}


def gitlab(_: bytes) -> dict[str, str]:
    return {"x-gitlab-event": "Push Hook", "x-gitlab-token": SECRET}


def decision_on(headers: Mapping[str, str], body: bytes, revision: str = "main") -> PushAnswer:
    return verify_push(Push(headers, body), SECRET, revision)


@pytest.mark.parametrize("forge", [github, gitea, forgejo, gitlab])
def test_push_of_each_forge_is_accepted(forge: Any) -> None:
    body = json.dumps(MAIN).encode()
    assert decision_on(forge(body), body) == PushAnswer(PushResult.ACCEPTED, 202, "fetching refs/heads/main")


@pytest.mark.parametrize("forge", [github, gitea, forgejo])
def test_body_that_was_changed_on_the_way_is_refused(forge: Any) -> None:
    headers = forge(json.dumps(MAIN).encode())
    assert decision_on(headers, json.dumps({**MAIN, "ref": "refs/heads/other"}).encode()).status == 401


def test_announcement_with_another_secret_or_none_is_refused() -> None:
    body = json.dumps(MAIN).encode()
    foreign = [
        {},
        {"x-github-event": "push"},
        github(body, key="guessed"),
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": "gültig?"},
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": ""},
        # One proof that holds does not cover for one that does not.
        {**github(body), "x-gitea-signature": "0" * 64},
    ]
    assert {decision_on(headers, body).verdict for headers in foreign} == {PushResult.REFUSED}
    assert {decision_on(headers, body).status for headers in foreign} == {401}


@pytest.mark.parametrize(
    ("revision", "payload", "verdict"),
    [
        ("main", {"ref": "refs/heads/other"}, PushResult.IGNORED),
        ("main", {"ref": "refs/heads/main-2"}, PushResult.IGNORED),
        ("v1", {"ref": "refs/tags/v1"}, PushResult.ACCEPTED),
        ("refs/heads/main", {"ref": "refs/heads/main"}, PushResult.ACCEPTED),
        ("", {"ref": "refs/heads/trunk", "repository": {"default_branch": "trunk"}}, PushResult.ACCEPTED),
        ("HEAD", {"ref": "refs/heads/trunk", "project": {"default_branch": "trunk"}}, PushResult.ACCEPTED),
        ("", {"ref": "refs/heads/trunk", "repository": {"default_branch": "main"}}, PushResult.IGNORED),
        ("", {"ref": "refs/heads/any", "repository": "odd"}, PushResult.ACCEPTED),
    ],
)
def test_push_counts_where_it_is_about_what_is_followed(
    revision: str, payload: Mapping[str, Any], verdict: PushResult
) -> None:
    body = json.dumps(payload).encode()
    found = decision_on(github(body), body, revision)
    assert (found.verdict, found.status) == (verdict, 202)


def test_other_events_are_ignored() -> None:
    assert decision_on(github(b"{}", "ping"), b"{}") == PushAnswer(
        PushResult.IGNORED, 202, "ignored: ping is not a push"
    )
    assert (
        decision_on({"x-hub-signature-256": f"sha256={digest(b'')}"}, b"").message
        == "ignored: this event is not a push"
    )


@pytest.mark.parametrize("body", [b"payload=%7B%7D", b"[1]", b"{}", b'{"ref": 1}', b"\xff"])
def test_push_that_cannot_be_read_is_refused(body: bytes) -> None:
    found = decision_on(github(body), body)
    assert (found.verdict, found.status) == (PushResult.REFUSED, 400)


def test_secret_that_is_not_there_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULL", " text\n")
    monkeypatch.setenv("EMPTY", "")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert read_secret("--webhook", "env:FULL") == "text"
    wrong = {
        "env:EMPTY": "is empty",
        "env:MISSING": "the environment variable MISSING is not set",
        str(tmp_path / "missing"): "cannot be read: no such file or directory",
        str(tmp_path / "binary"): "cannot be read: is not text",
    }
    for place, problem in wrong.items():
        with pytest.raises(EdgeError) as caught:
            read_secret("--webhook", place)
        assert (caught.value.where, caught.value.problem) == (f"--webhook {place}", problem)
