"""Connections to the clusters. An absent cluster is paused, twice as long each time, until it responds again."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.watch_cache import WatchedServer
from reconciler.errors import ClusterError
from reconciler.objects import IDENTITY, ClusterName, Gap
from reconciler.pipeline.observe import Connections, connect
from reconciler.spec.model import AccessSpec, FleetSpec
from reconciler.state.applyset import SetName

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
log = logging.getLogger(__name__)

# Tokens in files and Secrets change; an old one may be used for so many seconds.
OPENED_FOR = 60.0
# A connection without the record of removed clusters places no job and deletes nothing, so kfleet connects again soon.
OPENED_UNREAD_FOR = 1.0


class Pauses:
    def __init__(self) -> None:
        self._last: dict[ClusterName, float] = {}

    def next(self, name: ClusterName) -> float:
        """Seconds until the cluster is probed again."""
        last = self._last.get(name, FIRST_PAUSE / 2)
        self._last[name] = min(2 * last, LONGEST_PAUSE)
        return self._last[name]

    def end(self, name: ClusterName) -> None:
        self._last.pop(name, None)


def _accesses(spec: FleetSpec) -> Mapping[ClusterName, AccessSpec]:
    return {cluster.name: cluster.access for cluster in spec.clusters}


@dataclass(frozen=True, slots=True)
class _Opened:
    since: float
    revision: str
    accesses: Mapping[ClusterName, AccessSpec]
    connections: Connections

    def is_due(self) -> bool:
        return time.monotonic() - self.since >= (OPENED_UNREAD_FOR if self.connections.unread else OPENED_FOR)


class _Opening:
    """Logins in the background: a plugin that hangs may take longer than a cycle may wait."""

    def __init__(self, spec: FleetSpec, timeout: timedelta) -> None:
        self._revision, self._result = spec.revision, Future[Connections]()
        threading.Thread(target=self._connect, args=(spec, timeout), daemon=True).start()

    def is_for(self, spec: FleetSpec) -> bool:
        return self._revision == spec.revision

    def result(self, timeout: timedelta | None) -> Connections | None:
        """None if the logins take longer."""
        try:
            return self._result.result(timeout.total_seconds() if timeout else None)
        except TimeoutError:
            return None

    def _connect(self, spec: FleetSpec, timeout: timedelta) -> None:
        try:
            self._result.set_result(connect(spec, timeout))
        except BaseException as error:  # noqa: BLE001  (the cycle that waits for it raises it)
            self._result.set_exception(error)


class Clusters:
    def __init__(self, timeout: timedelta, wake: Callable[[str], None]) -> None:
        self._timeout, self._wake = timeout, wake
        self._servers: dict[ClusterName, WatchedServer] = {}
        self._opened: _Opened | None = None
        self._opening: _Opening | None = None
        self._absent: dict[ClusterName, str] = {}
        self._pauses = Pauses()
        self._inventories: dict[ClusterName, str] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def connections(self, spec: FleetSpec) -> Connections:
        """Clients of all clusters that responded last time; the others are gaps."""
        plain = self._open(spec)
        with self._lock:
            absent = {name: problem for name, problem in self._absent.items() if name in plain.clients}
        clients = {
            name: server for name, server in self._servers.items() if name in plain.clients and name not in absent
        }
        known = {cluster.name for cluster in spec.clusters}
        gaps = tuple(Gap(name, "the cluster", problem) for name, problem in absent.items() if name in known)
        lost = {**plain.lost, **absent}
        return replace(plain, clients=clients, gaps=(*plain.gaps, *gaps), lost=lost)

    def server(self, spec: FleetSpec, name: ClusterName) -> WatchedServer:
        """The client of one cluster, whether it responds or not."""
        plain = self._open(spec)
        if name not in plain.clients:
            raise ClusterError(name, plain.lost.get(name, "no connection"))
        return self._servers[name]

    def note(self, absent: Mapping[ClusterName, str], well: Iterable[ClusterName]) -> None:
        """Pause clusters that responded too late or not at all, until they respond; each pause is longer."""
        for name in well:
            self._pauses.end(name)
        for name, problem in absent.items():
            with self._lock:
                if name not in self._servers or name in self._absent:
                    continue
                self._absent[name] = problem
            log.warning("cluster lost", extra={"cluster": name, "problem": problem})
            threading.Thread(target=self._await_return, args=(name,), daemon=True).start()

    def doubt(self, seconds: float) -> bool:
        """Make watch caches list again that have had no event for so long; returns whether there are any."""
        return bool([server for server in self._servers.values() if server.doubt(seconds)])

    def silences(self) -> Mapping[ClusterName, float]:
        """The longest silence of a watch of each cluster, in seconds."""
        return {name: server.silence() for name, server in self._servers.items()}

    def close(self) -> None:
        self._ended.set()
        for server in self._servers.values():
            server.close()

    def _open(self, spec: FleetSpec) -> Connections:
        """The connections of this revision. Logins that take long do not delay a fleet whose accesses are the same."""
        before = self._opened
        if before and before.revision == spec.revision and not before.is_due():
            return before.connections
        opening = self._opening if self._opening and self._opening.is_for(spec) else _Opening(spec, self._timeout)
        self._opening = opening
        is_same = before is not None and before.accesses == _accesses(spec)
        opened = opening.result(self._timeout if is_same else None)
        if opened is None:
            return before.connections if before else Connections({})
        self._opening = None
        opened.close()
        self._follow(opened.clients.values())
        self._inventories = {
            cluster.name: SetName(spec.fleet.name, cluster.kueue.namespace).path
            for cluster in (*spec.clusters, *opened.removed)
        }
        # The time after connecting: slow logins must not be due again as soon as they are done.
        self._opened = _Opened(time.monotonic(), spec.revision, _accesses(spec), opened)
        return opened

    def _follow(self, clients: Iterable[ApiServer]) -> None:
        """A watched server per cluster; the existing one is kept if its access has not changed."""
        fresh: dict[ClusterName, WatchedServer] = {}
        for client in clients:
            known = self._servers.get(client.cluster)
            if known is not None and replace(known.access, token=client.access.token) == client.access:
                known.log_in_with(client.access)
                fresh[client.cluster] = known
            else:
                fresh[client.cluster] = WatchedServer(
                    client.cluster, client.access, on_change=self._on_change, timeout=self._timeout
                )
        for name, server in self._servers.items():
            if fresh.get(name) is not server:
                server.close()
        self._servers = fresh

    def _on_change(self, cluster: ClusterName, path: str) -> None:
        self._wake(f"{cluster}: {path.rpartition('/')[2]}")

    def _await_return(self, name: ClusterName) -> None:
        """Probe the cluster in the background, as an observation does first. Its access may change meanwhile."""
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
            # It was removed from the fleet: the next cycle reports what it finds.
            return True
        server.forget_silence()
        try:
            server.get(IDENTITY)
            server.find(self._inventories[name])
        except (ClusterError, KeyError):
            return False
        return True
