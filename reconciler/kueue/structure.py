"""The shape of every kind at a release of Kueue: fields, types, limits and defaults, read from structure.json.

A value in that file may be keyed by release (`{"0.10": 16, "0.14": 64}`): the newest entry that is not newer than
the requested release applies, and before the first entry there is none. One file is the source for the checks, the
defaults and the fields that an older version lacks, because three tables would diverge.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from reconciler.kueue.kinds import KueueVersion, parse_version


class _Missing:
    """Marks a missing default, because None could be one."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """The constraints on one value of a manifest.

    `unique` is the key by which the items of a list must differ (`*`: the items themselves); `later` are the fields
    that only a newer Kueue has, with their nodes; `only` is the one API version that has the field at all.
    """

    type: str
    fields: Mapping[str, "SchemaNode"] = field(default_factory=dict)
    later: Mapping[str, "SchemaNode"] = field(default_factory=dict)
    is_open: bool = False
    required: tuple[str, ...] = ()
    items: "SchemaNode | None" = None
    smallest: int | None = None
    largest: int | None = None
    shape: str = ""
    choices: tuple[str, ...] = ()
    unique: str = ""
    bits: int = 0
    since: str = ""
    only: str = ""
    default: Any = MISSING


ANY = SchemaNode("any")
METADATA = {"apiVersion": ANY, "kind": ANY, "metadata": ANY}


@cache
def structure_of(kind: str, version: KueueVersion) -> SchemaNode:
    """Return the whole object; `metadata` has separate rules, because it is the same for every kind."""
    tables = _tables("structure.json")
    node = _read(tables["kinds"][kind], tables["shared"], version)
    return SchemaNode(node.type, {**METADATA, **node.fields}, node.later, node.is_open, node.required)


@cache
def configuration_structure(api_version: str, version: KueueVersion) -> SchemaNode:
    """Return Kueue's own Configuration in one of its API versions (`v1beta2`), from configuration.json."""
    tables = _tables("configuration.json")
    return _in_version(_read(tables["kinds"]["Configuration"], tables["shared"], version), api_version)


def largest_count(kind: str, path: str, version: KueueVersion) -> int | None:
    """Return the maximum number of items at a path such as `spec.clusters` or `spec.resourceGroups[].flavors`."""
    node: SchemaNode | None = structure_of(kind, version)
    for step in path.replace("[]", ".[]").split("."):
        if node is not None:
            node = node.items if step == "[]" else node.fields.get(step)
    return node.largest if node else None


def _in_version(node: SchemaNode, api_version: str) -> SchemaNode:
    """Return the same without the fields that only another API version has."""

    def kept(fields: Mapping[str, SchemaNode]) -> Mapping[str, SchemaNode]:
        return {
            name: _in_version(child, api_version) for name, child in fields.items() if child.only in {"", api_version}
        }

    items = _in_version(node.items, api_version) if node.items else None
    return replace(node, fields=kept(node.fields), later=kept(node.later), items=items)


@cache
def _tables(name: str) -> Mapping[str, Any]:
    text = files("reconciler.kueue").joinpath(name).read_text(encoding="utf-8")
    tables: Mapping[str, Any] = json.loads(text)
    return tables


def _read(raw: Mapping[str, Any], shared: Mapping[str, Any], version: KueueVersion) -> SchemaNode:
    if "shared" in raw:
        raw = {**shared[raw["shared"]], **raw}
    children = {name: _read(child, shared, version) for name, child in raw.get("fields", {}).items()}
    later = {name: child for name, child in children.items() if _is_newer(child.since, version)}
    return SchemaNode(
        type=raw["type"],
        fields={name: child for name, child in children.items() if name not in later},
        later=later,
        is_open=raw.get("open", False),
        required=tuple(_at(raw.get("required"), version) or ()),
        items=_read(raw["items"], shared, version) if "items" in raw else None,
        smallest=_at(raw.get("min"), version),
        largest=_at(raw.get("max"), version),
        shape=raw.get("shape", ""),
        choices=tuple(_at(raw.get("choices"), version) or ()),
        unique=_at(raw.get("unique"), version) or "",
        bits=raw.get("bits", 0),
        since=raw.get("since", ""),
        only=raw.get("only", ""),
        default=raw.get("default", MISSING),
    )


def _is_newer(since: str, version: KueueVersion) -> bool:
    return bool(since) and parse_version(since) > version


def _at(value: Any, version: KueueVersion) -> Any:
    """Return the entry of a table keyed by release that applies to this release; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    reached = [parse_version(since) for since in value if parse_version(since) <= version]
    return value[str(max(reached))] if reached else None
