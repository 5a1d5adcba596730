"""Addresses at which something answers, or takes connections, that is no API server."""

import contextlib
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.certificates import Pair, make_authority, make_server_pair
from reconciler.state.applyset import SetName
from reconciler.state.observe import probe

pytestmark = pytest.mark.usefixtures("loopback")


HUB = ClusterName("hub")
SILENT = r"^hub: does not respond \(no answer in time\)$"
LOGIN = b"<html><title>Sign in</title></html>"


@contextlib.contextmanager
def answering(status: int, body: bytes) -> Iterator[ApiServer]:
    """A connection to a server that has one answer for everybody."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Location", "/login")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PATCH = do_POST = do_DELETE = _answer  # noqa: N815  (names that the base class calls)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        port = ApiServer(HUB, ClusterLogin(f"http://127.0.0.1:{server.server_address[1]}", ""))
        yield port
        port.close()
        server.shutdown()


@pytest.mark.parametrize(("status", "body"), [(302, LOGIN), (200, LOGIN), (200, b"[]"), (200, b'"ok"'), (204, b"")])
def test_server_that_is_not_an_api_server_is_a_cluster_error(status: int, body: bytes) -> None:
    with answering(status, body) as port:
        with pytest.raises(ClusterError, match=f"GET /api: {status} .* does not answer like an API server") as raised:
            port.get("/api")
        assert not raised.value.is_retryable
        (gap,) = probe(port, SetName("test", "kueue-system")).gaps
        assert "does not answer like an API server" in gap.why


OF_ANOTHER = b'{"kind": "Status", "reason": "NotFound", "details": {"name": "other", "kind": "secrets"}}'
# As a gateway says it whose connection to the cluster is lost.
OF_NOTHING = b'{"kind": "Status", "reason": "NotFound", "message": "cluster not found", "details": {"name": ""}}'


@pytest.mark.parametrize(
    "body",
    [
        LOGIN,
        b"404 page not found",
        b"{}",
        b'{"kind": "Status", "code": 404}',
        b'{"kind": "Status", "reason": "NotFound"}',
        OF_ANOTHER,
        OF_NOTHING,
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/secrets", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/night", "/api/v1"])
def test_404_that_is_not_an_api_servers_own_says_nothing_about_an_object(body: bytes, path: str) -> None:
    with answering(404, body) as port:
        for ask in (port.get, port.find, lambda where: list(port.list(where))):
            with pytest.raises(ClusterError, match="does not answer like an API server") as raised:
                ask(path)
            assert raised.value.status != 404


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"login": "https://sso"}',
        b'{"kind": "List"}',
        b'{"kind": "List", "items": null}',
        b'{"kind": "Login", "metadata": {}, "items": []}',
        b'{"kind": "List", "metadata": {}, "items": [{}]}',
        b'{"kind": "List", "metadata": {}, "items": ["x"]}',
        b'{"kind": "List", "metadata": {}, "items": [{"metadata": {"namespace": "x"}}]}',
    ],
)
def test_200_that_is_not_a_list_of_objects_is_a_cluster_error(body: bytes) -> None:
    with answering(200, body) as port:
        with pytest.raises(ClusterError, match="does not answer like an API server"):
            list(port.list("/api/v1/secrets"))
        with pytest.raises(ClusterError, match="does not answer like an API server"):
            port.discover()
        (gap,) = probe(port, SetName("test", "kueue-system")).gaps
        assert "API server" in gap.why


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "Login"}',
        b'{"kind": "Login", "metadata": null}',
        b'{"kind": "Secret", "metadata": {"name": "other"}}',
        b'{"kind": "APIResourceList", "resources": null}',
        b'{"kind": "APIResourceList", "resources": [{"name": "secrets"}]}',
        b'{"kind": "APIResourceList", "resources": ["secrets"]}',
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/namespaces/a/secrets/b", "/apis/kueue.x-k8s.io/v1beta2"])
def test_200_of_another_shape_says_nothing_about_an_object_or_a_kind(body: bytes, path: str) -> None:
    with answering(200, body) as port:
        for ask in (port.get, port.find):
            with pytest.raises(ClusterError, match="does not answer like an API server") as raised:
                ask(path)
            assert raised.value.status != 404
        with pytest.raises(ClusterError, match="does not answer like an API server"):
            port.kinds("kueue.x-k8s.io/v1beta2")


REVIEW = {"kind": "SelfSubjectRulesReview", "spec": {}}


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "Login"}',
        b'{"kind": "Login", "metadata": {"name": "login"}}',
        b'{"kind": "Secret", "metadata": {"name": "other"}}',
        b'{"kind": "Secret", "metadata": null}',
    ],
)
def test_200_of_another_shape_is_not_the_answer_to_a_write(body: bytes) -> None:
    """Else a lease would be held, an inventory widened or a queue stopped that is not."""
    path, secret = "/api/v1/namespaces/a/secrets/b", {"kind": "Secret", "metadata": {"name": "b"}}
    with answering(200, body) as port:
        for write in (
            lambda: port.apply_at(path, secret, manager="kfleet", is_forced=False, is_dry_run=True),
            lambda: port.patch(path, {"metadata": {"labels": {}}}),
            lambda: port.json_patch(path, []),
            lambda: port.delete(path),
            lambda: port.post("/api/v1/namespaces/a/secrets", secret),
            lambda: port.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", REVIEW),
        ):
            with pytest.raises(ClusterError, match="does not answer like an API server"):
                write()


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("DELETE", {"kind": "Status", "status": "Success"}),
        ("DELETE", {"kind": "Secret", "metadata": {"name": "b"}}),
        ("PATCH", {"kind": "Secret", "metadata": {"name": "b"}}),
    ],
)
def test_200_of_an_api_server_is_the_answer_to_a_write(method: str, answer: Any) -> None:
    path = "/api/v1/namespaces/a/secrets/b"
    with answering(200, json.dumps(answer).encode()) as port:
        if method == "DELETE":
            port.delete(path, uid="1")
        else:
            assert port.patch(f"{path}/status", {"status": {}}) == answer


@pytest.mark.parametrize("groups", [b"", b', "items": null', b', "items": ["x"]'])
def test_discovery_of_no_kinds_is_a_cluster_error(groups: bytes) -> None:
    """It must not read as a server that serves nothing."""
    body = b'{"kind": "APIGroupDiscoveryList"' + groups + b"}"
    with answering(200, body) as port, pytest.raises(ClusterError, match="does not answer like an API server"):
        port.discover()


@contextlib.contextmanager
def recording() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the tokens that it was sent."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(str(self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("Content-Length", "17")
            self.end_headers()
            self.wfile.write(b'{"kind": "Thing"}')

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", tokens
        server.shutdown()


@pytest.mark.parametrize(("seconds", "sent"), [(5, "second"), (3600, "first")])
def test_credential_is_renewed_before_it_expires(seconds: int, sent: str) -> None:
    with recording() as (address, tokens):
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        second = ClusterLogin(address, "", token="second", expires=end + timedelta(hours=1))  # noqa: S106  (made up)
        first = ClusterLogin(address, "", token="first", expires=end, renew=lambda: second)  # noqa: S106  (made up)
        port = ApiServer(HUB, first)
        for _ in range(2):
            port.get("/api")
        port.close()
        assert tokens == [f"Bearer {sent}"] * 2


@pytest.mark.parametrize(("seconds", "is_used"), [(5, True), (-1, False)])
def test_credential_that_cannot_be_renewed_serves_to_its_end(seconds: int, *, is_used: bool) -> None:
    def fail() -> ClusterLogin:
        raise ClusterError(HUB, "exec: ./plugin exited with 1")

    with recording() as (address, tokens):
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        port = ApiServer(HUB, ClusterLogin(address, "", token="first", expires=end, renew=fail))  # noqa: S106  (made up)
        with contextlib.nullcontext() if is_used else pytest.raises(ClusterError, match="exited with 1"):
            port.get("/api")
        port.close()
        assert len(tokens) == int(is_used)


@pytest.mark.parametrize("body", [LOGIN, b"[]"])
def test_refusal_that_is_not_an_object_is_reported_as_it_is(body: bytes) -> None:
    with answering(403, body) as port, pytest.raises(ClusterError, match="GET /api: 403 ") as raised:
        port.get("/api")
    assert raised.value.status == 403 and body.decode() in raised.value.problem


def test_server_that_takes_a_connection_and_never_answers_times_out(tmp_path: Path) -> None:
    authority = make_authority("silent")
    pair = make_server_pair(authority, "127.0.0.1")
    (tmp_path / "crt").write_text(pair.certificate)
    (tmp_path / "key").write_text(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    probed: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            accepted, _ = server.accept()
            probed.append(context.wrap_socket(accepted, server_side=True))

        taking = threading.Thread(target=take)
        taking.start()
        access = ClusterLogin(f"https://127.0.0.1:{server.getsockname()[1]}", authority.certificate)
        port = ApiServer(HUB, access, timeout=timedelta(seconds=3))
        with pytest.raises(ClusterError, match=SILENT) as raised:
            port.get("/api")
        taking.join()
        port.close()
    assert len(probed) == 1 and raised.value.is_retryable
    probed[0].close()


def drip(connection: ssl.SSLSocket, said: bytes, every: float = 0.05) -> None:
    """A byte at a time, for as long as somebody listens."""
    with contextlib.suppress(OSError):
        connection.recv(65536)
        for number in range(len(said)):
            connection.sendall(said[number : number + 1])
            time.sleep(every)
    connection.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"


@pytest.mark.parametrize("said", [HEAD + b" " * 200, b"HTTP/1.1 200 " + b"x" * 200], ids=["body", "head"])
def test_answer_that_comes_byte_by_byte_has_an_end(tmp_path: Path, said: bytes) -> None:
    """The timeout of a read begins anew with each byte: kfleet would wait for hours, with all other clusters."""
    authority = make_authority("slow")
    context, access = tls_server(tmp_path, authority)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        dripping = pool.submit(lambda: drip(context.wrap_socket(server.accept()[0], server_side=True), said))
        port = ApiServer(HUB, replace(access, server=address_of(server)), timeout=timedelta(seconds=1))
        began = time.monotonic()
        with pytest.raises(ClusterError, match="POST /api: no answer in time"):
            port.post("/api", {})
        assert 2 < time.monotonic() - began < 10
        port.close()
        dripping.result()


def test_long_answer_may_take_longer(tmp_path: Path) -> None:
    """One that goes on at a speed of which it is still worth waiting for the end."""
    authority = make_authority("long")
    context, access = tls_server(tmp_path, authority)
    body = b'{"kind": "Thing", "x": "' + b"x" * 600_000 + b'"}'

    def answer(accepted: socket.socket) -> None:
        with context.wrap_socket(accepted, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            for start in range(0, len(body), 60_000):
                connection.sendall(body[start : start + 60_000])
                time.sleep(0.4)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(lambda: answer(server.accept()[0]))
        port = ApiServer(HUB, replace(access, server=address_of(server)), timeout=timedelta(seconds=1))
        began = time.monotonic()
        assert len(port.get("/api")["x"]) == 600_000
        assert time.monotonic() - began > 3
        port.close()
        answered.result()


def tls_server(folder: Path, authority: Pair) -> tuple[ssl.SSLContext, ClusterLogin]:
    pair = make_server_pair(authority, "127.0.0.1")
    (folder / "crt").write_text(pair.certificate)
    (folder / "key").write_text(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    return context, ClusterLogin("", authority.certificate)


def address_of(server: socket.socket) -> str:
    return f"https://127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def answering_some(is_answered: Callable[[str], bool], late: int = 0) -> Iterator[tuple[ApiServer, list[str]]]:
    """A server that leaves some paths without an answer, or gives them one late; and what it was asked for."""
    asked: list[str] = []
    go_on = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(self.path)
            is_well = is_answered(self.path)
            if not is_well:
                go_on.wait(1.5 if late else None)
            self.send_response(200 if is_well else late or 200)
            self.end_headers()
            self.wfile.write(b'{"kind": "List", "metadata": {}, "items": []}')

        do_GET = do_POST = _answer  # noqa: N815  (names that the base class calls)

        def log_message(self, *_: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that gave up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        access = ClusterLogin(f"http://127.0.0.1:{server.server_address[1]}", "")
        port = ApiServer(HUB, access, timeout=timedelta(seconds=6 if late else 1))
        yield port, asked
        go_on.set()
        port.close()
        server.shutdown()


def test_silent_server_is_not_asked_for_one_thing_after_another(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever looks at it has many questions, and the other clusters would wait for all of them."""
    caplog.set_level(logging.DEBUG, "reconciler.clients.kubernetes")
    with answering_some(lambda _: False) as (port, asked):
        with pytest.raises(ClusterError, match=SILENT) as raised:
            port.get("/api")
        assert raised.value.is_retryable
        for path in ("/api", "/apis", "/api/v1/secrets", "/api/v1/namespaces/kube-system"):
            with pytest.raises(ClusterError, match=SILENT):
                port.get(path)
        assert asked == ["/api", "/version"]
        with pytest.raises(ClusterError, match="POST /api: no answer in time"):
            port.post("/api", {})
        port.forget_silence()
        with pytest.raises(ClusterError, match=SILENT):
            port.get("/apis")
    assert [record.__dict__["status"] for record in caplog.records] == ["no answer in time"] * 3


