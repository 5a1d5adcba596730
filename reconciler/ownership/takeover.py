"""Takes over what `kubectl apply` (client side), or a controller that kfleet replaces, owned of an object.

Otherwise they would go on owning fields that git never named or names no more, and nobody would ever remove them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import Manifest
from reconciler.ownership.fields import APPLY, UPDATE, FieldTree, Owner, item_of, owners_of

CLIENT_SIDE = "kubectl-client-side-apply"
# How the Python client of Kubernetes calls itself, and with it kueue-nats.
PYTHON_CLIENT = "OpenAPI-Generator"
PREDECESSORS = (CLIENT_SIDE, PYTHON_CLIENT)

Path = tuple[str | int, ...]


def predecessor_of(live: Manifest) -> Owner | None:
    owners = [owner for owner in owners_of(live) if owner.operation == UPDATE and not owner.subresource]
    return next((owner for manager in PREDECESSORS for owner in owners if owner.manager == manager), None)


def abandoned_fields(live: Manifest, wanted: Manifest) -> Iterator[tuple[Path, Any]]:
    """Fields that the predecessor set and the fleet does not: they go when their ownership is taken over."""
    owner = predecessor_of(live)
    if owner is not None:
        yield from _abandoned(owner.tree, live, wanted, ())


def moved_fields(live: Manifest, manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields in which this manager has applied what another had; None where there is nothing to move."""
    entries = live["metadata"].get("managedFields") or []
    found = (entry for other in PREDECESSORS for entry in entries if _is_entry(entry, other, UPDATE))
    theirs = next(found, None)
    if theirs is None:
        return None
    mine = next((entry for entry in entries if _is_entry(entry, manager, APPLY)), None)
    if mine is not None and mine.get("apiVersion") != theirs.get("apiVersion"):
        return None
    tree = _merged(theirs.get("fieldsV1") or {}, (mine or {}).get("fieldsV1") or {})
    moved = {**theirs, "manager": manager, "operation": APPLY, "fieldsV1": tree}
    return [*(entry for entry in entries if entry is not theirs and entry is not mine), moved]


def _is_entry(entry: Mapping[str, Any], manager: str, operation: str) -> bool:
    is_same = entry.get("manager") == manager and entry.get("operation") == operation
    return is_same and not entry.get("subresource")


def _abandoned(tree: FieldTree, live: Any, wanted: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    for key, below in tree.items():
        step, mine, theirs = _descend(key, live, wanted)
        if step is None or mine is None:
            continue
        if theirs is None:
            yield (*path, step), mine
        elif any(inner != "." for inner in below):
            yield from _abandoned(below, mine, theirs, (*path, step))


def _descend(key: str, live: Any, wanted: Any) -> tuple[str | int | None, Any, Any]:
    """One step down a tree of fields: its name, and what is there in the live and in the wanted object."""
    sort, _, text = key.partition(":")
    if sort == "f" and isinstance(live, Mapping):
        return text, live.get(text), wanted.get(text) if isinstance(wanted, Mapping) else None
    if sort == "k" and isinstance(live, list):
        item = item_of(live, text)
        position = live.index(item) if item is not None else None
        return position, item, item_of(wanted, text) if isinstance(wanted, list) else None
    return None, None, None


def _merged(one: FieldTree, other: FieldTree) -> dict[str, Any]:
    return {key: _merged(one.get(key) or {}, other.get(key) or {}) for key in sorted(one.keys() | other.keys())}
