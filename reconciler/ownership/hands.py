"""Fields that somebody set by hand, and that kfleet owns too because git came to say the same.

When git names them no more, kfleet's letting go alone would leave them to hands that never come back for them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.objects import Manifest
from reconciler.ownership.fields import FieldTree, applied_by, owned_paths
from reconciler.ownership.stopped import STOPPER
from reconciler.ownership.takeover import Path, descend

# Tools by which people change objects by hand. What they did to an object of the fleet is drift, and is put right;
# every other manager is a program that would do it again, and has to be spoken about.
_HANDS = ("kubectl", "k9s", "lens", "openlens", "headlamp", "before-first-apply", STOPPER)

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """One such field: where it stands in a tree of owners and in the object, its value, and whose hands it is in."""

    keys: Keys
    path: Path
    value: Any
    hands: tuple[str, ...]


def is_hand(manager: str) -> bool:
    return manager.lower().startswith(_HANDS)


def shared_fields(live: Manifest, wanted: Manifest, manager: str) -> Iterator[Shared]:
    """What the manager owns, does not want any more, and has in common with hands and with nobody else."""
    owner = applied_by(live, manager)
    if owner is None or owner.api_version != live["apiVersion"]:
        return
    others = [entry for entry in _entries(live) if entry.get("manager") != manager]
    for keys, path, value in _dropped(owner.tree, live, wanted, (), ()):
        holders = [entry for entry in others if _at(entry.get("fieldsV1") or {}, keys) is not None]
        own = _at(owner.tree, keys)
        if holders and own is not None and all(_is_shared(entry, keys, own, live) for entry in holders):
            yield Shared(keys, path, value, tuple(sorted({str(entry.get("manager")) for entry in holders})))


def without_hands(live: Manifest, wanted: Manifest, manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields in which no hand holds these fields; None where there are none."""
    shared = list(shared_fields(live, wanted, manager))
    if not shared:
        return None
    return [entry for entry in (_released(entry, shared) for entry in live["metadata"]["managedFields"]) if entry]


def _entries(live: Manifest) -> list[Mapping[str, Any]]:
    return [entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource")]


def _is_shared(entry: Mapping[str, Any], keys: Keys, own: FieldTree, live: Manifest) -> bool:
    """Whether hands hold nothing there that the manager does not hold too, in words that can be compared."""
    theirs = _at(entry.get("fieldsV1") or {}, keys) or {}
    is_part = set(owned_paths(theirs)) <= set(owned_paths(own))
    return is_part and is_hand(str(entry.get("manager"))) and entry.get("apiVersion") == live["apiVersion"]


def _released(entry: Mapping[str, Any], shared: list[Shared]) -> Mapping[str, Any]:
    tree: FieldTree = entry.get("fieldsV1") or {}
    if entry.get("subresource") or not is_hand(str(entry.get("manager"))):
        return entry
    for one in shared:
        tree = _without(tree, one.keys)
    return {**entry, "fieldsV1": tree} if tree else {}


def _dropped(tree: FieldTree, live: Any, wanted: Any, keys: Keys, path: Path) -> Iterator[tuple[Keys, Path, Any]]:
    """Down to single fields; an item of a list that is not wanted at all goes as a whole."""
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
