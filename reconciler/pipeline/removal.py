"""The part of `observe` that is about clusters which the spec no longer names, and what still runs there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.multikueue.model import WorkerRemovals
from reconciler.multikueue.observe_removal import RemovalQuestion, observe_removals
from reconciler.multikueue.removal import required_memberships
from reconciler.objects import ClusterName
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.state.applyset import MEMBER_LABEL, Inventory, SetName
from reconciler.state.cluster_memory import remembered_cluster
from reconciler.state.model import ClusterView
from reconciler.state.observe import Probe, read_inventory

UNVERIFIED = (
    "not contacted: the annotation {annotation} of the Namespace {namespace} has no digest of this address, so kfleet "
    "did not write it; to prune the cluster, add its Cluster to git again, apply, and remove it again"
)


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
