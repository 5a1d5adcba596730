"""Clusters that the spec names no more: found in the manager's memory, and asked what keeps them."""

from collections.abc import Mapping

from reconciler.desired.leaving import firm_seats
from reconciler.edges.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.leavers import Leavers
from reconciler.objects import ClusterName
from reconciler.observations.leavers import Question, observe_leavers
from reconciler.ownership.applyset import MEMBER_LABEL, SetName, read_parent
from reconciler.ownership.memory import remembered_cluster
from reconciler.spec import FleetSpec
from reconciler.spec.model import Cluster


def find_departed(spec: FleetSpec, ports: Mapping[ClusterName, ApiServer]) -> tuple[Cluster, ...]:
    port = ports.get(spec.manager.name) if spec.manager else None
    if spec.manager is None or port is None:
        return ()
    try:
        inventory = read_parent(port.find(SetName(spec.fleet.name, spec.manager.kueue.namespace).path))
    except ClusterError:
        # The look at the manager says so, and nobody is taken for forgotten.
        return ()
    known = {cluster.name for cluster in spec.clusters}
    return tuple(
        remembered_cluster(name, address, spec.fleet.document)
        for name, address in (inventory.addresses if inventory else {}).items()
        if name not in known
    )


def look_at_leavers(
    spec: FleetSpec,
    ports: Mapping[ClusterName, ApiServer],
    departed: tuple[Cluster, ...],
    lost: Mapping[ClusterName, str],
) -> Leavers | None:
    """What keeps workers from leaving."""
    if spec.manager is None:
        return None
    members = {
        cluster.name: f"{MEMBER_LABEL}={SetName(spec.fleet.name, cluster.kueue.namespace).id}"
        for cluster in (*spec.clusters, *departed)
    }
    return observe_leavers(Question(spec.manager.name, firm_seats(spec), members, departed, lost), ports)
