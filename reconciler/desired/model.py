"""What the clusters should hold, as values."""

from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.spec.document import Document


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
