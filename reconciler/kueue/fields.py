"""Immutable fields per release of Kueue: to change one, the object must be deleted and created again."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from reconciler.kueue.kinds import NEWEST, OLDEST, KueueVersion, kind_of
from reconciler.kueue.reading import MAPS, at
from reconciler.kueue.structure import MISSING, SchemaNode, structure_of
from reconciler.objects import Manifest

_FLAVOR_FIELDS_SINCE = KueueVersion(0, 17)


class Binding(StrEnum):
    """When a field is immutable."""

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
    """Return the paths of immutable fields in which two canonical manifests of one object differ."""
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


def with_defaults(manifest: Manifest) -> Manifest:
    """Return the canonical manifest as the API server would store it."""
    kind = kind_of(manifest)
    return _filled(_defaulting(kind.name), manifest) if kind else manifest


@cache
def _defaulting(kind: str) -> SchemaNode:
    """Return the shape of a kind without everything that has no default: most of a queue is quotas, which have none."""
    return _pruned(structure_of(kind, NEWEST)) or SchemaNode("object")


def _pruned(node: SchemaNode) -> SchemaNode | None:
    children = {name: kept for name, child in node.fields.items() if (kept := _pruned(child))}
    items = _pruned(node.items) if node.items else None
    if not children and items is None and node.default is MISSING:
        return None
    return replace(node, fields=children, items=items)


def _filled(node: SchemaNode, value: Any) -> Any:
    if isinstance(value, list) and node.items is not None:
        return [_filled(node.items, item) for item in value]
    if not isinstance(value, MAPS) or not node.fields:
        return value
    filled = {
        name: _filled(node.fields[name], child) if name in node.fields else child for name, child in value.items()
    }
    for name, child in node.fields.items():
        if child.default is not MISSING and filled.get(name) is None:
            filled[name] = _filled(child, child.default)
    return filled