def test_silent_server_is_found_out_once_by_many_questions() -> None:
    paths = [f"/api/v1/{plural}" for plural in ("pods", "nodes", "secrets", "events")]
    with answering_some(lambda _: False) as (port, asked), ThreadPoolExecutor(len(paths)) as pool:
        answers = [pool.submit(port.get, path) for path in paths]
        assert all(isinstance(answer.exception(), ClusterError) for answer in answers)
        assert sorted(asked) == sorted([*paths, "/version"])


def test_collection_that_hangs_leaves_the_others_to_be_asked() -> None:
    with answering_some(lambda path: "/secrets" not in path) as (port, asked):
        with pytest.raises(ClusterError, match="GET /api/v1/secrets: no answer in time"):
            list(port.list("/api/v1/secrets"))
        assert list(port.list("/api/v1/pods")) == []
        with pytest.raises(ClusterError, match="GET /api/v1/namespaces/a/secrets: not retried yet"):
            list(port.list("/api/v1/namespaces/a/secrets"))
        assert [path.partition("?")[0] for path in asked] == ["/api/v1/secrets", "/version", "/api/v1/pods"]


def test_collection_of_which_a_gateway_says_late_that_it_hangs_is_left_alone() -> None:
    with answering_some(lambda path: "/secrets" not in path, late=504) as (port, _):
        for problem in ("504", "not retried yet"):
            with pytest.raises(ClusterError, match=problem):
                list(port.list("/api/v1/secrets"))
        assert list(port.list("/api/v1/pods")) == []


def test_connection_of_its_own_does_not_wait_for_what_hangs_and_gets_new_tokens() -> None:
    with answering_some(lambda path: path != "/api") as (port, _):
        own = port.apart()
        with pytest.raises(ClusterError, match="no answer in time"):
            port.get("/api")
        port.log_in_with(replace(port.access, token="new"))  # noqa: S106
        with pytest.raises(ClusterError, match="GET /api: no answer in time"):
            own.get("/api")
        assert own.access.token == "new"  # noqa: S105
        own.close()
