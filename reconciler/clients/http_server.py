"""kfleet's HTTP server: metrics, liveness, readiness, and receivers of webhooks."""

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from reconciler.errors import EdgeError

log = logging.getLogger(__name__)

LAST_PORT = 65535
LARGEST_BODY = 1 << 20

Check = Callable[[], str]
Receiver = Callable[[Mapping[str, str], bytes], tuple[int, str]]
NO_RECEIVERS: Mapping[str, Receiver] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what clients can occupy, because they are unknown until their signature is verified.

    At most `connections` are open at the same time; one more closes the oldest that waits for its client. `seconds` is
    the time for a whole request, from its first byte to the last byte of the response. At most `receivers` run at the
    same time, each with a complete body; another request waits up to `turn_seconds` for its turn.
    """

    connections: int = 32
    seconds: float = 10
    receivers: int = 4
    turn_seconds: float = 1


LIMITS = Limits()


class HttpServer:
    """Listens as soon as it is created. A check returns the problem, or nothing.

    A receiver gets the headers, with lower-case names, and the body of a POST to its path.
    """

    def __init__(
        self,
        address: str,
        registry: CollectorRegistry,
        is_alive: Check,
        is_ready: Check,
        receivers: Mapping[str, Receiver] = NO_RECEIVERS,
        limits: Limits = LIMITS,
    ) -> None:
        checks = {"/healthz": is_alive, "/readyz": is_ready}
        parts = {
            "registry": registry,
            "checks": checks,
            "receivers": receivers,
            "connections": (connections := OpenConnections(limits)),
            "gate": threading.BoundedSemaphore(limits.receivers),
            "turn_seconds": limits.turn_seconds,
            "timeout": limits.seconds,
        }
        self._server = listen("--listen", address, type("Handler", (_Handler,), parts), connections)
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def listen(
    option: str, address: str, handler: type[BaseHTTPRequestHandler], connections: "OpenConnections"
) -> "LimitedServer":
    """A server at ADDRESS:PORT; `option` is where the user gave the address."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > LAST_PORT:
        raise EdgeError(f"{option} {address}", "is not an address", "use ADDRESS:PORT, such as 127.0.0.1:9464")
    try:
        return LimitedServer((host.strip("[]"), int(port)), handler, connections)
    except OSError as error:
        problem = f"cannot listen there: {(error.strerror or str(error)).lower()}"
        hint = "choose another ADDRESS:PORT; port 0 selects a free port"
        raise EdgeError(f"{option} {address}", problem, hint) from error


class OpenConnections:
    """The open connections, the oldest first. Each has a thread that ends when its socket is shut down."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._since: dict[socket.socket, float] = {}
        self._at_work: set[socket.socket] = set()

    def admit(self, connection: socket.socket) -> bool:
        with self._lock:
            if len(self._since) >= self._limits.connections and not self._end_oldest():
                return False
            self._since[connection] = time.monotonic()
        return True

    def forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._since.pop(connection, None)

    @contextmanager
    def at_work(self, connection: socket.socket) -> Iterator[None]:
        """Mark a connection as busy: while kfleet works on the response, the client is not the slow side."""
        with self._lock:
            self._at_work.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._at_work.discard(connection)

    def end_overdue(self) -> None:
        latest = time.monotonic() - self._limits.seconds
        with self._lock:
            overdue = [each for each, since in self._since.items() if since < latest and each not in self._at_work]
            for connection in overdue:
                self._end(connection)

    def _end_oldest(self) -> bool:
        oldest = next((each for each in self._since if each not in self._at_work), None)
        if oldest is not None:
            self._end(oldest)
        return oldest is not None

    def _end(self, connection: socket.socket) -> None:
        del self._since[connection]
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class LimitedServer(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], connections: OpenConnections
    ) -> None:
        super().__init__(address, handler)
        self._connections = connections

    def verify_request(self, request: Any, client_address: object) -> bool:  # noqa: ARG002  (the library's signature)
        return self._connections.admit(request)

    def shutdown_request(self, request: Any) -> None:
        self._connections.forget(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close overdue connections; the library calls this twice a second."""
        self._connections.end_overdue()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (the library's signature)
        """Ignore the error: mostly a client hung up, which is not worth the traceback that the library prints."""
        log.debug("request", exc_info=sys.exception())


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    checks: dict[str, Check]
    receivers: Mapping[str, Receiver]
    connections: OpenConnections
    gate: threading.BoundedSemaphore
    turn_seconds: float

    def do_GET(self) -> None:
        if self.path == "/metrics":
            with self.connections.at_work(self.connection):
                metrics = generate_latest(self.registry)
            self._answer(200, metrics, CONTENT_TYPE_LATEST)
        elif self.path in self.checks:
            with self.connections.at_work(self.connection):
                problem = self.checks[self.path]()
            self._say(503 if problem else 200, problem or "ok")
        else:
            self._say(404, "available paths: /metrics, /healthz and /readyz")

    def do_POST(self) -> None:
        receiver = self.receivers.get(self.path)
        length = self.headers.get("Content-Length", "")
        if receiver is None:
            self._say(404, "no receiver at this path")
        elif not length.isdecimal():
            self._say(411, "set the Content-Length")
        elif int(length) > LARGEST_BODY:
            self._say(413, f"the body may have at most {LARGEST_BODY} bytes")
        elif len(body := self.rfile.read(int(length))) < int(length):
            self._say(400, "the body is shorter than its Content-Length")
        else:
            self._say(*self._receive(receiver, body))

    def _receive(self, receiver: Receiver, body: bytes) -> tuple[int, str]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.connections.at_work(self.connection):
            if not self.gate.acquire(timeout=self.turn_seconds):
                return 503, "too many requests at once; try again"
            try:
                return receiver(headers, body)
            finally:
                self.gate.release()

    def log_message(self, *_: object) -> None:
        """Log nothing: probes come every few seconds and carry no information."""

    def _say(self, status: int, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
