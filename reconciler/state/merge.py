"""An approximation of server-side apply, for when no dry run is possible."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import Manifest
from reconciler.state.managed_fields import FieldTree, applied_by, owners_at
from reconciler.state.model import Conflict
from reconciler.state.values import is_equal


def merged(live: Manifest, wanted: Manifest, manager: str) -> Manifest:
    """The live object with the desired fields, without fields that the manager applied before and no longer desires."""
    owner = applied_by(live, manager)
    result: Manifest = _merged(live, wanted, owner.tree if owner else {})
    return result


def _merged(live: Any, wanted: Any, tree: FieldTree) -> Any:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    kept = {name: value for name, value in live.items() if name in wanted or f"f:{name}" not in tree}
    changed = {name: _merged(live.get(name), value, tree.get(f"f:{name}", {})) for name, value in wanted.items()}
    return {**kept, **changed}


def find_conflicts(live: Manifest, wanted: Manifest, manager: str) -> Iterator[Conflict]:
    """Fields that would get another value although another manager owns them: server-side apply refuses these."""
    for path in _differing(live, wanted, ()):
        yield from (Conflict("." + ".".join(path), owner) for owner in owners_at(live, path, but=manager))


def _differing(live: Any, wanted: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        for name, value in wanted.items():
            if name in live:
                yield from _differing(live[name], value, (*path, str(name)))
    elif not is_equal(live, wanted, path):
        yield path
