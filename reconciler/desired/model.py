"""What the clusters should hold, as values."""

from dataclasses import dataclass, field

from reconciler.credential import TokenWish
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.spec.document import Document


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object in Kueue's newest API version, and the document that asks for it.

    `notes` say in a few words why it is so, where the document alone does not tell. `token` is what a Secret holds
    beside its manifest. `held` says why the content is not known: such an object is left as it is, also where it is
    missing. `unseen` says what a quota counts as nothing only because nobody saw it: where there is such a quota, it is
    not made smaller by that. Where observations have a say, `by_spec` is what the object would be without them, and
    `origin` a short name for what the spec alone says.
    """

    ref: Ref
    manifest: Manifest = field(repr=False)
    document: Document = field(repr=False)
    notes: tuple[str, ...] = ()
    token: TokenWish | None = None
    held: str = ""
    unseen: str = ""
    origin: str = ""
    by_spec: Manifest | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Leaving:
    """A worker that cannot go yet, and what it waits for.

    `queues` are held for it although the spec does not name them any more. With `is_whole` the cluster itself has left
    the spec, and nothing of the fleet there goes before it does.
    """

    cluster: ClusterName
    why: str
    queues: frozenset[str] = frozenset()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Desired:
    """Every object of every cluster: clusters in the order of the fleet, objects in the order of writing."""

    objects: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...] = ()
    leaving: tuple[Leaving, ...] = ()

    def of_cluster(self, cluster: ClusterName) -> tuple[DesiredObject, ...]:
        return tuple(entry for entry in self.objects if entry.ref.cluster == cluster)
