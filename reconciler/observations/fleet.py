"""One look at everything that the desired objects depend on beside the spec."""

from collections.abc import Mapping

from reconciler.objects import ClusterName
from reconciler.observations.links import observe_links
from reconciler.observed import Observations
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec


def observe(
    spec: FleetSpec,
    ports: Mapping[ClusterName, ClusterPort],
    rotations: frozenset[ClusterName] = frozenset(),
    *,
    is_thorough: bool = False,
) -> Observations:
    """`rotations` are workers that get new tokens; a thorough look also sees what only preflight is interested in."""
    look = observe_links(spec, ports, rotations, is_thorough=is_thorough)
    return Observations(gaps=look.gaps, links=look.links)
