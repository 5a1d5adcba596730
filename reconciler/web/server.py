"""The HTTP server of the page: static files for all, data for those who may see it, and a stream of new views."""

import logging
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import orjson

from reconciler.clients.http_server import Limits, OpenConnections, listen
from reconciler.errors import EdgeError, KfleetError
from reconciler.web.auth import Denied, Reviewer, bearer_token
from reconciler.web.events import Feed, Reader, Shown, event, plan_for
from reconciler.web.filter import WHOLE_FLEET, ViewScope, namespaces_in, narrow
from reconciler.web.routes import EVENTS, JSON, SAFETY, PageAnswer, is_local_name, is_loopback, page_answer

log = logging.getLogger(__name__)

CONNECTIONS, STREAMS = 160, 64
LIMITS = Limits(connections=CONNECTIONS)
NO_STORE: Mapping[str, str] = {"Cache-Control": "no-store"}
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
            self.stop.wait(self.feed.refresh.total_seconds())
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
