"""What a server keeps of an object: server-side apply as a small function, with the merge rules of Kueue's fields.

It is no server: it plays only what managedFields say after a write, in the shape that real ones have.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from reconciler.objects import Manifest
from reconciler.state.model import Conflict

ATOMIC = {"clusters", "levels", "namespaceSelector", "nodeLabels", "nodeTaints", "resourceGroups", "tolerations"}
KEYED = {"admissionChecks": "name"}
SETS = {"onFlavors"}
DEFAULTS: Mapping[str, Manifest] = {
    "ClusterQueue": {
        "spec": {
            "queueingStrategy": "BestEffortFIFO",
            "stopPolicy": "None",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {
                "borrowWithinCohort": {"policy": "Never"},
                "reclaimWithinCohort": "Never",
                "withinClusterQueue": "Never",
            },
        }
    },
    "LocalQueue": {"spec": {"stopPolicy": "None"}},
}
TIME = "2026-01-31T12:00:00Z"

Path = tuple[str, ...]
Leaves = dict[Path, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The object as it would be kept, and the fields that others had with another value."""

    manifest: Manifest
    conflicts: tuple[Conflict, ...] = ()


def applied(manifest: Manifest, live: Manifest | None = None, manager: str = "kfleet") -> Answer:
    """Server-side apply, with force."""
    wanted, before = _fields(manifest), _fields(live or {})
    entries = list((live or {}).get("metadata", {}).get("managedFields") or ())
    mine = next((entry for entry in entries if (entry["manager"], entry["operation"]) == (manager, "Apply")), None)
    others = [entry for entry in entries if entry is not mine]
    held = {path for entry in others for path in _paths(entry["fieldsV1"])}
    conflicts = _conflicts(wanted, before, others)
    dropped = set(_paths(mine["fieldsV1"]) if mine else ()) - wanted.keys() - held
    after = {path: value for path, value in before.items() if path not in dropped}
    after |= {path: value for path, value in wanted.items() if not _is_around(path, value, after)}
    taken = {path for path, _ in conflicts}
    kept = [{**entry, "fieldsV1": tree_of(p for p in _paths(entry["fieldsV1"]) if p not in taken)} for entry in others]
    own = entry_of(manager, "Apply", manifest["apiVersion"], wanted)
    texts = tuple(Conflict(_dotted(path), owner) for path, owner in conflicts)
    return Answer(_stored(manifest, live, after, [*(entry for entry in kept if entry["fieldsV1"]), own]), texts)


def edited(live: Manifest, change: Manifest, manager: str = "kubectl-edit") -> Manifest:
    """A merge patch by somebody: what it changes becomes his; None takes a field away."""
    before, after = _fields(live), _fields(merged(live, change))
    moved = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    entries = [
        {**entry, "fieldsV1": tree_of(path for path in _paths(entry["fieldsV1"]) if path not in moved)}
        for entry in live["metadata"].get("managedFields") or ()
    ]
    theirs = entry_of(manager, "Update", live["apiVersion"], moved & after.keys())
    kept = [entry for entry in (*entries, theirs) if entry["fieldsV1"]]
    status = change["status"] if "status" in change else live.get("status")
    return _stored(live, {**live, "status": status} if status else live, after, kept)


def entry_of(manager: str, operation: str, api_version: str, paths: Iterable[Path]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree_of(paths),
    }


def tree_of(paths: Iterable[Path]) -> dict[str, Any]:
    """Paths as fieldsV1; an item of a keyed list is owned itself, which is what its `.` says."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {".": {}} if step.startswith("k:") else {})
    return root


def without_field(entry: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """An entry of managedFields that no longer holds a field, or anything in it."""
    kept = tree_of(one for one in _paths(entry["fieldsV1"]) if one[: len(path)] != path)
    return {**entry, "fieldsV1": kept}


def merged(value: Any, change: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(change, Mapping):
        return deepcopy(change)
    kept = dict(value) if isinstance(value, Mapping) else {}
    for name, child in change.items():
        if child is None:
            kept.pop(name, None)
        else:
            kept[name] = merged(kept.get(name), child)
    return kept


def _fields(manifest: Manifest) -> Leaves:
    return {path: value for path, value in _leaves(_tracked(manifest)) if path}


def _tracked(manifest: Manifest) -> Manifest:
    kept = {name: value for name, value in manifest.items() if name not in {"apiVersion", "kind", "metadata", "status"}}
    metadata = manifest.get("metadata") or {}
    marks = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {**kept, "metadata": marks} if marks else kept


def _leaves(value: Any, name: str = "") -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value and name not in ATOMIC:
        steps = [(f"f:{key}", child, key) for key, child in value.items()]
    elif isinstance(value, list) and value and name in KEYED:
        steps = [(_item_key(item, KEYED[name]), item, "") for item in value]
    elif isinstance(value, list) and value and name in SETS:
        steps = [(f"v:{json.dumps(item)}", item, "") for item in value]
    else:
        yield (), value
        return
    for step, child, below in steps:
        yield from (((step, *rest), leaf) for rest, leaf in _leaves(child, below))


def _item_key(item: Manifest, key: str) -> str:
    return "k:" + json.dumps({key: item[key]}, separators=(",", ":"))


def _paths(tree: Mapping[str, Any]) -> Iterator[Path]:
    for step, below in tree.items():
        if step == ".":
            continue
        inner = list(_paths(below))
        yield from ((step, *rest) for rest in inner) if inner else [(step,)]


def _conflicts(wanted: Leaves, before: Leaves, others: list[Any]) -> list[tuple[Path, str]]:
    return [
        (path, entry["manager"])
        for entry in others
        for path in _paths(entry["fieldsV1"])
        if path in wanted and path in before and before[path] != wanted[path]
    ]


def _is_around(path: Path, value: Any, known: Leaves) -> bool:
    """An empty map that is applied where there are fields already: they stay."""
    return value == {} and any(other[: len(path)] == path and other != path for other in known)


def _dotted(path: Path) -> str:
    return "".join(f".{step.removeprefix('f:')}" if step.startswith("f:") else f"[{step[2:]}]" for step in path)


def _stored(manifest: Manifest, live: Manifest | None, leaves: Leaves, entries: list[Any]) -> Manifest:
    content = _object(leaves)
    identity = {name: manifest["metadata"][name] for name in ("name", "namespace") if name in manifest["metadata"]}
    known = {"uid": f"uid-of-{manifest['kind']}-{identity['name']}"}
    metadata = {**known, **(live or {}).get("metadata", {}), **identity, "managedFields": entries}
    for name in ("labels", "annotations"):
        metadata.pop(name, None)
    metadata |= content.pop("metadata", {})
    kept = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    status = {"status": live["status"]} if live and "status" in live else {}
    whole: Manifest = merged(DEFAULTS.get(manifest["kind"], {}), {**kept, **content, **status})
    return whole


def _object(leaves: Leaves) -> dict[str, Any]:
    grouped: dict[str, Leaves] = {}
    for (step, *rest), value in leaves.items():
        grouped.setdefault(step[2:], {})[tuple(rest)] = value
    return {name: _value(inner) for name, inner in grouped.items()}


def _value(leaves: Leaves) -> Any:
    below = {path: value for path, value in leaves.items() if path}
    if not below:
        return leaves[()]
    if next(iter(below))[0].startswith("f:"):
        return _object(below)
    items: dict[str, Leaves] = {}
    for (step, *rest), value in below.items():
        items.setdefault(step, {})[tuple(rest)] = value
    return [_value(inner) for inner in items.values()]
