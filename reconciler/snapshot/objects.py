"""The live objects of the clusters: queues, workloads, jobs, nodes. Views and effects are computed from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.spec.enums import Role

KindKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    """The live objects of one cluster, by group and kind. A kind that is missing here was not observed.

    Objects of Kueue are in the API version that the server returned. `kueue` is the tag of Kueue's image and
    `kubernetes` the version of the API server; each is empty if it could not be read. `configuration` is the text of
    Kueue's own Configuration. `namespace` is the namespace of Kueue.
    """

    name: ClusterName
    role: Role
    is_reachable: bool = True
    kubernetes: str = ""
    kueue: str = ""
    configuration: str = ""
    namespace: str = "kueue-system"
    objects: Mapping[KindKey, tuple[Manifest, ...]] = field(default_factory=dict, repr=False)
    gaps: tuple[Gap, ...] = ()

    def has(self, group: str, kind: str) -> bool:
        """Whether the kind was observed completely. Only then is an object that is missing not there."""
        return (group, kind) in self.objects

    def of(self, group: str, kind: str) -> tuple[Manifest, ...]:
        return self.objects.get((group, kind), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetObjects:
    """The live objects of all clusters of a fleet, observed at one time."""

    taken_at: datetime
    manager: ClusterName | None = None
    clusters: Mapping[ClusterName, ClusterObjects] = field(default_factory=dict)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(gap for cluster in self.clusters.values() for gap in cluster.gaps)

    def reachable(self) -> Iterable[ClusterObjects]:
        return (cluster for cluster in self.clusters.values() if cluster.is_reachable)
