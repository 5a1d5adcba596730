"""The shape of every kind at a release of Kueue: fields, types, limits, defaults and text formats, by structure.json.

A value in that file may be keyed by release (`{"0.10": 16, "0.14": 64}`): the newest entry that is not newer than
the requested release applies, and before the first entry there is none. One file is the source for the checks, the
defaults and the fields that an older version lacks, because three tables would diverge.

Lengths are checked before patterns, so that a hostile text never reaches the regular expression.

Some fields are immutable: to change one, the object must be deleted and created again.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from reconciler.kueue.kinds import NEWEST, OLDEST, KueueVersion, kind_of, parse_version
from reconciler.kueue.reading import MAPS, at
from reconciler.objects import Manifest

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
LONGEST_PATTERN_TEXT = 4096


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


@dataclass(frozen=True, slots=True)
class Shape:
    pattern: str
    words: str


SHAPES = {
    "subdomain": Shape(_SUBDOMAIN, "lower-case letters, digits, '-' and '.', with a letter or digit at both ends"),
    "label": Shape(_LABEL, "lower-case letters, digits and '-', with a letter or digit at both ends"),
    "labelKey": Shape(rf"({_SUBDOMAIN}/)?{_WORD}", "a label key like 'example.com/zone'"),
    "kind": Shape(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?", "letters, digits and '-', starting with a letter"),
    "duration": Shape(r"0|([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+", "numbers with units, like '90s', '5m' or '1h30m'"),
    "time": Shape(_TIME, "a time like '2026-01-31T12:00:00Z'"),
}


def has_shape(text: str, shape: str) -> bool:
    return len(text) <= LONGEST_PATTERN_TEXT and re.fullmatch(SHAPES[shape].pattern, text) is not None


def problem_of_name(text: str) -> str:
    """Return why a text is not an object name; empty if it is."""
    if not text:
        return "is empty"
    if len(text) > 253:
        return f"has {len(text)} characters, at most 253 are allowed"
    return "" if has_shape(text, "subdomain") else f"{text!r} does not consist of {SHAPES['subdomain'].words}"


def problem_of_namespace(text: str) -> str:
    if not text:
        return "is empty"
    if len(text) > 63:
        return f"has {len(text)} characters, at most 63 are allowed"
    return "" if has_shape(text, "label") else f"{text!r} does not consist of {SHAPES['label'].words}"


def problem_of_label_key(text: str) -> str:
    """Return why a text is not a label key (the syntax of resource names and taint keys too); empty if it is."""
    prefix, slash, name = text.rpartition("/")
    if slash and problem_of_name(prefix):
        return f"{text!r}: the part before '/' must be a DNS name of at most 253 characters"
    if not name or len(name) > 63 or re.fullmatch(_WORD, name) is None:
        return f"{text!r}: {name!r} must be 1 to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends"
    return ""


def problem_of_label_value(text: str) -> str:
    if len(text) > 63:
        return f"{text!r} has {len(text)} characters, at most 63 are allowed"
    if text and re.fullmatch(_WORD, text) is None:
        return f"{text!r} must be letters, digits, '-', '_', '.', with a letter or digit at both ends"
    return ""


_FLAVOR_FIELDS_SINCE = KueueVersion(0, 17)


class Binding(StrEnum):
    """When a field is immutable."""

    ALWAYS = "always"
    WHILE_SET = "while both the old and the new object have it"
    WITH_TOPOLOGY = "while the old object has a topologyName"


@dataclass(frozen=True, slots=True)
class ImmutableField:
    kind: str
    path: tuple[str, ...]
    binding: Binding
    since: KueueVersion = OLDEST
    until: KueueVersion | None = None

    def is_fixed_by(self, version: KueueVersion) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


IMMUTABLE = (
    ImmutableField("AdmissionCheck", ("spec", "controllerName"), Binding.WHILE_SET),
    ImmutableField("ClusterQueue", ("spec", "concurrentAdmissionPolicy"), Binding.ALWAYS, KueueVersion(0, 18)),
    ImmutableField("LocalQueue", ("spec", "clusterQueue"), Binding.WHILE_SET),
    ImmutableField("ResourceFlavor", ("spec",), Binding.WITH_TOPOLOGY, until=_FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "nodeLabels"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "tolerations"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("ResourceFlavor", ("spec", "topologyName"), Binding.WITH_TOPOLOGY, _FLAVOR_FIELDS_SINCE),
    ImmutableField("Topology", ("spec", "levels"), Binding.WHILE_SET),
)


def changed_immutable(old: Manifest, new: Manifest, version: KueueVersion) -> tuple[str, ...]:
    """Return the paths of immutable fields in which two canonical manifests of one object differ."""
    kind = kind_of(new)
    fixed = (one for one in IMMUTABLE if kind and one.kind == kind.name and one.is_fixed_by(version))
    return tuple(".".join(one.path) for one in fixed if _is_refused(one, old, new))


def _is_refused(one: ImmutableField, old: Manifest, new: Manifest) -> bool:
    before, after = at(old, *one.path), at(new, *one.path)
    if one.binding is Binding.WHILE_SET and (before is None or after is None):
        return False
    if one.binding is Binding.WITH_TOPOLOGY and at(old, "spec", "topologyName") is None:
        return False
    return bool(before != after)


def with_defaults(manifest: Manifest) -> Manifest:
    """Return the canonical manifest as the API server would store it."""
    kind = kind_of(manifest)
    return _filled(_defaulting(kind.name), manifest) if kind else manifest


@cache
def _defaulting(kind: str) -> SchemaNode:
    """Return the shape of a kind without everything that has no default: most of a queue is quotas, which have none."""
    return _pruned(structure_of(kind, NEWEST)) or SchemaNode("object")


def _pruned(node: SchemaNode) -> SchemaNode | None:
    children = {name: kept for name, child in node.fields.items() if (kept := _pruned(child))}
    items = _pruned(node.items) if node.items else None
    if not children and items is None and node.default is MISSING:
        return None
    return replace(node, fields=children, items=items)


def _filled(node: SchemaNode, value: Any) -> Any:
    if isinstance(value, list) and node.items is not None:
        return [_filled(node.items, item) for item in value]
    if not isinstance(value, MAPS) or not node.fields:
        return value
    filled = {
        name: _filled(node.fields[name], child) if name in node.fields else child for name, child in value.items()
    }
    for name, child in node.fields.items():
        if child.default is not MISSING and filled.get(name) is None:
            filled[name] = _filled(child, child.default)
    return filled
