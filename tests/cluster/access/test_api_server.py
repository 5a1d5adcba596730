"""Addresses at which something answers, or takes connections, that is no API server."""

import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.ownership.applyset import SetName
from reconciler.predict import greet
from reconciler.sandbox.certificates import make_authority, make_server_pair

pytestmark = pytest.mark.usefixtures("loopback")


HUB = ClusterName("hub")
LOGIN = b"<html><title>Sign in</title></html>"


@contextlib.contextmanager
def answering(status: int, body: bytes) -> Iterator[ApiServer]:
    """A connection to a server that has one answer for everybody."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", "/login")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = ApiServer(HUB, Access(f"http://127.0.0.1:{server.server_address[1]}", ""))
        yield port
        port.close()
        server.shutdown()


@pytest.mark.parametrize(("status", "body"), [(302, LOGIN), (200, LOGIN), (200, b"[]"), (200, b'"ok"'), (204, b"")])
def test_server_that_is_no_api_server_is_a_cluster_error(status: int, body: bytes) -> None:
    with answering(status, body) as port:
        with pytest.raises(ClusterError, match=f"GET /api: {status} .* does not answer like an API server") as raised:
            port.get("/api")
        assert not raised.value.may_pass
        (gap,) = greet(port, SetName("test", "kueue-system")).gaps
        assert "does not answer like an API server" in gap.why


OF_ANOTHER = b'{"kind": "Status", "reason": "NotFound", "details": {"name": "other", "kind": "secrets"}}'


@pytest.mark.parametrize("body", [LOGIN, b"404 page not found", b"{}", b'{"kind": "Status", "code": 404}', OF_ANOTHER])
@pytest.mark.parametrize("path", ["/api/v1/secrets", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/night", "/api/v1"])
def test_404_that_is_not_an_api_servers_own_says_nothing_about_an_object(body: bytes, path: str) -> None:
    with answering(404, body) as port:
        for ask in (port.get, port.find, lambda where: list(port.list(where))):
            with pytest.raises(ClusterError, match="does not answer like an API server") as raised:
                ask(path)
            assert raised.value.status != 404


@pytest.mark.parametrize(
    "body", [b"{}", b'{"login": "https://sso"}', b'{"kind": "List"}', b'{"kind": "List", "items": null}']
)
def test_200_that_is_not_a_list_of_objects_is_a_cluster_error(body: bytes) -> None:
    with answering(200, body) as port:
        with pytest.raises(ClusterError, match="does not answer like an API server"):
            list(port.list("/api/v1/secrets"))
        with pytest.raises(ClusterError, match="does not answer like an API server"):
            port.discover()
        (gap,) = greet(port, SetName("test", "kueue-system")).gaps
        assert "API server" in gap.why


@pytest.mark.parametrize("groups", [b"", b', "items": null', b', "items": ["x"]'])
def test_discovery_of_no_kinds_is_a_cluster_error(groups: bytes) -> None:
    """It must not read as a server that serves nothing."""
    body = b'{"kind": "APIGroupDiscoveryList"' + groups + b"}"
    with answering(200, body) as port, pytest.raises(ClusterError, match="does not answer like an API server"):
        port.discover()


@pytest.mark.parametrize("body", [LOGIN, b"[]"])
def test_refusal_that_is_no_object_is_told_as_it_is(body: bytes) -> None:
    with answering(403, body) as port, pytest.raises(ClusterError, match="GET /api: 403 ") as raised:
        port.get("/api")
    assert raised.value.status == 403 and body.decode() in raised.value.problem


def test_server_that_takes_a_connection_and_never_answers_is_no_answer_in_time(tmp_path: Path) -> None:
    authority = make_authority("silent")
    pair = make_server_pair(authority, "127.0.0.1")
    (tmp_path / "crt").write_text(pair.certificate)
    (tmp_path / "key").write_text(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    greeted: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            accepted, _ = server.accept()
            greeted.append(context.wrap_socket(accepted, server_side=True))

        taking = threading.Thread(target=take)
        taking.start()
        access = Access(f"https://127.0.0.1:{server.getsockname()[1]}", authority.certificate)
        port = ApiServer(HUB, access, timeout=timedelta(seconds=3))
        with pytest.raises(ClusterError, match="GET /api: no answer in time") as raised:
            port.get("/api")
        taking.join()
        port.close()
    assert len(greeted) == 1 and raised.value.may_pass
    greeted[0].close()


def test_silent_server_is_not_asked_for_one_thing_after_another(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever looks at it has many questions, and the other clusters would wait for all of them."""
    caplog.set_level(logging.DEBUG, "reconciler.edges.kubernetes")
    asked: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    asked.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        access = Access(f"http://127.0.0.1:{server.getsockname()[1]}", "")
        port = ApiServer(HUB, access, timeout=timedelta(seconds=1))
        for problem in (
            "GET /api: no answer in time",
            "GET /api: not asked again, because there was no answer in time",
        ):
            with pytest.raises(ClusterError, match=problem) as raised:
                port.get("/api")
            assert raised.value.may_pass
        assert len(asked) == 1
        with pytest.raises(ClusterError, match="POST /api: no answer in time"):
            port.post("/api", {})
        port.close()
    for connection in asked:
        connection.close()
    assert [record.__dict__["status"] for record in caplog.records] == ["no answer in time"] * 2


def test_server_that_was_silent_is_asked_again_after_a_while() -> None:
    with answering(200, b"{}") as port:
        port._silent_until = time.monotonic() + 60
        with pytest.raises(ClusterError, match="not asked again"):
            port.get("/api")
        port._silent_until = time.monotonic()
        assert port.get("/api") == {}
        port._silent_until = time.monotonic() + 60
        port.forget_silence()
        assert port.get("/api") == {}
