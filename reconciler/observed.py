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

# Of a Gap: the live queues and flavors of a cluster, by which it is known what is used, and what pools there were.
LIVE_QUEUES = "usage of queues"


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

    @property
    def unlisted(self) -> frozenset[ClusterName]:
        """Clusters whose live queues could not be listed."""
        return frozenset(gap.cluster for gap in self.gaps if gap.what == LIVE_QUEUES)


NOTHING_SEEN = Observations()
