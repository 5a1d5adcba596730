"""Takes over what `kubectl apply` (client side), or a controller that kfleet replaces, owned of an object.

Otherwise they would go on owning fields that git never named or names no more, and nobody would ever remove them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import Manifest
from reconciler.ownership.fields import APPLY, UPDATE, FieldTree, item_of, owners_of
from reconciler.ownership.versions import as_read, joined

CLIENT_SIDE = "kubectl-client-side-apply"
# How the Python client of Kubernetes calls itself, and with it kueue-nats.
PYTHON_CLIENT = "OpenAPI-Generator"
PREDECESSORS = (CLIENT_SIDE, PYTHON_CLIENT)

Path = tuple[str | int, ...]


def predecessor_of(live: Manifest) -> str:
    """The manager from whom fields are taken over, if there is one."""
    managers = {owner.manager for owner in owners_of(live) if owner.operation == UPDATE and not owner.subresource}
    return next((manager for manager in PREDECESSORS if manager in managers), "")


def abandoned_fields(live: Manifest, wanted: Manifest) -> Iterator[tuple[Path, Any]]:
    """Fields that the predecessor set and the fleet does not: they go when their ownership is taken over."""
    trees = (as_read(entry, live).get("fieldsV1") or {} for entry in _entries_of(live, predecessor_of(live), UPDATE))
    yield from _abandoned(joined(trees), live, wanted, ())


def moved_fields(live: Manifest, manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields in which this manager has applied what another had; None where there is nothing to move.

    An applier has one entry, in one version: only what can be said in it is moved.
    """
    mine, theirs = _entries_of(live, manager, APPLY), _entries_of(live, predecessor_of(live), UPDATE)
    read = [(entry, as_read(entry, live)) for entry in (*mine, *theirs)]
    same = [(entry, said) for entry, said in read if said.get("apiVersion") == read[0][1].get("apiVersion")]
    if len(same) == len(mine):
        return None
    tree = joined(said.get("fieldsV1") or {} for _, said in same)
    moved = {**same[-1][1], "manager": manager, "operation": APPLY, "fieldsV1": tree}
    taken = [entry for entry, _ in same]
    return [*(entry for entry in live["metadata"]["managedFields"] if entry not in taken), moved]


def _entries_of(live: Manifest, manager: str, operation: str) -> list[Mapping[str, Any]]:
    return [entry for entry in live["metadata"].get("managedFields") or () if _is_entry(entry, manager, operation)]


def _is_entry(entry: Mapping[str, Any], manager: str, operation: str) -> bool:
    is_same = entry.get("manager") == manager and entry.get("operation") == operation
    return is_same and not entry.get("subresource")


def _abandoned(tree: FieldTree, live: Any, wanted: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    for key, below in tree.items():
        step, mine, theirs = descend(key, live, wanted)
        if step is None or mine is None:
            continue
        if theirs is None:
            yield (*path, step), mine
        elif any(inner != "." for inner in below):
            yield from _abandoned(below, mine, theirs, (*path, step))


def descend(key: str, live: Any, wanted: Any) -> tuple[str | int | None, Any, Any]:
    """One step down a tree of fields: its name, and what is there in the live and in the wanted object."""
    sort, _, text = key.partition(":")
    if sort == "f" and isinstance(live, Mapping):
        return text, live.get(text), wanted.get(text) if isinstance(wanted, Mapping) else None
    if sort == "k" and isinstance(live, list):
        item = item_of(live, text)
        position = live.index(item) if item is not None else None
        return position, item, item_of(wanted, text) if isinstance(wanted, list) else None
    return None, None, None
