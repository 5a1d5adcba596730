"""Clusters that the spec names no more: found in the manager's memory, and asked what keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.desired.leaving import firm_seats
from reconciler.edges.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.leavers import Leavers
from reconciler.objects import ClusterName, Gap
from reconciler.observations.leavers import Question, observe_leavers
from reconciler.ownership.applyset import MEMBER_LABEL, SetName, read_parent
from reconciler.ownership.memory import remembered_cluster
from reconciler.pipeline.offline import Computed
from reconciler.prediction import ClusterView
from reconciler.spec import FleetSpec
from reconciler.spec.model import Cluster

CONFIG = "MultiKueueConfig"


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


def with_blind_spots(computed: Computed, views: Sequence[ClusterView]) -> list[ClusterView]:
    """Where the manager's configs were not seen, nobody knows what runs where: no look at a cluster is complete."""
    manager, leavers = computed.spec.manager, computed.seen.leavers
    if manager is None or leavers is None or not leavers.problem or not _has_configs(computed, views):
        return list(views)
    why = f"the {CONFIG}s of {manager.name} could not be seen ({leavers.problem}), so nothing is deleted"
    return [
        replace(view, gaps=(*view.gaps, Gap(view.name, "jobs of MultiKueue", why))) if view.is_reachable else view
        for view in views
    ]


def _has_configs(computed: Computed, views: Sequence[ClusterView]) -> bool:
    """Whether the fleet has configs, or had some and may not have deleted all of them."""
    kinds = {kind for view in views if view.inventory for kind in view.inventory.kinds}
    return f"{CONFIG}.{GROUP}" in kinds or any(entry.ref.kind == CONFIG for entry in computed.desired.objects)
