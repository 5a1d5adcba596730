"""Connections that last: opened once, followed by watches, left alone for a while where a cluster does not answer."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from reconciler.edges.kubernetes import ApiServer
from reconciler.edges.watched import WatchedServer
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Gap
from reconciler.ownership.applyset import SetName
from reconciler.pipeline.online import Connections, connect
from reconciler.predict.look import IDENTITY
from reconciler.run.pauses import Pauses
from reconciler.spec import FleetSpec

log = logging.getLogger(__name__)

# Tokens in files and Secrets change; so long an old one may be used.
OPENED_FOR = 60.0


class Clusters:
    def __init__(self, timeout: timedelta, wake: Callable[[str], None]) -> None:
        self._timeout, self._wake = timeout, wake
        self._servers: dict[ClusterName, WatchedServer] = {}
        self._opened: tuple[float, str, Connections] | None = None
        self._absent: dict[ClusterName, str] = {}
        self._pauses = Pauses()
        self._inventories: dict[ClusterName, str] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def connections(self, spec: FleetSpec) -> Connections:
        """Everybody who answered last time; the others are gaps."""
        plain = self._open(spec)
        with self._lock:
            absent = {name: problem for name, problem in self._absent.items() if name in plain.ports}
        ports = {name: server for name, server in self._servers.items() if name in plain.ports and name not in absent}
        known = {cluster.name for cluster in spec.clusters}
        gaps = tuple(Gap(name, "the cluster", problem) for name, problem in absent.items() if name in known)
        lost = {**plain.lost, **absent}
        return replace(plain, ports=ports, gaps=(*plain.gaps, *gaps), lost=lost)

    def server(self, spec: FleetSpec, name: ClusterName) -> WatchedServer:
        """The connection to one cluster, whether it answers or not."""
        plain = self._open(spec)
        if name not in plain.ports:
            raise ClusterError(name, plain.lost.get(name, "no connection"))
        return self._servers[name]

    def note(self, absent: Mapping[ClusterName, str], well: Iterable[ClusterName]) -> None:
        """Clusters that did not answer, or too late: they are left out until they do, and for longer each time."""
        for name in well:
            self._pauses.end(name)
        for name, problem in absent.items():
            with self._lock:
                if name not in self._servers or name in self._absent:
                    continue
                self._absent[name] = problem
            log.warning("cluster lost", extra={"cluster": name, "problem": problem})
            threading.Thread(target=self._await_return, args=(name,), daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        for server in self._servers.values():
            server.close()

    def _open(self, spec: FleetSpec) -> Connections:
        now = time.monotonic()
        if self._opened and now - self._opened[0] < OPENED_FOR and self._opened[1] == spec.revision:
            return self._opened[2]
        opened = connect(spec, self._timeout)
        opened.close()
        self._follow(opened.ports.values())
        self._inventories = {
            cluster.name: SetName(spec.fleet.name, cluster.kueue.namespace).path
            for cluster in (*spec.clusters, *opened.departed)
        }
        self._opened = (now, spec.revision, opened)
        return opened

    def _follow(self, ports: Iterable[ApiServer]) -> None:
        """A watched server for each; the old one where nothing about the way to it has changed."""
        fresh: dict[ClusterName, WatchedServer] = {}
        for port in ports:
            known = self._servers.get(port.cluster)
            if known is not None and replace(known.access, token=port.access.token) == port.access:
                known.access = port.access
                fresh[port.cluster] = known
            else:
                fresh[port.cluster] = WatchedServer(
                    port.cluster, port.access, on_change=self._on_change, timeout=self._timeout
                )
        for name, server in self._servers.items():
            if fresh.get(name) is not server:
                server.close()
        self._servers = fresh

    def _on_change(self, cluster: ClusterName, path: str) -> None:
        self._wake(f"{cluster}: {path.rpartition('/')[2]}")

    def _await_return(self, name: ClusterName) -> None:
        """Ask in the background what every look asks first; by then the way to the cluster may be another one."""
        while not self._ended.wait(self._pauses.next(name)) and not self._is_back(name):
            log.debug("cluster still lost", extra={"cluster": name})
        with self._lock:
            self._absent.pop(name, None)
        if not self._ended.is_set():
            log.info("cluster back", extra={"cluster": name})
            self._wake(f"{name}: back")

    def _is_back(self, name: ClusterName) -> bool:
        server = self._servers.get(name)
        if server is None:
            # It left the fleet: whoever looks next says what is to be said of it.
            return True
        server.forget_silence()
        try:
            server.get(IDENTITY)
            server.find(self._inventories[name])
        except (ClusterError, KeyError):
            return False
        return True
