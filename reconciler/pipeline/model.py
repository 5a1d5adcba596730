"""What was observed in a run, as one value."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.capacity.model import ObservedCapacity
from reconciler.capacity.quota import count_capacities, count_pools
from reconciler.kubestellar.model import ObservedPlacements
from reconciler.snapshot.model import NOTHING_SEEN, Observations
from reconciler.spec.model import FleetSpec

if TYPE_CHECKING:
    from reconciler.state.observe import Probe  # commands without a cluster do not load its clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that was observed in a run, beside the objects of the fleet themselves.

    `spec` is the spec of the revision with the MasterQueues of the manager. `probe` is the first answer of each
    cluster: which API server it is, what it serves, and which objects the fleet has there.
    """

    spec: FleetSpec
    probe: "Probe | None" = None
    observations: Observations = NOTHING_SEEN
    capacity: ObservedCapacity | None = None
    placements: ObservedPlacements | None = None


def with_capacity(spec: FleetSpec, observations: Observations, capacity: ObservedCapacity | None) -> Observations:
    """The observations with what counts of the live capacity."""
    if capacity is None:
        return observations
    return replace(
        observations,
        capacities=count_capacities(spec, capacity.ledger),
        pools=count_pools(capacity.ledger),
        usage=capacity.usage,
        gaps=(*observations.gaps, *capacity.gaps),
    )
