"""A look at KubeStellar's inventory space, which is no cluster of the fleet: nothing is ever written there."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from reconciler.edges.access import open_cluster
from reconciler.edges.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.links import ManagedClusters
from reconciler.objects import ClusterName
from reconciler.observations.kubestellar import observe_inventory
from reconciler.spec import FleetSpec
from reconciler.spec.workers import carried_queues

NAME = ClusterName("its")


def look_at_inventory(spec: FleetSpec, ports: Mapping[ClusterName, ApiServer]) -> ManagedClusters | None:
    """None where nobody says how to reach it, or no job is carried."""
    access, manager = spec.fleet.inventory, spec.manager
    if access is None or manager is None or not carried_queues(spec):
        return None
    try:
        with closing(open_cluster(replace(manager, name=NAME, access=access), ports.get(manager.name))) as port:
            return observe_inventory(port)
    except ClusterError as error:
        return ManagedClusters(problem=error.problem)
