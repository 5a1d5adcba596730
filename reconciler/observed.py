"""What was seen of the world beside the objects of the fleet: the values that observations decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.leavers import Leavers
from reconciler.links import Links
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import Quantity
from reconciler.rollout import SeenConfiguration
from reconciler.spec.kubestellar import PolicyShape

Amounts = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True, order=True)
class FlavorPlace:
    """A flavor on one cluster: the thing that has a capacity."""

    cluster: ClusterName
    flavor: str


Capacities = Mapping[FlavorPlace, Amounts]


class Freshness(StrEnum):
    FRESH = "fresh"
    STALE = "stale"


@dataclass(frozen=True, slots=True, order=True)
class PoolPlace:
    """Where a pool speaks: the servers of a message bus, the subject above the pools, and the pool's own name."""

    bus: str
    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A resource pool as it counts now: one that fell silent keeps its place, with nothing to give."""

    place: PoolPlace
    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Manifest, ...] = ()
    freshness: Freshness = Freshness.FRESH


@dataclass(frozen=True, slots=True, order=True)
class UsePlace:
    """What a queue uses of a flavor."""

    cluster: ClusterName
    queue: str
    flavor: str


Usage = Mapping[UsePlace, Amounts]


@dataclass(frozen=True, slots=True)
class Observations:
    """One look at the world. What is not in here was not seen, which never means that it is not there.

    `pools` stand in the order in which queues try them; None where nobody listened. `policy_shape` is what the
    manager's KubeStellar takes.
    """

    capacities: Capacities = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    pools: tuple[Pool, ...] | None = None
    usage: Usage = field(default_factory=dict)
    links: Links | None = None
    leavers: Leavers | None = None
    configurations: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    policy_shape: PolicyShape | None = None


NOTHING_SEEN = Observations()
