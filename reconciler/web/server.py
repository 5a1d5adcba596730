"""The HTTP server of the page: static files for all, data for those who may see it, and a stream of new views."""

import hashlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import orjson

from reconciler.clients.http_server import Limits, OpenConnections, listen
from reconciler.errors import EdgeError, KfleetError
from reconciler.web.auth import WHOLE_FLEET, Denied, Reviewer, ViewScope, bearer_token, namespaces_in, narrow
from reconciler.web.events import Feed, Reader, Shown, event, plan_for

STATIC = Path(__file__).parent / "static"
VIEWS = ("fleet", "queues", "jobs", "plan", "capacity")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
EVENTS = "text/event-stream"
# Nothing inline, nothing from elsewhere, and no other page may frame this one.
SAFETY: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
log = logging.getLogger(__name__)
CONNECTIONS, STREAMS = 160, 64
LIMITS = Limits(connections=CONNECTIONS)
# A page takes a stream that is silent for longer (SILENCE in api.js) for a lost one.
HEARTBEAT = timedelta(seconds=15)
NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class PageAnswer:
    status: int
    body: bytes = b""
    kind: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def is_loopback(address: str) -> bool:
    """Whether ADDRESS:PORT is reachable from this machine only."""
    host = address.rpartition(":")[0]
    return host in _LOOPBACK_NAMES or (host.startswith("127.") and host.replace(".", "").isdecimal())


def is_local_name(host: str) -> bool:
    """Whether a Host header names this machine. Another name there is a page that rebinds its name to 127.0.0.1."""
    name = host.lower()
    return any(name == known or name.startswith(f"{known}:") for known in _LOOPBACK_NAMES)


def page_answer(target: str, known_tag: str = "") -> PageAnswer | None:
    """The answer for everything that is the same for all readers; None for another address."""
    path = urlsplit(target).path
    if path == "/":
        return PageAnswer(302, headers={"Location": "fleet"})
    if path.removeprefix("/") in VIEWS:
        return _file("index.html", known_tag)
    if path.startswith("/static/"):
        return _file(path.removeprefix("/static/"), known_tag)
    return None


def _file(name: str, known_tag: str) -> PageAnswer:
    if name not in _names():
        return PageAnswer(404, b"no such file\n")
    body = (STATIC / name).read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    kind = KINDS[Path(name).suffix]
    return PageAnswer(304, b"", kind, headers) if known_tag == tag else PageAnswer(200, body, kind, headers)


def _names() -> set[str]:
    """A name is one of these or does not exist, so that no path leads out of the folder."""
    return {path.name for path in STATIC.iterdir() if path.suffix in KINDS}


OTHER_NAME = PageAnswer(421, b"without a login, this page is served as localhost only\n")
NOT_FOUND = PageAnswer(
    404, b"available: /fleet /queues /jobs /plan /capacity /api/view /api/plan /api/history /api/events\n"
)
TOO_MANY = PageAnswer(503, b"too many readers; try again later\n")


class WebServer:
    """Listens as soon as it is created. Without a reviewer all readers see everything: only for loopback."""

    def __init__(self, option: str, address: str, feed: Feed, reviewer: Reviewer | None) -> None:
        if reviewer is None and not is_loopback(address):
            raise EdgeError(
                f"{option} {address}",
                "is not a loopback address",
                "use 127.0.0.1:PORT; kfleet run --ui serves others, with a login",
            )
        self._stop = threading.Event()
        parts = {
            "feed": feed,
            "reviewer": reviewer,
            "connections": (connections := OpenConnections(LIMITS)),
            "streams": threading.BoundedSemaphore(STREAMS),
            "stop": self._stop,
            "timeout": LIMITS.seconds,
        }
        self._server = listen(option, address, type("PageHandler", (_Handler,), parts), connections)
        threading.Thread(target=self._server.serve_forever, name="page", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "kfleet"
    sys_version = ""
    feed: Feed
    reviewer: Reviewer | None
    connections: OpenConnections
    streams: threading.BoundedSemaphore
    stop: threading.Event

    def do_GET(self) -> None:
        self.close_connection = True
        if self.reviewer is None and not is_local_name(self.headers.get("Host", "")):
            self._send(OTHER_NAME)
        elif (answer := page_answer(self.path, self.headers.get("If-None-Match", ""))) is not None:
            self._send(answer)
        else:
            with self.connections.at_work(self.connection):
                self._send_data(urlsplit(self.path).path)

    def log_message(self, *_: object) -> None:
        """Log nothing: an open page asks for its parts, and the address may hold what a user searched for."""

    def _send_data(self, path: str) -> None:
        if path not in {"/api/view", "/api/plan", "/api/history", "/api/events"}:
            self._send(NOT_FOUND)
            return
        try:
            scope = self._scope()
            if isinstance(scope, Denied):
                self._send(_denied(scope))
            elif path == "/api/events":
                self._stream()
            else:
                self._send(_data(path, self.feed.latest(), scope))
        except KfleetError as error:
            self._send(PageAnswer(503, f"{error}\n".encode()))

    def _scope(self) -> ViewScope | Denied:
        if self.reviewer is None:
            return WHOLE_FLEET
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.reviewer.decide(bearer_token(headers), lambda: namespaces_in(self.feed.latest().view))

    def _stream(self) -> None:
        if not self.streams.acquire(blocking=False):
            self._send(TOO_MANY)
            return
        try:
            shown = self.feed.latest()
            self._begin(PageAnswer(200, kind=EVENTS, headers={**NO_STORE, "X-Accel-Buffering": "no"}))
            self._follow(shown)
        finally:
            self.streams.release()

    def _follow(self, shown: Shown) -> None:
        """Send views until the reader hangs up, may no longer see them, or the server stops."""
        reader = Reader(self.feed)
        while not self.stop.is_set():
            scope = self._scope()
            if isinstance(scope, Denied):
                self.wfile.write(event("denied", {"status": scope.status, "why": scope.why}))
                return
            for each in reader.events(shown, scope):
                self.wfile.write(each)
            self.wfile.write(b": \n\n")  # finds out whether the reader is still there
            self.stop.wait(min(self.feed.refresh, HEARTBEAT).total_seconds())
            shown = self.feed.latest()

    def _send(self, answer: PageAnswer) -> None:
        self._begin(answer, len(answer.body))
        self.wfile.write(answer.body)

    def _begin(self, answer: PageAnswer, length: int | None = None) -> None:
        self.send_response(answer.status)
        headers = {**SAFETY, "Content-Type": answer.kind, "Connection": "close", **answer.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()


def _data(path: str, shown: Shown, scope: ViewScope) -> PageAnswer:
    if path == "/api/view":
        return PageAnswer(200, orjson.dumps(narrow(shown.view, scope)), JSON, NO_STORE)
    if not scope.is_fleet:
        return PageAnswer(403, b"only for readers of the whole fleet\n", headers=NO_STORE)
    record = plan_for(shown, scope) if path == "/api/plan" else shown.history
    return PageAnswer(200, orjson.dumps(record), JSON, NO_STORE)


def _denied(denied: Denied) -> PageAnswer:
    headers = {**NO_STORE, "WWW-Authenticate": 'Bearer realm="kfleet"'} if denied.status == 401 else NO_STORE
    return PageAnswer(denied.status, f"{denied.why}\n".encode(), headers=headers)
