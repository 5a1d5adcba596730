"""Fields that others own in an object: edited manually, set by other managers, or taken over from `kubectl apply`.

kfleet may own a manually edited field too, because git has the same value. When git drops such a field, releasing
kfleet's ownership is not enough: the manual manager still owns it, and the value would stay.

Otherwise they would keep owning fields that git never contained or no longer contains, and these would never be
removed.

Decision: labels and annotations that are not in git stay with their owner, because other controllers depend on them
(pod security, service meshes, node selectors). Only kubectl's last-applied annotation is removed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.kinds import NEWEST, kind_of
from reconciler.kueue.structure import ANY, SchemaNode, structure_of
from reconciler.objects import Manifest
from reconciler.state.managed_fields import (
    APPLY,
    UPDATE,
    FieldTree,
    applied_by,
    as_read,
    item_of,
    joined,
    owned_paths,
    owners_at,
    owners_of,
)
from reconciler.state.queues import STOPPER
from reconciler.state.values import LAST_APPLIED

# Tools for manual edits. kfleet reverts their changes to objects of the fleet as drift. Every other field manager is a
# controller that would write the field again, so kfleet reports a conflict.
_MANUAL_MANAGERS = ("kubectl", "k9s", "lens", "openlens", "headlamp", "before-first-apply", STOPPER)
Keys = tuple[str, ...]
# Fields of an older API version that a newer one has replaced by other fields.
_OLDER: dict[str, tuple[str, ...]] = {"ClusterQueue": ("cohort", "admissionChecks"), "Cohort": ("parent",)}
# An administrator may let Kueue manage a quota: kfleet reads this field, and writes it only if git sets it.
_LEFT = {"MultiKueueConfig": ("quotaManagement",)}
_SPEC = "f:spec"
CLIENT_SIDE = "kubectl-client-side-apply"
# The field manager of the Kubernetes Python client, and so of kueue-nats.
PYTHON_CLIENT = "OpenAPI-Generator"
PREDECESSORS = (CLIENT_SIDE, PYTHON_CLIENT)
_OF_THE_SERVER = {LAST_APPLIED, "kubernetes.io/metadata.name"}
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """A field owned by kfleet and by manual managers: its keys in fieldsV1, its path, its value, the managers."""

    keys: Keys
    path: Path
    value: Any
    managers: tuple[str, ...]


def is_manual_manager(manager: str) -> bool:
    return manager.lower().startswith(_MANUAL_MANAGERS)


def shared_fields(live: Manifest, wanted: Manifest, manager: str) -> Iterator[Shared]:
    """Fields that the manager owns and no longer desires, and that only manual managers own too."""
    owner = applied_by(live, manager)
    if owner is None or owner.api_version != live["apiVersion"]:
        return
    others = [entry for entry in _entries(live) if entry.get("manager") != manager]
    for keys, path, value in _dropped(owner.tree, live, wanted, (), ()):
        holders = [entry for entry in others if _at(entry.get("fieldsV1") or {}, keys) is not None]
        own = _at(owner.tree, keys)
        if holders and own is not None and all(_is_shared(entry, keys, own, live) for entry in holders):
            yield Shared(keys, path, value, tuple(sorted({str(entry.get("manager")) for entry in holders})))


def drop_manual_owners(live: Manifest, wanted: Manifest, manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields without the manual owners of shared fields; None if there are no shared fields."""
    shared = list(shared_fields(live, wanted, manager))
    if not shared:
        return None
    return [entry for entry in (_released(entry, shared) for entry in live["metadata"]["managedFields"]) if entry]


