"""A proxy before a real API server that answers wrongly, not at all, or late, when it is told to."""

import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import urllib3

from reconciler.clients.kubeconfig import ClusterLogin, new_pool
from reconciler.objects import ClusterName
from reconciler.sandbox.certificates import write_kubeconfig
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.state import SandboxCluster

WRITES = "PATCH|POST|PUT|DELETE"
_PASSED_ON = ("Accept", "Content-Type")


class Deed(StrEnum):
    ANSWER = "answer with a status of its own"
    CLOSE = "close the connection"
    HOLD = "keep the request until it is let go"
    HOLD_ANSWER = "pass the request on, and keep the answer"
    CUT = "pass the request on, and break off in the middle of the answer"
    STALL = "begin a watch, and pass nothing of it on"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to some requests: after `after` that match, to the next `times`."""

    deed: Deed
    path: str = ""
    methods: str = WRITES
    status: int = 0
    reason: str = ""
    retry_after: str = ""
    page: str = ""  # what is answered in place of a Status, as a load balancer does
    form: str = "text/html"  # of the page
    after: int = 0
    times: int = 1
    is_dry_run: bool = False

    def matches(self, method: str, path: str) -> bool:
        is_method = re.fullmatch(self.methods, method) is not None
        return is_method and ("dryRun=" in path) == self.is_dry_run and re.search(self.path, path) is not None


class FaultProxy:
    """Speaks for one cluster; `requests` are those that arrived, `reached` is set when one is being held."""

    def __init__(self, cluster: SandboxCluster, folder: Path) -> None:
        self.cluster = cluster
        self.requests: list[str] = []
        self.reached, self._go_on = threading.Event(), threading.Event()
        self._faults: list[Fault] = []
        self._is_dropping = False
        self._lock = threading.Lock()
        self._pool, self._watches = new_pool(cluster.access, 32), new_pool(cluster.access, 128)
        self._server = _Server(self)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "serving.crt", folder / "serving.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._pool.clear()
        self._watches.clear()

    @property
    def access(self) -> ClusterLogin:
        return replace(self.cluster.access, server=f"https://127.0.0.1:{self._server.server_address[1]}")

    def kubeconfig(self, path: Path) -> Path:
        write_kubeconfig(path, [replace(self.cluster, access=self.access)])
        return path

    def inject(self, *faults: Fault) -> None:
        self._go_on.clear()
        self.reached.clear()
        self._is_dropping = False
        with self._lock:
            self._faults = list(faults)
            self.requests.clear()

    def let_go(self) -> None:
        """Everything passes from now on, also what is being held."""
        with self._lock:
            self._faults = []
        self._go_on.set()

    def drop(self) -> None:
        """Everything passes from now on, but what is being held is forgotten, as if it had never been sent."""
        self._is_dropping = True
        self.let_go()

    def choose(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            for number, fault in enumerate(self._faults):
                if not fault.matches(method, path):
                    continue
                if fault.after:
                    self._faults[number] = replace(fault, after=fault.after - 1)
                elif fault.times:
                    self._faults[number] = replace(fault, times=fault.times - 1)
                    return fault
        return None

    def hold(self) -> bool:
        """Keep a request until it is let go; false where it is dropped instead."""
        self.reached.set()
        self._go_on.wait()
        return not self._is_dropping

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> urllib3.BaseHTTPResponse:
        return self._pool.request(method, self.cluster.access.server + path, headers=headers, body=body or None)

    def follow(self, path: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        url = self.cluster.access.server + path
        return self._watches.request("GET", url, headers=headers, preload_content=False)


@contextmanager
def proxied(sandbox: Sandbox, cluster: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(sandbox.state.cluster(ClusterName(cluster)), sandbox.folder / cluster)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client; its server carries the proxy."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            # The client was killed, which is what some tests are about.
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        return

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.proxy.choose(self.command, self.path)
        if "watch=1" in self.path and (fault is None or fault.deed is Deed.STALL):
            self._pass_events(is_stalled=fault is not None)
        elif fault is None:
            self._forward(body)
        elif fault.deed is Deed.ANSWER:
            body, kind = (fault.page.encode(), fault.form) if fault.page else (_refusal(fault), "application/json")
            self._answer(fault.status, body, kind, fault.retry_after)
        elif fault.deed is Deed.HOLD_ANSWER:
            self._forward(body, self.server.proxy.hold)
        elif fault.deed is Deed.CUT:
            self._forward(body, is_cut=True)
        elif fault.deed is Deed.HOLD and self.server.proxy.hold():
            self._forward(body)
        else:
            self.close_connection = True

    def _forward(self, body: bytes, before_answer: Callable[[], Any] = lambda: None, *, is_cut: bool = False) -> None:
        answer = self.server.proxy.forward(self.command, self.path, self._headers(), body)
        before_answer()
        size = len(answer.data)
        half = answer.data[: size // 2] if is_cut else answer.data
        self._answer(answer.status, half, answer.headers.get("Content-Type", ""), size=size)
        self.close_connection |= is_cut

    def _pass_events(self, *, is_stalled: bool) -> None:
        answer = self.server.proxy.follow(self.path, self._headers())
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        try:
            if is_stalled:
                self.server.proxy.hold()
            for chunk in answer.stream(amt=None):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            answer.close()

    def _headers(self) -> dict[str, str]:
        passed_on = {name: self.headers[name] for name in _PASSED_ON if self.headers.get(name)}
        return {**passed_on, **self.server.proxy.cluster.access.headers}

    def _answer(
        self, status: int, body: bytes, content_type: str, retry_after: str = "", *, size: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _pass  # noqa: N815  (names that the base class calls)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: Any) -> None:
        """A client that went away in the middle is no news."""


def _refusal(fault: Fault) -> bytes:
    return orjson.dumps(
        {"kind": "Status", "apiVersion": "v1", "code": fault.status, "reason": fault.reason, "message": "made up"}
    )
