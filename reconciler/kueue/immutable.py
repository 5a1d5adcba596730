"""Fields that an object keeps for life, per release of Kueue: a change needs the object deleted and made again."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.kueue.kinds import OLDEST, KueueVersion, kind_of
from reconciler.kueue.reading import at
from reconciler.objects import Manifest

_FLAVOR_FIELDS_SINCE = KueueVersion(0, 17)


class Binding(StrEnum):
    """When a field is fixed."""

    ALWAYS = "always"
    WHILE_SET = "while both the old and the new object have it"
    WITH_TOPOLOGY = "while the old object has a topologyName"


@dataclass(frozen=True, slots=True)
class ImmutableField:
    kind: str
    path: tuple[str, ...]
    binding: Binding
    since: KueueVersion = OLDEST
    until: KueueVersion | None = None

    def is_fixed_by(self, version: KueueVersion) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


IMMUTABLE = (
    ImmutableField("AdmissionCheck", ("spec", "controllerName"), Binding.WHILE_SET),
    ImmutableField("ClusterQueue", ("spec", "concurrentAdmissionPolicy"), Binding.ALWAYS, KueueVersion(0, 18)),
    ImmutableField("LocalQueue", ("spec", "clusterQueue"), Binding.WHILE_SET),
    ImmutableField("ResourceFlavor", ("spec",), Binding.WITH_TOPOLOGY, until=_FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "nodeLabels"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "tolerations"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "topologyName"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("Topology", ("spec", "levels"), Binding.WHILE_SET),
)


def changed_immutable(old: Manifest, new: Manifest, version: KueueVersion) -> tuple[str, ...]:
    """The paths of fixed fields in which two canonical manifests of one object differ."""
    kind = kind_of(new)
    fixed = (one for one in IMMUTABLE if kind and one.kind == kind.name and one.is_fixed_by(version))
    return tuple(".".join(one.path) for one in fixed if _is_refused(one, old, new))


def _is_refused(one: ImmutableField, old: Manifest, new: Manifest) -> bool:
    before, after = at(old, *one.path), at(new, *one.path)
    if one.binding is Binding.WHILE_SET and (before is None or after is None):
        return False
    if one.binding is Binding.WITH_TOPOLOGY and at(old, "spec", "topologyName") is None:
        return False
    return bool(before != after)
