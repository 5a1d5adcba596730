"""Pushes that a forge announces: who may wake the controller, by what, and what everybody else is told."""

import http.client
import json
import queue
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from reconciler.clients.http_server import LARGEST_BODY, LIMITS, HttpServer, Limits
from reconciler.clients.nats_login import read_secret
from reconciler.controller.triggers import PushResult, Webhook
from tests.support import eventually
from tests.unit.controller.pushes import MAIN, SECRET, github

pytestmark = pytest.mark.usefixtures("loopback")


@dataclass
class Listener:
    """A webhook behind its real endpoint."""

    endpoint: HttpServer
    pushes: list[str]
    counted: list[PushResult] = field(default_factory=list)

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.endpoint.port, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

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
    counted: list[PushResult] = []
    hook = Webhook(
        lambda: read_secret("--webhook", str(secret_file)), "main", lambda: pushes.append("push"), counted.append
    )
    endpoint = HttpServer("127.0.0.1:0", CollectorRegistry(), str, str, {"/webhook": hook})
    yield Listener(endpoint, pushes, counted)
    endpoint.close()


def test_endpoint_wakes_for_a_push_and_for_nothing_else(listener: Listener) -> None:
    body = json.dumps(MAIN).encode()
    assert listener.post("/webhook", body, github(body, key="guessed"))[0] == 401
    assert listener.post("/webhook", b"{}", github(b"{}", "ping"))[0] == 202
    assert listener.post("/elsewhere", body, github(body)) == (404, "no receiver at this path\n")
    assert listener.pushes == []
    assert listener.post("/webhook", body, github(body)) == (202, "fetching refs/heads/main\n")
    assert listener.pushes == ["push"]
    assert listener.counted == [PushResult.REFUSED, PushResult.IGNORED, PushResult.ACCEPTED]


def test_endpoint_reads_no_more_than_it_must(listener: Listener) -> None:
    headers = {"Content-Length": str(LARGEST_BODY + 1)}
    assert listener.post("/webhook", b"", headers)[0] == 413
    assert listener.post("/webhook", b"", {"Content-Length": "-1"})[0] == 411
    assert listener.post("/webhook", b"", {"Transfer-Encoding": "chunked"})[0] == 411
    assert listener.counted == []


def test_endpoint_runs_a_few_receivers_at_once() -> None:
    release = threading.Event()
    running: queue.SimpleQueue[None] = queue.SimpleQueue()

    def slow(_: Mapping[str, str], __: bytes) -> tuple[int, str]:
        running.put(None)
        release.wait(10)
        return 202, "done"

    limits = Limits(receivers=2, turn_seconds=0.05)
    endpoint = HttpServer("127.0.0.1:0", CollectorRegistry(), str, str, {"/webhook": slow}, limits)
    listener = Listener(endpoint, [])
    try:
        with ThreadPoolExecutor(2) as pool:
            first = [pool.submit(listener.post, "/webhook", b"{}", {}) for _ in range(2)]
            for _ in first:
                running.get(timeout=10)
            assert listener.post("/webhook", b"{}", {})[0] == 503
            release.set()
            assert [each.result()[0] for each in first] == [202, 202]
    finally:
        endpoint.close()


@contextmanager
def slow_clients(port: int, *, posts: int, gets: int) -> Iterator[list[socket.socket]]:
    """Clients that have begun a request and do not go on."""
    post = b"POST /webhook HTTP/1.1\r\nContent-Length: 10\r\n\r\n{"
    clients: list[socket.socket] = []
    try:
        for begun in [post] * posts + [b"GET /met"] * gets:
            clients.append(socket.create_connection(("127.0.0.1", port), timeout=10))
            clients[-1].sendall(begun)
        yield clients
    finally:
        for client in clients:
            client.close()


def _is_open(client: socket.socket) -> bool:
    return not select.select([client], [], [], 0)[0]


def test_slow_clients_keep_no_other_out(listener: Listener) -> None:
    body = json.dumps(MAIN).encode()
    threads = threading.active_count()
    with slow_clients(listener.endpoint.port, posts=40, gets=40) as clients:
        began = time.monotonic()
        assert listener.post("/webhook", body, github(body))[0] == 202
        assert listener.get("/healthz") == 200
        assert time.monotonic() - began < LIMITS.seconds / 2
        eventually(lambda: sum(_is_open(client) for client in clients) < LIMITS.connections)
        eventually(lambda: threading.active_count() - threads <= LIMITS.connections)
        # The oldest went.
        assert not any(_is_open(client) for client in clients[:48])
        assert _is_open(clients[-1])
    assert listener.counted == [PushResult.ACCEPTED]


def test_request_has_a_deadline_in_all_however_often_a_byte_comes() -> None:
    endpoint = HttpServer("127.0.0.1:0", CollectorRegistry(), str, str, {}, Limits(seconds=0.2))
    try:
        with slow_clients(endpoint.port, posts=0, gets=1) as (client,):
            began = time.monotonic()
            with suppress(ConnectionError):  # the last byte may come after the end
                while _is_open(client) and time.monotonic() - began < 5:
                    client.sendall(b"x")
                    time.sleep(0.05)
                assert client.recv(1) == b""
    finally:
        endpoint.close()


def test_body_that_ends_early_is_not_received(listener: Listener) -> None:
    with slow_clients(listener.endpoint.port, posts=1, gets=0) as (client,):
        client.shutdown(socket.SHUT_WR)
        assert b" 400 " in client.recv(100)
    assert listener.counted == []


def test_secret_that_was_renewed_counts_at_once(listener: Listener, secret_file: Path) -> None:
    body = json.dumps(MAIN).encode()
    secret_file.write_text("another one")
    assert listener.post("/webhook", body, github(body))[0] == 401
    assert listener.post("/webhook", body, github(body, key="another one"))[0] == 202
    secret_file.unlink()
    assert listener.post("/webhook", body, github(body, key="another one"))[0] == 503
