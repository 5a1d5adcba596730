"""Stage 2: clusters and message buses are observed once, and the result is a Snapshot. Recorded clusters answer too."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import TIMEOUT, ApiServer
from reconciler.clients.recording import MISSING, AnswerMemory, RecordingConnection, replayed
from reconciler.errors import ClusterError
from reconciler.kubestellar.copies import look_at_inventory, observe_shape
from reconciler.kubestellar.observe import observe_placements
from reconciler.kueue_config.observe import observe_configurations
from reconciler.multikueue.model import FormerJobs, WorkerRemovals
from reconciler.multikueue.observe import ask_permissions, observe_links
from reconciler.multikueue.observe_removal import RemovalQuestion, observe_former_jobs, observe_removals
from reconciler.multikueue.removal import required_memberships
from reconciler.objects import ClusterName, Gap
from reconciler.pipeline.capacity import NOW, ObserveOptions, observe_sources, read_master_queues
from reconciler.pipeline.load import Revision
from reconciler.pipeline.render import Rendered, Snapshot, with_capacity
from reconciler.plan.guards import find_moved
from reconciler.plan.preflight import gather_facts, unlisted_permissions
from reconciler.plan.rbac import with_answers
from reconciler.snapshot.model import Observations
from reconciler.snapshot.recording import ClusterRecording, Recording
from reconciler.spec.enums import Role
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import MEMBER_LABEL, Inventory, SetName, remembered_cluster
from reconciler.state.model import ClusterView
from reconciler.state.observe import Probe, probe_clusters, read_inventory

UNVERIFIED = (
    "not contacted: the annotation {annotation} of the Namespace {namespace} has no digest of this address, so kfleet "
    "did not write it; to prune the cluster, add its Cluster to git again, apply, and remove it again"
)
CLUSTER_ROLE = "ClusterRole.rbac.authorization.k8s.io"
OPENED_AT_ONCE = 16
NOT_THE_SAME = "its API server is not the one that it was"
# Opens one cluster. The client is that of the manager, which may hold the credentials.
Opener = Callable[[Cluster, ApiServer | None], ApiServer]


@dataclass(frozen=True, slots=True)
class RemovedClusters:
    """Clusters that were removed from the spec; `doubtful` are those whose address kfleet did not write.

    `unread` is why the manager's record could not be read: then there may be more of them.
    """

    clusters: tuple[Cluster, ...] = ()
    doubtful: Mapping[ClusterName, str] = field(default_factory=dict)
    unread: str = ""


def find_removed(spec: FleetSpec, clients: Mapping[ClusterName, ApiServer]) -> RemovedClusters:
    client = clients.get(spec.manager.name) if spec.manager else None
    if spec.manager is None or client is None:
        return RemovedClusters()
    set_name = SetName(spec.fleet.name, spec.manager.kueue.namespace)
    try:
        inventory = read_inventory(client, set_name, is_manager=True) or Inventory()
    except ClusterError as error:
        # The probe of the manager reports the error, and no record is dropped.
        return RemovedClusters(unread=f"the record of removed clusters could not be read ({error.problem})")
    known = {cluster.name for cluster in spec.clusters}
    gone = {name: address for name, address in inventory.addresses.items() if name not in known}
    doubt = UNVERIFIED.format(namespace=set_name.namespace, annotation=set_name.digests)
    return RemovedClusters(
        tuple(remembered_cluster(name, address, spec.fleet.document) for name, address in gone.items()),
        {ClusterName(name): doubt for name in gone if name not in inventory.verified(spec.fleet.name)},
    )


def why_unopened(spec: FleetSpec, removed: tuple[Cluster, ...], manager: ClusterView | None, unread: str = "") -> str:
    """Why not all removed clusters are known: the manager's record has one that the first read did not have.

    The probe decides; if it failed too, `unread` is the problem of the first read. Otherwise a cluster whose record
    could not be read in time would count as one without jobs.
    """
    if manager is None or not manager.is_reachable:
        return unread
    known = {cluster.name for cluster in (*spec.clusters, *removed)}
    recorded = manager.inventory.addresses if manager.inventory else {}
    missing = [name for name in sorted(recorded) if name not in known]
    return f"how to reach {', '.join(missing)} was not known when kfleet connected" if missing else ""


def observe_worker_removals(
    spec: FleetSpec,
    clients: Mapping[ClusterName, ApiServer],
    removed: tuple[Cluster, ...],
    lost: Mapping[ClusterName, str],
    probe: Probe,
    unopened: str = "",
) -> WorkerRemovals | None:
    """What removed workers wait for. A name that leads to the API server of another name waits for nothing.

    `unopened` is why not all removed clusters are known.
    """
    if spec.manager is None:
        return None
    if unopened:
        return WorkerRemovals(problem=unopened)
    shared = probe.shared
    members = {
        cluster.name: f"{MEMBER_LABEL}={SetName(spec.fleet.name, cluster.kueue.namespace).id}"
        for cluster in (*spec.clusters, *removed)
    }
    leaving = tuple(cluster for cluster in removed if cluster.name not in shared.names)
    firm = required_memberships(shared.counted(spec))
    return observe_removals(
        RemovalQuestion(
            manager=spec.manager.name, firm=firm, members=members, removed=leaving, lost=lost, aliases=shared.names
        ),
        clients,
    )


@dataclass(frozen=True, slots=True)
class Connections:
    """A client for each cluster that could be opened, and a Gap for each of the others.

    `removed` are clusters that the spec no longer names; `lost` says why some clusters cannot be reached. `taken_at` is
    the time of the snapshot from which the clients answer. `unread` is why the record of removed clusters could not be
    read.
    """

    clients: Mapping[ClusterName, ApiServer]
    gaps: tuple[Gap, ...] = ()
    removed: tuple[Cluster, ...] = ()
    lost: Mapping[ClusterName, str] = field(default_factory=dict)
    opener: Opener = open_cluster
    taken_at: datetime | None = None
    unread: str = ""

    @property
    def now(self) -> datetime:
        """The time at which the clusters are observed."""
        return self.taken_at or datetime.now(UTC)

    def remembering(self) -> "Connections":
        """The same connections, which send each read request once from now on."""
        return replace(self, clients={name: remembering(client) for name, client in self.clients.items()})

    def plain(self) -> "Connections":
        """The same connections without memory of earlier answers."""
        return replace(self, clients={name: _plain(client) for name, client in self.clients.items()})

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def remembering(client: ApiServer, memory: AnswerMemory | None = None, *, is_read_only: bool = False) -> ApiServer:
    return client.over(RecordingConnection(client.connection, memory or AnswerMemory(), is_read_only=is_read_only))


def _plain(client: ApiServer) -> ApiServer:
    connection = client.connection
    return client.over(connection.plain) if isinstance(connection, RecordingConnection) else client


def connect(
    spec: FleetSpec,
    timeout: timedelta = TIMEOUT,
    *,
    opener: Opener | None = None,
    taken_at: datetime | None = None,
) -> Connections:
    """Open all clusters, the manager first: it may hold the credentials of the others."""
    open_client = opener or partial(open_cluster, timeout=timeout)
    clients: dict[ClusterName, ApiServer] = {}
    lost: dict[ClusterName, str] = {}

    def open_one(cluster: Cluster) -> None:
        manager = clients.get(spec.manager.name) if spec.manager else None
        try:
            clients[cluster.name] = open_client(cluster, manager)
        except ClusterError as error:
            lost[cluster.name] = error.problem

    def open_all(clusters: Iterable[Cluster]) -> None:
        """In parallel: a login that hangs delays no other cluster."""
        with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
            list(pool.map(open_one, clusters))

    clusters = sorted(spec.clusters, key=lambda entry: entry.role is not Role.MANAGER)
    open_all(cluster for cluster in clusters if cluster.role is Role.MANAGER)
    open_all(cluster for cluster in clusters if cluster.role is not Role.MANAGER)
    # The order must not depend on which login was faster.
    clients = {cluster.name: clients[cluster.name] for cluster in clusters if cluster.name in clients}
    gaps = tuple(Gap(cluster.name, "the cluster", lost[cluster.name]) for cluster in clusters if cluster.name in lost)
    removed = find_removed(spec, clients)
    lost |= removed.doubtful
    open_all(cluster for cluster in removed.clusters if cluster.name not in removed.doubtful)
    return Connections(
        clients=clients,
        gaps=gaps,
        removed=removed.clusters,
        lost=lost,
        opener=open_client,
        taken_at=taken_at,
        unread=removed.unread,
    )


def observe(
    revision: Revision,
    connections: Connections,
    options: ObserveOptions = NOW,
    *,
    rotations: frozenset[ClusterName] = frozenset(),
    is_thorough: bool = False,
) -> Snapshot:
    """`rotations` are workers that get new tokens. A thorough observation also reads what only preflight needs."""
    spec = options.spec or read_master_queues(revision.spec, connections.clients)
    probe = probe_clusters(spec, connections.removed, connections.clients)
    connections = _without_moved(spec, connections, probe)
    clients = connections.clients
    manager = probe.views.get(spec.manager.name) if spec.manager else None
    unopened = why_unopened(spec, connections.removed, manager, connections.unread)
    removals = observe_worker_removals(spec, clients, connections.removed, connections.lost, probe, unopened)
    features = _observe_features(spec, connections, removals, rotations, is_thorough=is_thorough)
    if features.links is None or spec.manager is None:
        uid = manager.uid if manager else ""
        features = replace(features, former_jobs=observe_former_jobs(spec.fleet.name, uid, _linked(probe, clients)))
    capacity = observe_sources(spec, clients, options)
    placements = observe_placements(spec, clients, connections.removed, connections.lost, unopened)
    observations = with_capacity(spec, features, capacity)
    if placements:
        observations = replace(observations, downsynced=placements.downsynced)
    return Snapshot(spec=spec, probe=probe, observations=observations, capacity=capacity, placements=placements)


def observe_permissions(rendered: Rendered, connections: Connections) -> Rendered:
    """The second round, for preflight: what only the rendered objects tell.

    kfleet asks about permissions that an API server could not list, and reads KubeStellar's inventory space.
    """
    spec, observed, clients = rendered.spec, rendered.snapshot, connections.clients
    inventory = look_at_inventory(spec, clients, connections.opener) if clients else None
    observed = replace(observed, inventory=inventory)
    links, probe = observed.observations.links, observed.probe
    if links and probe:
        views = [view for name, view in probe.views.items() if name not in probe.shared.refused]
        doubts = unlisted_permissions(gather_facts(spec, rendered.desired, views, links)).items()
        allowed = {name: ask_permissions(clients[name], wanted) for name, wanted in doubts if name in clients}
        observed = replace(observed, observations=replace(observed.observations, links=with_answers(links, allowed)))
    return replace(rendered, snapshot=observed)


def _without_moved(spec: FleetSpec, connections: Connections, probe: Probe) -> Connections:
    """Without the clusters whose server is not the one that it was: they count as not observed.

    The home cluster stays. It holds the ledger, and the plan refuses to write there.
    """
    moved = find_moved(spec, probe.views) - {home_cluster(spec).name}
    clients = {name: client for name, client in connections.clients.items() if name not in moved}
    return replace(connections, clients=clients, lost={**connections.lost, **dict.fromkeys(moved, NOT_THE_SAME)})


def _linked(probe: Probe, clients: Mapping[ClusterName, ApiServer]) -> dict[ClusterName, ApiServer]:
    """The clusters where the fleet has a ClusterRole, as every worker of MultiKueue has for its manager."""
    inventories = {name: view.inventory for name, view in probe.views.items() if name in clients}
    return {name: clients[name] for name, found in inventories.items() if found and CLUSTER_ROLE in found.kinds}


def _observe_features(
    spec: FleetSpec,
    connections: Connections,
    removals: WorkerRemovals | None,
    rotations: frozenset[ClusterName],
    *,
    is_thorough: bool,
) -> Observations:
    clients = connections.clients
    links = observe_links(spec, clients, removals, rotations, is_thorough=is_thorough, now=connections.now)
    configurations = observe_configurations(spec, clients)
    return Observations(
        gaps=(*links.gaps, *configurations.gaps),
        links=links.links,
        former_jobs=links.links.former_jobs if links.links else FormerJobs(),
        removals=removals,
        configurations=configurations.seen,
        policy_shape=observe_shape(spec, clients),
    )


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
        from reconciler.snapshot.replay import masked_answers  # noqa: PLC0415  (only to write a snapshot)

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
