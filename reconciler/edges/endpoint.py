"""What kfleet shows of itself over HTTP: metrics, and whether it lives and is ready."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from reconciler.errors import EdgeError

LAST_PORT = 65535

Check = Callable[[], str]


class Endpoint:
    """Listens from its making on. A check answers with what is wrong, or nothing."""

    def __init__(self, address: str, registry: CollectorRegistry, is_alive: Check, is_ready: Check) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal() or int(port) > LAST_PORT:
            raise EdgeError(f"--listen {address}", "is no address", "say ADDRESS:PORT, such as 127.0.0.1:9464")
        checks = {"/healthz": is_alive, "/readyz": is_ready}
        handler = type("Handler", (_Handler,), {"registry": registry, "checks": checks})
        try:
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), handler)
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


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    checks: dict[str, Check]
    timeout = 10

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(200, generate_latest(self.registry), CONTENT_TYPE_LATEST)
        elif self.path in self.checks:
            problem = self.checks[self.path]()
            self._answer(503 if problem else 200, f"{problem or 'ok'}\n".encode(), "text/plain; charset=utf-8")
        else:
            self._answer(404, b"there are /metrics, /healthz and /readyz\n", "text/plain; charset=utf-8")

    def log_message(self, *_: object) -> None:
        """Probes come every few seconds and tell nobody anything."""

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
