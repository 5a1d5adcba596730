"""What `managedFields` says: which fields a manager owns, and whether these are just the wanted ones.

The tree of a manager also tells how the server treats each list: as one value, as a map by keys, or as a set. So an
object can be compared with what the fleet wants without knowing the schema of its kind and without a request.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from reconciler.objects import Manifest
from reconciler.ownership.values import is_equal

APPLY = "Apply"
UPDATE = "Update"
_UNTRACKED = {"apiVersion", "kind", "metadata"}
_IDENTITY = {"name", "namespace"}

FieldTree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Owner:
    """One entry of managedFields."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    tree: FieldTree


def owners_of(live: Manifest) -> tuple[Owner, ...]:
    return tuple(_owner(entry) for entry in live["metadata"].get("managedFields") or ())


def applied_by(live: Manifest, manager: str) -> Owner | None:
    """What this manager applied last, if it ever did."""
    entry = _applied_entry(live, manager)
    return None if entry is None else _owner(entry)


def has_applied(live: Manifest, manager: str, api_version: str = "") -> bool:
    """Whether a manager has applied an object, and did so last in this version."""
    entry = _applied_entry(live, manager)
    return entry is not None and api_version in ("", entry.get("apiVersion"))


def is_settled(live: Manifest, wanted: Manifest, manager: str) -> bool:
    """Whether the manager owns exactly the wanted fields, in the wanted version, and they have the wanted values."""
    entry = _applied_entry(live, manager)
    if entry is None or entry.get("apiVersion") != wanted["apiVersion"]:
        return False
    return _fields_match(entry.get("fieldsV1") or {}, _tracked(wanted), live, ())


def owned_paths(tree: FieldTree) -> Iterator[tuple[str, ...]]:
    """The leaves of a tree as paths of its own keys (`f:spec`, `k:{"name":"a"}`)."""
    children = {key: below for key, below in tree.items() if key != "."}
    for key, below in children.items():
        if any(inner != "." for inner in below):
            yield from ((key, *rest) for rest in owned_paths(below))
        else:
            yield (key,)


def owners_at(live: Manifest, path: tuple[str | int, ...], but: str) -> tuple[str, ...]:
    """Other managers that own a field, or something in or around it."""
    return tuple(
        sorted(
            {
                owner.manager
                for owner in owners_of(live)
                if owner.manager != but and owner.tree and _reaches(owner.tree, live, path)
            }
        )
    )


def _applied_entry(live: Manifest, manager: str) -> Mapping[str, Any] | None:
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == APPLY and not entry.get("subresource"):
            return cast("Mapping[str, Any]", entry)
    return None


def _owner(entry: Mapping[str, Any]) -> Owner:
    return Owner(
        entry.get("manager", ""),
        entry.get("operation", ""),
        entry.get("apiVersion", ""),
        entry.get("subresource", ""),
        entry.get("fieldsV1") or {},
    )


def _tracked(wanted: Manifest) -> dict[str, Any]:
    """The wanted fields that managedFields can name: identity and type of an object are not among them."""
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in _IDENTITY}
    tracked = {name: value for name, value in wanted.items() if name not in _UNTRACKED}
    if metadata:
        tracked["metadata"] = metadata
    return tracked


def _matches(tree: FieldTree, wanted: Any, live: Any, path: tuple[str, ...]) -> bool:
    if not tree or (len(tree) == 1 and "." in tree):
        # Most values are the same in every way, and the interpreter sees that many times faster than we do.
        return wanted == live or is_equal(wanted, live, path)
    if isinstance(wanted, dict) and isinstance(live, dict):
        return _fields_match(tree, wanted, live, path)
    if isinstance(wanted, list) and isinstance(live, list):
        return len(tree) - ("." in tree) == len(wanted) and all(
            _item_matches(key, below, wanted, live, path) for key, below in tree.items() if key != "."
        )
    return False


def _fields_match(tree: FieldTree, wanted: Manifest, live: Manifest, path: tuple[str, ...]) -> bool:
    if len(tree) - ("." in tree) != len(wanted):
        return False
    for name, value in wanted.items():
        below = tree.get("f:" + name)
        if below is None or name not in live:
            return False
        # A leaf that is the same to the letter needs no call: there are many thousands of them.
        if (below or value != live[name]) and not _matches(below, value, live[name], (*path, name)):
            return False
    return True


def _item_matches(key: str, tree: FieldTree, wanted: list[Any], live: list[Any], path: tuple[str, ...]) -> bool:
    sort, _, text = key.partition(":")
    if sort == "v":
        return json.loads(text) in wanted and json.loads(text) in live
    if sort != "k":
        return False
    mine, theirs = item_of(wanted, text), item_of(live, text)
    return mine is not None and theirs is not None and _matches(tree, mine, theirs, path)


def item_of(items: list[Any], keys: str) -> Any | None:
    """The item of a list that has these keys, given as the tree gives them: `{"name":"a"}`."""
    wanted = json.loads(keys)
    matching = (item for item in items if isinstance(item, Mapping) and wanted.items() <= item.items())
    return next(matching, None)


def _reaches(tree: FieldTree, live: Any, path: tuple[str | int, ...]) -> bool:
    """Whether a tree owns the field at a path, or something below it, or the whole that it is a part of."""
    if not path or not any(key != "." for key in tree):
        return True
    step, *rest = path
    if isinstance(step, str):
        below = tree.get(f"f:{step}")
        inner = live.get(step) if isinstance(live, Mapping) else None
        return below is not None and _reaches(below, inner, tuple(rest))
    item = live[step] if isinstance(live, list) and step < len(live) else None
    for key, below in tree.items():
        sort, _, text = key.partition(":")
        if sort == "k" and isinstance(item, Mapping) and json.loads(text).items() <= item.items():
            return _reaches(below, item, tuple(rest))
        if sort == "v" and json.loads(text) == item:
            return True
    return False
