"""Connections that ask for each fact once, and connections that answer from a snapshot."""

import threading
from collections.abc import Mapping
from datetime import timedelta

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import TIMEOUT, ApiServer
from reconciler.clients.recording import MISSING, AnswerMemory, replayed
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.pipeline.observe import Connections, connect, remembering
from reconciler.snapshot.recording import ClusterRecording, Recording
from reconciler.snapshot.replay import masked_answers
from reconciler.spec.model import Cluster, FleetSpec


class Recorder:
    """Opens clusters, and keeps the responses of each. To make a snapshot, dry runs are not needed."""

    def __init__(self, timeout: timedelta, *, is_read_only: bool = False) -> None:
        self._timeout, self._is_read_only = timeout, is_read_only
        self._lock = threading.Lock()
        self._memories: dict[ClusterName, AnswerMemory] = {}
        self._opened: dict[ClusterName, ApiServer] = {}

    def open(self, cluster: Cluster, manager: ApiServer | None = None) -> ApiServer:
        plain = open_cluster(cluster, manager, self._timeout)
        with self._lock:
            memory = self._memories.setdefault(cluster.name, AnswerMemory())
            self._opened[cluster.name] = plain
        return remembering(plain, memory, is_read_only=self._is_read_only)

    def recordings(self) -> Mapping[ClusterName, ClusterRecording]:
        """The masked answers of each cluster that was opened."""
        with self._lock:
            opened = dict(self._opened)
        return {
            name: ClusterRecording(
                server=client.access.server,
                ca=client.access.ca,
                answers=masked_answers(self._memories[name].responses()),
            )
            for name, client in sorted(opened.items())
        }


def connect_once(spec: FleetSpec, timeout: timedelta = TIMEOUT) -> Connections:
    """Open all clusters for a command that only reads: each fact is requested once."""
    return connect(spec, opener=Recorder(timeout).open)


def connect_recorded(spec: FleetSpec, recording: Recording) -> Connections:
    """Open the clusters of a snapshot. A cluster that is not in it is a gap."""

    def open_one(cluster: Cluster, _manager: ApiServer | None = None) -> ApiServer:
        recorded = recording.clusters.get(cluster.name)
        if recorded is None or recorded.problem:
            raise ClusterError(cluster.name, recorded.problem if recorded else MISSING)
        connection = replayed(cluster.name, recorded)
        return ApiServer(cluster.name, connection.access, connection=connection)

    return connect(spec, opener=open_one, taken_at=recording.taken_at)
