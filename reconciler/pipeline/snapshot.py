"""Everything that any command observes, as one Recording."""

import importlib.metadata
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reconciler.capacity.codec import look_record
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Gap
from reconciler.pipeline.admission import live_fleet
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.compare import Report
from reconciler.pipeline.line import PlanOptions, plan_fleet
from reconciler.pipeline.load import Revision
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections, Recorder, connect
from reconciler.snapshot.recording import ClusterRecording, Recording
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.state.applyset import MEMBER_LABEL, SetName

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Kinds that a fleet renders: listed completely, or only the fleet's own objects where others may be confidential.
LISTED = ("/api/v1/serviceaccounts", *(f"{_RBAC}/{one}" for one in ("roles", "rolebindings")))
LISTED += tuple(f"{_RBAC}/cluster{one}" for one in ("roles", "rolebindings"))
OWN = ("/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/secrets", *LISTED)


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot, and what could not be observed for it."""

    recording: Recording
    gaps: tuple[Gap, ...] = ()


def take_snapshot(revision: Revision, timeout: timedelta, options: ObserveOptions, report: Report) -> Taken:
    """Observe everything that plan, status, preflight, check and the views of live objects need."""
    recorder = Recorder(timeout, is_read_only=True)
    with closing(connect(revision.spec, opener=recorder.open)) as connections:
        planned = plan_fleet(revision, connections, options, PlanOptions(is_thorough=True), report)
        rendered, comparison = planned.rendered, planned.comparison
        live_fleet(rendered.spec, connections)
        seen = observe_fleet_objects(rendered.spec, connections)
        _list_more(rendered.spec, connections)
    capacity = rendered.snapshot.capacity
    gaps = (*comparison.gaps, *seen.gaps, *(gap for view in comparison.views for gap in view.gaps))
    recording = Recording(
        taken_at=datetime.now(UTC),
        kfleet=importlib.metadata.version("kfleet"),
        fleet=revision.spec.fleet.name,
        clusters={**_lost(connections), **recorder.recordings()},
        capacity=None if capacity is None else look_record(capacity),
    )
    return Taken(recording, tuple(dict.fromkeys(gaps)))


def _lost(connections: Connections) -> Mapping[ClusterName, ClusterRecording]:
    return {name: ClusterRecording(problem=why) for name, why in connections.lost.items()}


def _list_more(spec: FleetSpec, connections: Connections) -> None:
    """List kinds of which another revision of the fleet may have objects: all of them, or only those of the fleet.

    An account that may not list a kind loses nothing: the snapshot then says so.
    """

    def list_one(cluster: Cluster) -> None:
        client, member = connections.clients[cluster.name], SetName(spec.fleet.name, cluster.kueue.namespace).id
        for path, selector in (*((path, "") for path in LISTED), *((path, f"{MEMBER_LABEL}={member}") for path in OWN)):
            with suppress(ClusterError):
                list(client.list(path, selector))

    clusters = [cluster for cluster in spec.clusters if cluster.name in connections.clients]
    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        list(pool.map(list_one, clusters))
