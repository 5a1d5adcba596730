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
