"""Pushes that a forge announces: who may wake the controller, by what, and what everybody else is told."""

import hashlib
import hmac
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reconciler.edges.endpoint import LARGEST_BODY, Endpoint
from reconciler.edges.secrets import read_secret
from reconciler.errors import EdgeError
from reconciler.run.webhook import Announcement, Judgement, Verdict, Webhook, judge

SECRET = "a secret of the forge"  # noqa: S105  (of these tests alone)
MAIN: Mapping[str, Any] = {"ref": "refs/heads/main", "repository": {"default_branch": "main"}}


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(body: bytes, event: str = "push", key: str = SECRET) -> dict[str, str]:
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={digest(body, key)}"}


def gitea(body: bytes) -> dict[str, str]:
    """Gitea also sends what GitHub sends."""
    return {**github(body), "x-gitea-event": "push", "x-gitea-signature": digest(body)}


def forgejo(body: bytes) -> dict[str, str]:
    return {"x-forgejo-event": "push", "x-forgejo-signature": digest(body)}


def gitlab(_: bytes) -> dict[str, str]:
    return {"x-gitlab-event": "Push Hook", "x-gitlab-token": SECRET}


def judged(headers: Mapping[str, str], body: bytes, revision: str = "main") -> Judgement:
    return judge(Announcement(headers, body), SECRET, revision)


@pytest.mark.parametrize("forge", [github, gitea, forgejo, gitlab])
def test_push_of_each_forge_is_accepted(forge: Any) -> None:
    body = json.dumps(MAIN).encode()
    assert judged(forge(body), body) == Judgement(Verdict.ACCEPTED, 202, "looking at refs/heads/main")


@pytest.mark.parametrize("forge", [github, gitea, forgejo])
def test_body_that_was_changed_on_the_way_is_refused(forge: Any) -> None:
    headers = forge(json.dumps(MAIN).encode())
    assert judged(headers, json.dumps({**MAIN, "ref": "refs/heads/other"}).encode()).status == 401


def test_announcement_with_another_secret_or_none_is_refused() -> None:
    body = json.dumps(MAIN).encode()
    strangers = [
        {},
        {"x-github-event": "push"},
        github(body, key="guessed"),
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": "gültig?"},
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": ""},
        # One proof that holds does not cover for one that does not.
        {**github(body), "x-gitea-signature": "0" * 64},
    ]
    assert {judged(headers, body).verdict for headers in strangers} == {Verdict.REFUSED}
    assert {judged(headers, body).status for headers in strangers} == {401}


@pytest.mark.parametrize(
    ("revision", "payload", "verdict"),
    [
        ("main", {"ref": "refs/heads/other"}, Verdict.IGNORED),
        ("main", {"ref": "refs/heads/main-2"}, Verdict.IGNORED),
        ("v1", {"ref": "refs/tags/v1"}, Verdict.ACCEPTED),
        ("refs/heads/main", {"ref": "refs/heads/main"}, Verdict.ACCEPTED),
        ("", {"ref": "refs/heads/trunk", "repository": {"default_branch": "trunk"}}, Verdict.ACCEPTED),
        ("HEAD", {"ref": "refs/heads/trunk", "project": {"default_branch": "trunk"}}, Verdict.ACCEPTED),
        ("", {"ref": "refs/heads/trunk", "repository": {"default_branch": "main"}}, Verdict.IGNORED),
        ("", {"ref": "refs/heads/any", "repository": "odd"}, Verdict.ACCEPTED),
    ],
)
def test_push_counts_where_it_is_about_what_is_followed(
    revision: str, payload: Mapping[str, Any], verdict: Verdict
) -> None:
    body = json.dumps(payload).encode()
    found = judged(github(body), body, revision)
    assert (found.verdict, found.status) == (verdict, 202)


def test_other_events_are_ignored() -> None:
    assert judged(github(b"{}", "ping"), b"{}") == Judgement(Verdict.IGNORED, 202, "ignored: ping is no push")
    assert judged({"x-hub-signature-256": f"sha256={digest(b'')}"}, b"").message == "ignored: this is no push"


