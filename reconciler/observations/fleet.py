"""One look at everything that the desired objects depend on beside the spec."""

from collections.abc import Mapping

from reconciler.leavers import Leavers
from reconciler.objects import ClusterName
from reconciler.observations.configuration import observe_configurations
from reconciler.observations.kubestellar import observe_shape
from reconciler.observations.links import observe_links
from reconciler.observed import Observations
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec


def observe(
    spec: FleetSpec,
    ports: Mapping[ClusterName, ClusterPort],
    leavers: Leavers | None = None,
    rotations: frozenset[ClusterName] = frozenset(),
    *,
    is_thorough: bool = False,
) -> Observations:
    """`rotations` are workers that get new tokens; a thorough look also sees what only preflight is interested in."""
    look = observe_links(spec, ports, leavers, rotations, is_thorough=is_thorough)
    configurations = observe_configurations(spec, ports)
    return Observations(
        gaps=(*look.gaps, *configurations.gaps),
        links=look.links,
        leavers=leavers,
        configurations=configurations.seen,
        policy_shape=observe_shape(spec, ports),
    )
