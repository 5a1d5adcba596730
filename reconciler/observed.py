"""What was seen of the world beside the objects of the fleet: the values that observations decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Gap
from reconciler.quantity import Quantity

Amounts = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True, order=True)
class FlavorPlace:
    """A flavor on one cluster: the thing that has a capacity."""

    cluster: ClusterName
    flavor: str


Capacities = Mapping[FlavorPlace, Amounts]


@dataclass(frozen=True, slots=True)
class Observations:
    """One look at the world. What is not in here was not seen, which never means that it is not there."""

    capacities: Capacities = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


NOTHING_SEEN = Observations()
