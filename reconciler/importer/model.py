"""What was read from the contexts of a kubeconfig, and the fleet that is written from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.multikueue.model import SeenCredential
from reconciler.objects import ApiEndpoint, ClusterName, Gap, Manifest, Ref
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.enums import Role

Group = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """The API versions of a CustomResourceDefinition: those in which objects may be stored, and those it serves."""

    stored: tuple[str, ...]
    served: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedContexts:
    """The live objects of clusters that need not be in a fleet yet, with the context of each.

    `servers` are the addresses of the clusters that answered. `credentials` are the logins of MultiKueueClusters by
    manager and name; one that could not be read is missing. Their tokens are never written anywhere. `served` are the
    kinds that each cluster serves, and `stored` the versions of Kueue's definitions by kind, if they were asked for;
    `beside` is what could not be seen of that.
    """

    objects: FleetObjects
    contexts: Mapping[ClusterName, str]
    servers: Mapping[ClusterName, ApiEndpoint] = field(default_factory=dict)
    credentials: Mapping[tuple[ClusterName, str], SeenCredential] = field(default_factory=dict, repr=False)
    served: Mapping[ClusterName, frozenset[KindKey]] = field(default_factory=dict, repr=False)
    stored: Mapping[ClusterName, Mapping[str, StoredVersions]] = field(default_factory=dict, repr=False)
    beside: tuple[Gap, ...] = ()

    @property
    def reachable(self) -> tuple[ClusterObjects, ...]:
        return tuple(self.objects.reachable())

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return (*self.objects.gaps, *self.beside)


@dataclass(frozen=True, slots=True)
class LiveObject:
    """An object of a cluster: as it is there, and in Kueue's newest API version without what the server wrote."""

    ref: Ref
    live: Manifest = field(repr=False)
    current: Manifest = field(repr=False)

    @property
    def group(self) -> Group:
        """What the object is on every cluster that has it."""
        return (self.ref.group, self.ref.kind, self.ref.namespace, self.ref.name)


@dataclass(frozen=True, slots=True)
class LeftObject:
    """An object that stays outside the fleet, and why; `owner` is the tool or object that it belongs to."""

    ref: Ref
    why: str
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.ref}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDocument:
    """A document of the new fleet, its file, what it stands for, and comment lines above it.

    `is_shaped` is true for kfleet's own kinds: if one would change an object, native documents take its place.
    """

    file: str
    value: Manifest = field(repr=False)
    sources: tuple[LiveObject, ...] = field(default=(), repr=False)
    comments: tuple[str, ...] = ()
    is_shaped: bool = False

    def commented(self, *lines: str) -> "WrittenDocument":
        return replace(self, comments=(*self.comments, *lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What is imported: the name of the fleet, and whether objects of Argo CD, Flux and Helm are taken too."""

    fleet: str
    takes_claimed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFleet:
    """The files of the new fleet by name, the roles that were found, and what was left out and why."""

    files: Mapping[str, str] = field(repr=False)
    roles: Mapping[ClusterName, Role]
    taken: tuple[LiveObject, ...] = field(default=(), repr=False)
    shaped: int = 0
    left: tuple[LeftObject, ...] = ()
    notes: tuple[str, ...] = ()
    hand_over: tuple[str, ...] = ()
