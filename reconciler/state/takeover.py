"""Takes over fields that `kubectl apply` (client side), or a controller that kfleet replaces, owned in an object.

Otherwise they would keep owning fields that git never contained or no longer contains, and these would never be
removed.

Decision: labels and annotations that are not in git stay with their owner, because other controllers depend on them
(pod security, service meshes, node selectors). Only kubectl's last-applied annotation is removed.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.objects import Manifest
from reconciler.state.managed_fields import APPLY, UPDATE, FieldTree, as_read, item_of, joined, owners_of
from reconciler.state.values import LAST_APPLIED

CLIENT_SIDE = "kubectl-client-side-apply"
# The field manager of the Kubernetes Python client, and so of kueue-nats.
PYTHON_CLIENT = "OpenAPI-Generator"
PREDECESSORS = (CLIENT_SIDE, PYTHON_CLIENT)
_OF_THE_SERVER = {LAST_APPLIED, "kubernetes.io/metadata.name"}

Path = tuple[str | int, ...]


def predecessor_of(live: Manifest) -> str:
    """The field manager from which kfleet takes fields over; empty if there is none."""
    managers = {owner.manager for owner in owners_of(live) if owner.operation == UPDATE and not owner.subresource}
    return next((manager for manager in PREDECESSORS if manager in managers), "")


def abandoned_fields(live: Manifest, wanted: Manifest) -> Iterator[tuple[Path, Any]]:
    """Fields that the predecessor set and the fleet does not: the takeover removes them."""
    trees = (as_read(entry, live).get("fieldsV1") or {} for entry in _entries_of(live, predecessor_of(live), UPDATE))
    moved, _ = _divided(joined(trees), wanted)
    yield from _abandoned(moved, live, wanted, ())


def unnamed_marks(live: Manifest, wanted: Manifest, part: str) -> list[str]:
    """Names of labels or annotations that are not in git, without those that every object gets."""
    named = wanted["metadata"].get(part) or {}
    return [name for name in live["metadata"].get(part) or {} if name not in named and name not in _OF_THE_SERVER]


def moved_fields(live: Manifest, wanted: Manifest, manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields after moving the predecessor's fields to this manager; None if there is nothing to move.

    An applier has one entry, in one API version: only fields of that version are moved.
    """
    mine, theirs = _entries_of(live, manager, APPLY), _entries_of(live, predecessor_of(live), UPDATE)
    read = [(entry, as_read(entry, live)) for entry in (*mine, *theirs)]
    same = [(entry, found) for entry, found in read if found.get("apiVersion") == read[0][1].get("apiVersion")]
    if len(same) == len(mine):
        return None
    tree, left = _divided(joined(found.get("fieldsV1") or {} for _, found in same), wanted)
    last = same[-1][1]
    moved = {**last, "manager": manager, "operation": APPLY, "fieldsV1": tree}
    taken = [entry for entry, _ in same]
    others = [entry for entry in live["metadata"]["managedFields"] if entry not in taken]
    return [*others, *([{**last, "fieldsV1": left}] if left else []), moved]


def _divided(tree: FieldTree, wanted: Manifest) -> tuple[FieldTree, FieldTree]:
    """The fields to take over, and those that stay with the predecessor: labels and annotations outside git."""
    metadata = tree.get("f:metadata") or {}
    left: dict[str, FieldTree] = {}
    for part in ("labels", "annotations"):
        named = {LAST_APPLIED, *((wanted.get("metadata") or {}).get(part) or {})}
        kept = {key: below for key, below in (metadata.get(f"f:{part}") or {}).items() if key[2:] not in named}
        left |= {f"f:{part}": kept} if any(key != "." for key in kept) else {}
    if not left:
        return tree, {}
    rest = {key: _without(below, left.get(key, {})) for key, below in metadata.items()}
    taken = {key: below for key, below in rest.items() if below or key not in left}
    others = {key: below for key, below in tree.items() if key != "f:metadata"}
    return {**others, **({"f:metadata": taken} if taken else {})}, {"f:metadata": left}


def _without(tree: FieldTree, left: FieldTree) -> FieldTree:
    return {key: below for key, below in tree.items() if key not in left}


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
    """One step down a fieldsV1 tree: its name, and the values in the live and in the desired object."""
    sort, _, text = key.partition(":")
    if sort == "f" and isinstance(live, Mapping):
        return text, live.get(text), wanted.get(text) if isinstance(wanted, Mapping) else None
    if sort == "k" and isinstance(live, list):
        item = item_of(live, text)
        position = live.index(item) if item is not None else None
        return position, item, item_of(wanted, text) if isinstance(wanted, list) else None
    if sort == "v" and isinstance(live, list) and json.loads(text) in live:
        item = json.loads(text)
        return live.index(item), item, item if isinstance(wanted, list) and item in wanted else None
    return None, None, None
