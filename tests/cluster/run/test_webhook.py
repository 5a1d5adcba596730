"""Pushes that a forge announces: who may wake the controller, by what, and what everybody else is told."""

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from reconciler.edges.endpoint import LARGEST_BODY, Endpoint
from reconciler.edges.secrets import read_secret
from reconciler.run.webhook import Verdict, Webhook
from tests.unit.run.pushes import MAIN, SECRET, github

pytestmark = pytest.mark.usefixtures("loopback")


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
