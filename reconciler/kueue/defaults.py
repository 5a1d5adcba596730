"""The defaults that the API server writes into an object, to compare offline: what it adds is no drift.

They are the same for every release that kfleet knows once a manifest is canonical: the older ones differ in words only
(`Borrow` for `MayStopSearch`).
"""

from typing import Any

from reconciler.kueue.kinds import NEWEST, kind_of
from reconciler.kueue.reading import MAPS
from reconciler.kueue.structure import MISSING, Node, structure_of
from reconciler.objects import Manifest


def with_defaults(manifest: Manifest) -> Manifest:
    """The canonical manifest as the API server would store it."""
    kind = kind_of(manifest)
    return _filled(structure_of(kind.name, NEWEST), manifest) if kind else manifest


def without_defaults(manifest: Manifest) -> Manifest:
    """The canonical manifest with only what differs from the defaults: two that are equal so mean the same to Kueue.

    Empty lists, maps and specs are left out too, because a conversion between versions drops them; an empty selector
    stays, it means everything.
    """
    kind = kind_of(manifest)
    if kind is None:
        return manifest
    bare: Manifest = _bare(structure_of(kind.name, NEWEST), manifest)
    return {name: value for name, value in bare.items() if name != "spec" or value != {}}


def _filled(node: Node, value: Any) -> Any:
    if isinstance(value, list) and node.items is not None:
        return [_filled(node.items, item) for item in value]
    if not isinstance(value, MAPS) or node.type != "object":
        return value
    filled = {
        name: _filled(node.fields[name], child) if name in node.fields else child for name, child in value.items()
    }
    for name, child in node.fields.items():
        if child.default is not MISSING and filled.get(name) is None:
            filled[name] = _filled(child, child.default)
    return filled


def _bare(node: Node, value: Any) -> Any:
    if isinstance(value, list) and node.items is not None:
        return [_bare(node.items, item) for item in value]
    if not isinstance(value, MAPS) or node.type != "object":
        return value
    bare = {name: _bare(node.fields[name], child) if name in node.fields else child for name, child in value.items()}
    return {
        name: child
        for name, child in bare.items()
        if name not in node.fields or not _says_nothing(node.fields[name], child)
    }


def _says_nothing(node: Node, value: Any) -> bool:
    """Whether leaving the value out means the same; True is not 1 here, as it is to Python."""
    if node.default is not MISSING:
        return value is None or (type(value) is type(node.default) and bool(value == node.default))
    return node.type in {"list", "map"} and node.smallest is None and value in ([], {})
