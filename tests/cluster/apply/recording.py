"""Connections that remember what was asked over them; the servers behind them are real."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.observe import Connections, connect
from reconciler.spec.model import FleetSpec


@dataclass(frozen=True, slots=True)
class Request:
    cluster: ClusterName
    method: str
    path: str
    is_list: bool

    @property
    def plural(self) -> str:
        """The collection of an object's path, or of a LIST."""
        return self.path.split("/")[-1 if self.is_list else -2]


@dataclass
class Log:
    """Requests of all clusters in the order in which they were answered."""

    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, *methods: str) -> list[Request]:
        return [request for request in self.requests if request.method in methods]


class RecordingServer(ApiServer):
    def __init__(self, cluster: ClusterName, access: ClusterLogin, log: Log) -> None:
        super().__init__(cluster, access)
        self._log = log

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Manifest | Sequence[Mapping[str, Any]] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        answer = super()._request(method, path, query, body=body, content_type=content_type, accept=accept)
        with self._log.lock:
            self._log.requests.append(Request(self.cluster, method, path, is_list="limit" in (query or {})))
        return answer


def record(spec: FleetSpec) -> tuple[Connections, Log]:
    log = Log()
    plain = connect(spec)
    clients = {name: RecordingServer(name, client.access, log) for name, client in plain.clients.items()}
    plain.close()
    return Connections(clients, plain.gaps), log
