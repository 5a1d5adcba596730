"""What an apply would roughly make of an object, for when the server cannot be asked."""

from collections.abc import Mapping
from typing import Any

from reconciler.objects import Manifest
from reconciler.ownership.fields import FieldTree, applied_by


def merged(live: Manifest, wanted: Manifest, manager: str) -> Manifest:
    """The live object with the wanted fields, without those that the manager applied before and wants no more."""
    owner = applied_by(live, manager)
    result: Manifest = _merged(live, wanted, owner.tree if owner else {})
    return result


def _merged(live: Any, wanted: Any, tree: FieldTree) -> Any:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    kept = {name: value for name, value in live.items() if name in wanted or f"f:{name}" not in tree}
    changed = {name: _merged(live.get(name), value, tree.get(f"f:{name}", {})) for name, value in wanted.items()}
    return {**kept, **changed}