def _entries(live: Manifest) -> list[Mapping[str, Any]]:
    return [entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource")]


def _is_shared(entry: Mapping[str, Any], keys: Keys, own: FieldTree, live: Manifest) -> bool:
    """Whether a manual manager owns nothing there that the manager does not own too, in the same API version."""
    theirs = _at(entry.get("fieldsV1") or {}, keys) or {}
    is_part = set(owned_paths(theirs)) <= set(owned_paths(own))
    return is_part and is_manual_manager(str(entry.get("manager"))) and entry.get("apiVersion") == live["apiVersion"]


def _released(entry: Mapping[str, Any], shared: list[Shared]) -> Mapping[str, Any]:
    tree: FieldTree = entry.get("fieldsV1") or {}
    if entry.get("subresource") or not is_manual_manager(str(entry.get("manager"))):
        return entry
    for one in shared:
        tree = _without(tree, one.keys)
    return {**entry, "fieldsV1": tree} if tree else {}


def _dropped(tree: FieldTree, live: Any, wanted: Any, keys: Keys, path: Path) -> Iterator[tuple[Keys, Path, Any]]:
    """Dropped fields, one by one. An item of a list that is not desired at all is one field."""
    for key, below in tree.items():
        step, mine, theirs = descend(key, live, wanted)
        if step is None or mine is None:
            continue
        is_leaf = all(inner == "." for inner in below)
        if theirs is None and (is_leaf or key.startswith("k:")):
            yield (*keys, key), (*path, step), mine
        elif not is_leaf:
            yield from _dropped(below, mine, theirs or {}, (*keys, key), (*path, step))


def _at(tree: FieldTree, keys: Keys) -> FieldTree | None:
    for key in keys:
        if key not in tree:
            return None
        tree = tree[key]
    return tree


def _without(tree: FieldTree, keys: Keys) -> FieldTree:
    key, *rest = keys
    if key not in tree:
        return tree
    below = _without(tree[key], tuple(rest)) if rest else {}
    others = {name: value for name, value in tree.items() if name != key}
    return {**others, key: below} if any(inner != "." for inner in below) else others


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A field of other managers that is not in git: its keys in fieldsV1, its path, its value, the managers."""

    keys: Keys
    path: Path
    value: Any
    managers: tuple[str, ...]


def unnamed_fields(live: Manifest, wanted: Manifest, manager: str, left: Iterable[str] = ()) -> tuple[Unnamed, ...]:
    """Fields of the spec that other managers own and the manager does not desire, except those in `left`."""
    kind = kind_of(live)
    trees = [
        as_read(entry, live)["fieldsV1"][_SPEC]
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") != manager and not entry.get("subresource") and _SPEC in (entry.get("fieldsV1") or {})
    ]
    # The spec of most objects has one owner: they return here.
    if kind is None or not trees or live["apiVersion"] != wanted["apiVersion"]:
        return ()
    skipped = {f"f:{name}" for name in (*left, *_LEFT.get(kind.name, ()))}
    tree = {key: below for key, below in joined(trees).items() if key not in skipped}
    found = _walk(tree, live.get("spec"), wanted.get("spec") or {}, _spec_node(kind.name), ((_SPEC,), ("spec",)))
    return tuple(Unnamed(keys, path, value, owners_at(live, path, but=manager)) for keys, path, value in found)


def is_covered(path: Path, unnamed: Iterable[Unnamed]) -> bool:
    """Whether a field is one of the unnamed fields, or a part of one."""
    return any(path[: len(one.path)] == one.path for one in unnamed)


def removals(live: Manifest, fields: Iterable[Keys]) -> list[dict[str, str]]:
    """JSON patch operations that remove these fields from an object, as far as it still has them.

    The last item of a list is removed first, so that the positions of the others stay valid.
    """
    paths = [path for path in (_path(live, keys) for keys in fields) if path]
    ordered = sorted(paths, key=lambda path: [step if isinstance(step, int) else -1 for step in path], reverse=True)
    return [{"op": "remove", "path": "".join(f"/{_escaped(step)}" for step in path)} for path in ordered]


def without(manifest: Manifest, unnamed: Iterable[Unnamed]) -> Manifest:
    """The object without these fields."""
    for one in sorted(unnamed, key=lambda one: [step if isinstance(step, int) else -1 for step in one.path])[::-1]:
        if path := _path(manifest, one.keys):
            manifest = _cut(manifest, path)
    return manifest


def _spec_node(kind: str) -> SchemaNode:
    """The known structure of a spec. Fields of a newer Kueue are left alone, because their defaults are unknown."""
    known = structure_of(kind, NEWEST).fields.get("spec", ANY)
    older = dict.fromkeys(_OLDER.get(kind, ()), ANY)
    return SchemaNode(known.type, {**known.fields, **older})


def _walk(
    tree: FieldTree, live: Any, wanted: Any, node: SchemaNode, at: tuple[Keys, Path]
) -> Iterator[tuple[Keys, Path, Any]]:
    for key, below in tree.items():
        child = node.fields.get(key.removeprefix("f:")) if key.startswith("f:") else node.items
        step, mine, theirs = descend(key, live, wanted)
        if child is None or step is None or mine is None:
            continue
        here = (*at[0], key), (*at[1], step)
        if theirs is None:
            yield *here, mine
        elif any(inner != "." for inner in below):
            yield from _walk(below, mine, theirs, child, here)


def _path(live: Any, keys: Keys) -> Path:
    """The current path of a field; empty if it does not exist."""
    path: list[str | int] = []
    for key in keys:
        step, live, _ = descend(key, live, None)
        if step is None or live is None:
            return ()
        path.append(step)
    return tuple(path)


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _cut(value: Any, path: Path) -> Any:
    step, *rest = path
    if isinstance(value, list) and isinstance(step, int):
        kept = [_cut(value[step], tuple(rest))] if rest else []
        return [*value[:step], *kept, *value[step + 1 :]]
    below = {step: _cut(value[step], tuple(rest))} if rest else {}
    return {**{name: child for name, child in value.items() if name != step}, **below}


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
    """The fields to take over, and those that stay with the predecessor.

    These are labels and annotations outside git, and a spec that is empty: without an owner the API server would remove
    it, and count that as a change of the object.
    """
    is_idle = "spec" not in wanted and not any(key != "." for key in tree.get(_SPEC, {"f:": {}}))
    rest = {key: below for key, below in tree.items() if key != _SPEC or not is_idle}
    taken, left = _divided_marks(rest, wanted)
    return taken, {**left, _SPEC: tree[_SPEC]} if is_idle else left


def _divided_marks(tree: FieldTree, wanted: Manifest) -> tuple[FieldTree, FieldTree]:
    metadata = tree.get("f:metadata") or {}
    left: dict[str, FieldTree] = {}
    for part in ("labels", "annotations"):
        named = {LAST_APPLIED, *((wanted.get("metadata") or {}).get(part) or {})}
        kept = {key: below for key, below in (metadata.get(f"f:{part}") or {}).items() if key[2:] not in named}
        left |= {f"f:{part}": kept} if any(key != "." for key in kept) else {}
    if not left:
        return tree, {}
    rest = {key: _kept_below(below, left.get(key, {})) for key, below in metadata.items()}
    taken = {key: below for key, below in rest.items() if below or key not in left}
    others = {key: below for key, below in tree.items() if key != "f:metadata"}
    return {**others, **({"f:metadata": taken} if taken else {})}, {"f:metadata": left}


def _kept_below(tree: FieldTree, left: FieldTree) -> FieldTree:
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
