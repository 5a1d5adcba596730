"""What kfleet shows of itself over HTTP: metrics, whether it lives and is ready; and who may tell it something."""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from reconciler.errors import EdgeError

log = logging.getLogger(__name__)

LAST_PORT = 65535
LARGEST_BODY = 1 << 20
# So many bodies are read at the same time; strangers can send them too.
RECEIVED_AT_ONCE = 4

Check = Callable[[], str]
Receiver = Callable[[Mapping[str, str], bytes], tuple[int, str]]
NO_RECEIVERS: Mapping[str, Receiver] = {}


class Endpoint:
    """Listens from its making on. A check answers with what is wrong, or nothing.

    A receiver gets the headers, their names in lower case, and the body of what is posted to its path.
    """

    def __init__(
        self,
        address: str,
        registry: CollectorRegistry,
        is_alive: Check,
        is_ready: Check,
        receivers: Mapping[str, Receiver] = NO_RECEIVERS,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal() or int(port) > LAST_PORT:
            raise EdgeError(f"--listen {address}", "is no address", "say ADDRESS:PORT, such as 127.0.0.1:9464")
        checks = {"/healthz": is_alive, "/readyz": is_ready}
        gate = threading.BoundedSemaphore(RECEIVED_AT_ONCE)
        parts = {"registry": registry, "checks": checks, "receivers": receivers, "gate": gate}
        handler = type("Handler", (_Handler,), parts)
        try:
            self._server = _Server((host.strip("[]"), int(port)), handler)
        except OSError as error:
            problem = f"cannot listen there: {(error.strerror or str(error)).lower()}"
            hint = "choose another ADDRESS:PORT; with port 0 a free one is taken"
            raise EdgeError(f"--listen {address}", problem, hint) from error
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (the library's signature)
        """Mostly somebody who hung up; not worth the traceback that the library prints."""
        log.debug("request", exc_info=sys.exception())


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    checks: dict[str, Check]
    receivers: Mapping[str, Receiver]
    gate: threading.BoundedSemaphore
    timeout = 10

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(200, generate_latest(self.registry), CONTENT_TYPE_LATEST)
        elif self.path in self.checks:
            problem = self.checks[self.path]()
            self._say(503 if problem else 200, problem or "ok")
        else:
            self._say(404, "there are /metrics, /healthz and /readyz")

    def do_POST(self) -> None:
        receiver = self.receivers.get(self.path)
        length = self.headers.get("Content-Length", "")
        if receiver is None:
            self._say(404, "nothing is received here")
        elif not length.isdecimal():
            self._say(411, "say the Content-Length")
        elif int(length) > LARGEST_BODY:
            self._say(413, f"at most {LARGEST_BODY} bytes are read")
        elif not self.gate.acquire(blocking=False):
            self._say(503, "too many at once; try again")
        else:
            try:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._say(*receiver(headers, self.rfile.read(int(length))))
            finally:
                self.gate.release()

    def log_message(self, *_: object) -> None:
        """Probes come every few seconds and tell nobody anything."""

    def _say(self, status: int, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