@pytest.mark.parametrize("body", [b"payload=%7B%7D", b"[1]", b"{}", b'{"ref": 1}', b"\xff"])
def test_push_that_cannot_be_read_is_refused(body: bytes) -> None:
    found = judged(github(body), body)
    assert (found.verdict, found.status) == (Verdict.REFUSED, 400)


@dataclass
class Listener:
    """A webhook behind its real endpoint."""

    endpoint: Endpoint
    pushes: list[str]
    counted: list[Verdict] = field(default_factory=list)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.endpoint.port, timeout=10)
        connection.request("POST", path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture
def listener(secret_file: Path) -> Iterator[Listener]:
    pushes: list[str] = []
    counted: list[Verdict] = []
    hook = Webhook(
        lambda: read_secret("--webhook", str(secret_file)), "main", lambda: pushes.append("push"), counted.append
    )
    endpoint = Endpoint("127.0.0.1:0", CollectorRegistry(), str, str, {"/webhook": hook})
    yield Listener(endpoint, pushes, counted)
    endpoint.close()


def test_endpoint_wakes_for_a_push_and_for_nothing_else(listener: Listener) -> None:
    body = json.dumps(MAIN).encode()
    assert listener.post("/webhook", body, github(body, key="guessed"))[0] == 401
    assert listener.post("/webhook", b"{}", github(b"{}", "ping"))[0] == 202
    assert listener.post("/elsewhere", body, github(body)) == (404, "nothing is received here\n")
    assert listener.pushes == []
    assert listener.post("/webhook", body, github(body)) == (202, "looking at refs/heads/main\n")
    assert listener.pushes == ["push"]
    assert listener.counted == [Verdict.REFUSED, Verdict.IGNORED, Verdict.ACCEPTED]


def test_endpoint_reads_no_more_than_it_must(listener: Listener) -> None:
    headers = {"Content-Length": str(LARGEST_BODY + 1)}
    assert listener.post("/webhook", b"", headers)[0] == 413
    assert listener.post("/webhook", b"", {"Content-Length": "-1"})[0] == 411
    assert listener.post("/webhook", b"", {"Transfer-Encoding": "chunked"})[0] == 411
    assert listener.counted == []


def test_endpoint_takes_a_few_at_once(listener: Listener) -> None:
    waiting = [http.client.HTTPConnection("127.0.0.1", listener.endpoint.port, timeout=10) for _ in range(5)]
    for connection in waiting[:4]:
        connection.putrequest("POST", "/webhook")
        connection.putheader("Content-Length", "10")
        connection.endheaders()
    last = waiting[4]
    for _ in range(50):
        last.request("POST", "/webhook", body=b"{}")
        answer = last.getresponse()
        answer.read()
        if answer.status == 503:
            break
    for connection in waiting:
        connection.close()
    assert answer.status == 503


def test_secret_that_was_renewed_counts_at_once(listener: Listener, secret_file: Path) -> None:
    body = json.dumps(MAIN).encode()
    secret_file.write_text("another one")
    assert listener.post("/webhook", body, github(body))[0] == 401
    assert listener.post("/webhook", body, github(body, key="another one"))[0] == 202
    secret_file.unlink()
    assert listener.post("/webhook", body, github(body, key="another one"))[0] == 503


def test_secret_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULL", " text\n")
    monkeypatch.setenv("EMPTY", "")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert read_secret("--webhook", "env:FULL") == "text"
    wrong = {
        "env:EMPTY": "is empty",
        "env:MISSING": "the environment variable MISSING is not set",
        str(tmp_path / "missing"): "cannot be read: no such file or directory",
        str(tmp_path / "binary"): "cannot be read: is no text",
    }
    for place, problem in wrong.items():
        with pytest.raises(EdgeError) as caught:
            read_secret("--webhook", place)
        assert (caught.value.where, caught.value.problem) == (f"--webhook {place}", problem)
