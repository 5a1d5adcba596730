"""The fields that an entry of managedFields owns, converted to the API version in which the object was read.

An entry keeps the version in which its manager wrote. Older versions of Kueue had other names for some fields, and
treated some lists as atomic that have keys now.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

from reconciler.kueue.conversion import OLD_VERSIONS
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.objects import Manifest
from reconciler.state.values import is_equal

Tree = Mapping[str, Any]
Steps = tuple[str, ...]

# The current paths of fields of an older spec; an empty path means that the field no longer exists.
_MOVED: Mapping[str, Mapping[str, Steps]] = {
    "AdmissionCheck": {"f:retryDelayMinutes": ()},
    "ClusterQueue": {
        "f:cohort": ("f:cohortName",),
        "f:admissionChecks": ("f:admissionChecksStrategy", "f:admissionChecks"),
    },
    "Cohort": {"f:parent": ("f:parentName",)},
    "MultiKueueCluster": {name: ("f:clusterSource", name) for name in ("f:kubeConfig", "f:clusterProfileRef")},
}
# Lists that were atomic, and the key of their items now.
_KEYED: Mapping[str, tuple[Steps, str]] = {
    "ClusterQueue": (("f:admissionChecksStrategy", "f:admissionChecks"), "name"),
    "ProvisioningRequestConfig": (("f:podSetUpdates", "f:nodeSelector"), "key"),
}
APPLY = "Apply"
UPDATE = "Update"
_UNTRACKED = {"apiVersion", "kind", "metadata"}
_IDENTITY = {"name", "namespace"}

FieldTree = Mapping[str, Any]


def as_read(entry: Tree, live: Manifest) -> Tree:
    """The entry in the version of the live object; unchanged if no conversion is known or needed."""
    group, _, version = str(entry.get("apiVersion")).rpartition("/")
    is_old = group == GROUP and version in OLD_VERSIONS and live["apiVersion"] == f"{GROUP}/{CANONICAL}"
    if not is_old:
        return entry
    tree = dict(entry.get("fieldsV1") or {})
    if "f:spec" in tree:
        tree["f:spec"] = _spec_as_read(tree["f:spec"], live)
    return {**entry, "apiVersion": live["apiVersion"], "fieldsV1": tree}


def joined(trees: Iterable[Tree]) -> Tree:
    """The union of fieldsV1 trees."""
    return reduce(_joined, trees, {})


def _joined(one: Tree, other: Tree) -> Tree:
    return {key: _joined(one.get(key) or {}, other.get(key) or {}) for key in sorted(one.keys() | other.keys())}


def _spec_as_read(spec: Tree, live: Manifest) -> Tree:
    moved = _MOVED.get(live["kind"], {})
    found = joined(_nested(moved.get(key, (key,)), below) for key, below in spec.items())
    keyed = _KEYED.get(live["kind"])
    return _with_items(found, live.get("spec"), *keyed) if keyed else found


def _nested(steps: Steps, below: Tree) -> Tree:
    for step in reversed(steps):
        below = {step: below}
    return below if steps else {}


def _with_items(tree: Tree, live: Any, steps: Steps, key: str) -> Tree:
    """Add the items of a list: the owner of an atomic list owns all of its items."""
    step, *rest = steps
    if step not in tree:
        return tree
    value = live.get(step.removeprefix("f:")) if isinstance(live, Mapping) else None
    if rest:
        return {**tree, step: _with_items(tree[step], value, tuple(rest), key)}
    items = value if isinstance(value, list) else []
    return {**tree, step: {f"k:{_json({key: item.get(key)})}": _item(item) for item in items}}


def _item(item: Manifest) -> Tree:
    return {".": {}, **{f"f:{name}": _leaf(value) for name, value in item.items()}}


def _leaf(value: Any) -> Tree:
    """The tree of a value in an item. A list in such an item is a set."""
    return {f"v:{_json(one)}": {} for one in value} if isinstance(value, list) else {}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class FieldOwner:
    """One entry of managedFields."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    tree: FieldTree


def owners_of(live: Manifest) -> tuple[FieldOwner, ...]:
    return tuple(_owner(entry) for entry in live["metadata"].get("managedFields") or ())


def applied_by(live: Manifest, manager: str) -> FieldOwner | None:
    """The entry of this manager's last apply; None if it never applied the object."""
    entry = _applied_entry(live, manager)
    return None if entry is None else _owner(entry)


def has_applied(live: Manifest, manager: str, api_version: str = "") -> bool:
    """Whether a manager has applied an object and, if a version is given, last in this version."""
    entry = _applied_entry(live, manager)
    return entry is not None and api_version in ("", entry.get("apiVersion"))


def is_settled(live: Manifest, wanted: Manifest, manager: str) -> bool:
    """Whether the manager owns exactly the desired fields, in the desired version, with the desired values."""
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
    """Managers except `but` that own a field, a part of it, or a field that contains it."""
    return tuple(
        sorted(
            {
                owner.manager
                for owner in owners_of(live)
                if owner.manager != but and owner.tree and _reaches(owner.tree, live, path)
            }
        )
    )


def is_applied_at(live: Manifest, path: tuple[str | int, ...], manager: str) -> bool:
    """Whether a field still has the value that this manager applied: a change by another removes its ownership."""
    owner = applied_by(live, manager)
    return owner is not None and bool(owner.tree) and _reaches(owner.tree, live, path)


def _applied_entry(live: Manifest, manager: str) -> Mapping[str, Any] | None:
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == APPLY and not entry.get("subresource"):
            return cast("Mapping[str, Any]", entry)
    return None


def _owner(entry: Mapping[str, Any]) -> FieldOwner:
    return FieldOwner(
        entry.get("manager", ""),
        entry.get("operation", ""),
        entry.get("apiVersion", ""),
        entry.get("subresource", ""),
        entry.get("fieldsV1") or {},
    )


def _tracked(wanted: Manifest) -> dict[str, Any]:
    """The desired fields that managedFields can contain: all but the identity and type of the object."""
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in _IDENTITY}
    tracked = {name: value for name, value in wanted.items() if name not in _UNTRACKED}
    if metadata:
        tracked["metadata"] = metadata
    return tracked


def _matches(tree: FieldTree, wanted: Any, live: Any, path: tuple[str, ...]) -> bool:
    if not tree or (len(tree) == 1 and "." in tree):
        # Most values are equal, and the built-in comparison is many times faster than is_equal.
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
        # An equal leaf needs no call: there are many thousands of them.
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
    """The item of a list with these keys, in the form of fieldsV1: `{"name":"a"}`."""
    wanted = json.loads(keys)
    matching = (item for item in items if isinstance(item, Mapping) and wanted.items() <= item.items())
    return next(matching, None)


def _reaches(tree: FieldTree, live: Any, path: tuple[str | int, ...]) -> bool:
    """Whether a tree owns the field at a path, a field below it, or a field that contains it."""
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
