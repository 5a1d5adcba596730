"""Compares values of fields: quantities by amount, everything else literally."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from reconciler.objects import Manifest
from reconciler.quantity import parse

# Fields of Kueue that hold one quantity, and fields whose values are all quantities.
QUANTITIES = {"nominalQuota", "borrowingLimit", "lendingLimit", "weight"}
QUANTITY_MAPS = {"requests", "limits", "allocatable", "capacity", "hard", "overhead"}
# Below these fields everything is text: a label `weight: "1"` differs from `weight: "1.0"`.
TEXTS = {"labels", "annotations", "matchLabels", "nodeLabels", "nodeSelector", "data", "stringData", "binaryData"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SECRET_KINDS = frozenset({"Secret"})
_KEPT_METADATA = ("labels", "annotations")
_OPEN_PARTS = {"apiVersion", "kind", "type", "immutable"}


def is_equal(one: Any, other: Any, path: tuple[str, ...] = ()) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            is_equal(value, other[name], (*path, str(name))) for name, value in one.items()
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            is_equal(mine, theirs, path) for mine, theirs in zip(one, other, strict=True)
        )
    if one == other and isinstance(one, bool) == isinstance(other, bool):
        return True
    return is_quantity(path) and _is_same_quantity(one, other)


def is_quantity(path: tuple[str, ...]) -> bool:
    if not path or not TEXTS.isdisjoint(path[:-1]):
        return False
    return path[-1] in QUANTITIES or (len(path) > 1 and path[-2] in QUANTITY_MAPS)


def _is_same_quantity(one: Any, other: Any) -> bool:
    try:
        return parse(one) == parse(other)
    except ValueError:
        return False


def content(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest.get("metadata") or {}
    kept = {name: dict(metadata.get(name) or {}) for name in _KEPT_METADATA}
    kept["annotations"].pop(LAST_APPLIED, None)
    rest = {name: value for name, value in manifest.items() if name not in {"metadata", "status", "apiVersion", "kind"}}
    return {**rest, "metadata": kept}


def digest(value: Any) -> str:
    """A short hash of a value."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def without_secrets(kind: str, manifest: Manifest) -> Manifest:
    """A manifest with the names of the keys of a Secret, without their values.

    If a value can be guessed, its hash is as good as the value. So every hash of a whole manifest that is stored or
    shown is made of this. `kind` is the kind that the API server would parse.
    """
    if kind not in SECRET_KINDS:
        return manifest
    shown = {name: value if name in _OPEN_PARTS else _names(value) for name, value in manifest.items()}
    metadata = dict(manifest.get("metadata") or {})
    if "annotations" in metadata:
        metadata["annotations"] = _names(metadata["annotations"])
    return {**shown, "metadata": metadata}


def _names(value: Any) -> list[str]:
    return sorted(value) if isinstance(value, Mapping) else []
