"""The kinds of the fleet and their fields, found by the path that a user types."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reconciler.cli.explain_words import (
    BRANCHES,
    Description,
    Schema,
    allowed_of,
    conditions_of,
    describe,
    limits_of,
    type_of,
)
from reconciler.errors import KfleetError
from reconciler.kueue.kinds import KINDS as NATIVE_KINDS
from reconciler.spec.schema import FILES, schema_folder
from reconciler.text import quote_value, suggest

SPEC = "spec"

_INDEX = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind; the document itself has an empty path. `required_when` is its condition, if it has one."""

    kind: str
    path: tuple[str, ...]
    type: str
    is_required: bool
    required_when: str
    description: Description
    allowed: tuple[str, ...]
    limits: tuple[str, ...]
    schema: Schema = field(repr=False)

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else self.kind

    def __str__(self) -> str:
        return ".".join((self.kind.lower(), *self.path))


def list_kinds() -> tuple[Field, ...]:
    return tuple(read_kind(kind) for kind in FILES)


def read_kind(kind: str) -> Field:
    return _field(kind, (), _load(kind), is_required=True)


def api_version(kind: str) -> str:
    return str(_load(kind)["properties"]["apiVersion"]["const"])


def find_field(path: str) -> Field:
    """Return the field of a path such as `queue.spec.quota[0].flavor`; `spec` and the brackets may be omitted."""
    kind, *words = [word for word in _INDEX.sub("", path).split(".") if word] or [""]
    document = read_kind(_find_kind(kind))
    outer = {each.name: each for each in fields_of(document)}
    is_short = bool(words) and words[0] not in outer and _step(fields_of(outer[SPEC]), words) is not None
    return _descend(outer[SPEC] if is_short else document, words)


def fields_of(parent: Field) -> tuple[Field, ...]:
    """Return the fields nested in a field; for a list, those of each item."""
    schema = _inside(parent.schema)
    required, conditions = schema.get("required", ()), conditions_of(schema)
    return tuple(
        _field(parent.kind, (*parent.path, name), each, is_required=name in required, when=conditions.get(name, ""))
        for name, each in _properties(schema).items()
    )


def _field(kind: str, path: tuple[str, ...], schema: Schema, *, is_required: bool, when: str = "") -> Field:
    return Field(
        kind=kind,
        path=path,
        type=type_of(schema),
        is_required=is_required,
        required_when="" if is_required else when,
        description=describe(schema),
        allowed=allowed_of(schema),
        limits=limits_of(schema),
        schema=schema,
    )


def _find_kind(word: str) -> str:
    for kind in FILES:
        if word.lower() in {kind.lower(), f"{kind.lower()}s"}:
            return kind
    kinds = [kind.lower() for kind in FILES]
    instead = suggest(word, [*kinds, *(kind.name.lower() for kind in NATIVE_KINDS)]) or _instead(word, kinds)
    raise KfleetError(f"{quote_value(word)}: no such kind{instead}")


def _descend(parent: Field, words: list[str]) -> Field:
    if not words:
        return parent
    inner = fields_of(parent)
    if step := _step(inner, words):
        return _descend(step.field, words[step.length :])
    values = _inside(parent.schema).get("additionalProperties")
    if isinstance(values, dict):
        # Keys may contain dots (nvidia.com/gpu), and the values of the fleet's maps have no nested fields.
        value = {"description": parent.schema.get("description", ""), **values}
        return _field(parent.kind, (*parent.path, ".".join(words)), value, is_required=False)
    raise KfleetError(_no_field(parent, words[0], inner))


@dataclass(frozen=True, slots=True)
class _Step:
    field: Field
    length: int


def _step(fields: Iterable[Field], words: list[str]) -> _Step | None:
    """Return the field that the first words name: several words if the name itself contains dots."""
    by_name = {each.name: each for each in fields}
    for length in range(len(words), 0, -1):
        name = ".".join(words[:length])
        if name in by_name:
            return _Step(by_name[name], length)
    return None


def _no_field(parent: Field, word: str, fields: tuple[Field, ...]) -> str:
    if not fields:
        is_free = _inside(parent.schema).get("type") == "object"
        reason = "is free-form" if is_free else f"is a {parent.type}"
        return f"{parent}: no field {quote_value(word)} here: {parent.name} {reason}"
    names = [each.name for each in fields]
    if not parent.path:
        names += [each.name for outer in fields if outer.name == SPEC for each in fields_of(outer)]
    return f"{parent}: no field {quote_value(word)}{_instead(word, names)}"


def _instead(word: str, allowed: list[str]) -> str:
    return suggest(word, allowed) or f"; there are: {', '.join(allowed)}"


def _inside(schema: Schema) -> Schema:
    """Return the schema itself or, for a list, that of its items."""
    return _inside(schema["items"]) if "items" in schema else schema


def _properties(schema: Schema) -> Mapping[str, Schema]:
    found = dict(schema.get("properties", {}))
    for branch in (each for keyword in BRANCHES for each in schema.get(keyword, ())):
        found = {**_properties(branch), **found}
    return found


@cache
def _load(kind: str) -> Schema:
    schema: Schema = _inlined(_read(FILES[kind]), FILES[kind])
    return schema


@cache
def _read(file: str) -> Any:
    return json.loads((schema_folder() / file).read_text(encoding="utf-8"))


def _inlined(schema: Any, file: str) -> Any:
    """Return the schema with descriptions and with every reference resolved."""
    if isinstance(schema, list):
        return [_inlined(each, file) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {keyword: _inlined(value, file) for keyword, value in schema.items() if keyword not in ("$ref", "$defs")}
    if "$ref" not in schema:
        return own
    other, _, pointer = schema["$ref"].partition("#")
    target = _read(other or file)
    for step in pointer.split("/")[1:]:
        target = target[step]
    return {**_inlined(target, other or file), **own}
