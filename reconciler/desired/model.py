"""What the clusters should hold, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.quantity import Quantity
from reconciler.spec.document import Document

Amounts = Mapping[str, Quantity]


@dataclass(frozen=True, slots=True, order=True)
class FlavorPlace:
    """A flavor on one cluster: the thing that has a capacity."""

    cluster: ClusterName
    flavor: str


Capacities = Mapping[FlavorPlace, Amounts]


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object in Kueue's newest API version, and the document that asks for it.

    `notes` say in a few words why it is so, where the document alone does not tell.
    """

    ref: Ref
    manifest: Manifest = field(repr=False)
    document: Document = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """Every object of every cluster: clusters in the order of the fleet, objects in the order of writing."""

    objects: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...] = ()

    def of_cluster(self, cluster: ClusterName) -> tuple[DesiredObject, ...]:
        return tuple(entry for entry in self.objects if entry.ref.cluster == cluster)
