"""Validates documents with the JSON Schemas in `schemas/`: compiled into functions, fast and without messages.

Decision: a document that this validator accepts is not passed to the jsonschema package, because most documents are
valid and the package takes several times as long. A document that it does not accept is passed on: the package decides
what is wrong and provides the message. So a mistake here can only cost time, as long as no invalid document is
accepted, and a test compares both. An unknown keyword fails at once.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.errors import SpecError
from reconciler.spec.files import Document
from reconciler.spec.formats import check_format

KFLEET_VERSION = "kfleet.dev/v1alpha1"
FILES = {
    "Fleet": "fleet.json",
    "Cluster": "cluster.json",
    "Flavor": "flavor.json",
    "Queue": "queue.json",
    "Tenant": "tenant.json",
    "Overlay": "overlay.json",
    "MasterQueue": "masterqueue.json",
}
_FOR_EDITORS = frozenset(("$schema", "$id", "$defs", "$ref", "title", "description"))
Accepts = Callable[[Any], bool]
Measured = type[int | str | list[Any] | dict[str, Any]]
Schema = Mapping[str, Any]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "object": (dict,),
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_SILENT = frozenset(("errorMessage", "patternErrorMessage", "then", "else"))


def check_schema(document: Document) -> list[SpecError]:
    """Return all violations of the schema of the document's kind."""
    if _accepts(document.kind)(document.value):
        return []
    # Imported for invalid documents only: the package takes a sixth of a second to load.
    from reconciler.spec.schema_errors import find_violations  # noqa: PLC0415

    return find_violations(load_schema(document.kind), document)


def schema_folder() -> Path:
    """Return `schemas/` of a checkout, or the copy in an installed package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "schemas"
    return installed if installed.is_dir() else package.parent / "schemas"


@cache
def load_schema(kind: str) -> Mapping[str, Any]:
    """Return a schema with every reference resolved, and without the texts that are for editors."""
    schema: Mapping[str, Any] = _inlined(read_schema(FILES[kind]), FILES[kind])
    return schema


@cache
def _accepts(kind: str) -> Accepts:
    return compile_schema(load_schema(kind))


@cache
def read_schema(name: str) -> Any:
    """Return the content of a file of schemas/."""
    return json.loads((schema_folder() / name).read_text(encoding="utf-8"))


def _inlined(schema: Any, name: str) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, name) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = dict(_kept(schema, name))
    if "$ref" not in schema:
        return own
    file, _, pointer = schema["$ref"].partition("#")
    target = read_schema(file or name)
    for step in pointer.split("/")[1:]:
        target = target[step]
    return {**_inlined(target, file or name), **own}


def _kept(schema: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    for keyword, value in schema.items():
        if keyword in ("properties", "dependentSchemas"):
            yield keyword, {key: _inlined(each, name) for key, each in value.items()}
        elif keyword in ("const", "enum"):
            yield keyword, value
        elif keyword not in _FOR_EDITORS:
            yield keyword, _inlined(value, name)


def compile_schema(schema: Schema) -> Accepts:
    """Compile a schema without references."""
    checks = [_KEYWORDS[keyword](schema) for keyword in schema if keyword not in _SILENT]
    if len(checks) == 1:
        return checks[0]
    return lambda value: all(check(value) for check in checks)


def _type(schema: Schema) -> Accepts:
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    types = frozenset(each for name in names for each in _TYPES[name])
    return lambda value: type(value) in types


def _enum(schema: Schema) -> Accepts:
    allowed = schema["enum"]
    return lambda value: isinstance(value, (str, bool)) and value in allowed


def _const(schema: Schema) -> Accepts:
    only = schema["const"]
    return lambda value: type(value) is type(only) and value == only


def _properties(schema: Schema) -> Accepts:
    known = {key: compile_schema(each) for key, each in schema["properties"].items()}

    def accepts(value: Any) -> bool:
        return not isinstance(value, dict) or all(known[key](each) for key, each in value.items() if key in known)

    return accepts


def _additional(schema: Schema) -> Accepts:
    known, rest = schema.get("properties", {}).keys(), schema["additionalProperties"]
    if rest is False:
        return lambda value: not isinstance(value, dict) or value.keys() <= known
    check = compile_schema(rest)
    return lambda value: (
        not isinstance(value, dict) or all(check(each) for key, each in value.items() if key not in known)
    )


def _required(schema: Schema) -> Accepts:
    keys = frozenset(schema["required"])
    return lambda value: not isinstance(value, dict) or keys <= value.keys()


def _property_names(schema: Schema) -> Accepts:
    check = compile_schema(schema["propertyNames"])
    return lambda value: not isinstance(value, dict) or all(map(check, value))


def _items(schema: Schema) -> Accepts:
    check = compile_schema(schema["items"])
    return lambda value: not isinstance(value, list) or all(map(check, value))


def _unique(_: Schema) -> Accepts:
    return lambda value: not isinstance(value, list) or len(set(map(repr, value))) == len(value)


def _pattern(schema: Schema) -> Accepts:
    search = re.compile(schema["pattern"]).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _format(schema: Schema) -> Accepts:
    name = schema["format"]

    def accepts(value: Any) -> bool:
        try:
            check_format(name, value)
        except ValueError:
            return False
        return True

    return accepts


def _bounded(keyword: str, measured: Measured, *, is_least: bool) -> Callable[[Schema], Accepts]:
    def compile_bound(schema: Schema) -> Accepts:
        bound: int = schema[keyword]

        def accepts(value: Any) -> bool:
            if not isinstance(value, measured):
                return True
            size = value if isinstance(value, int) else len(value)
            return size >= bound if is_least else size <= bound

        return accepts

    return compile_bound


def _all_of(schema: Schema) -> Accepts:
    checks = [compile_schema(each) for each in schema["allOf"]]
    return lambda value: all(check(value) for check in checks)


def _any_of(schema: Schema) -> Accepts:
    checks = [compile_schema(each) for each in schema["anyOf"]]
    return lambda value: any(check(value) for check in checks)


def _one_of(schema: Schema) -> Accepts:
    checks = [compile_schema(each) for each in schema["oneOf"]]
    return lambda value: sum(check(value) for check in checks) == 1


def _not(schema: Schema) -> Accepts:
    check = compile_schema(schema["not"])
    return lambda value: not check(value)


def _if(schema: Schema) -> Accepts:
    condition = compile_schema(schema["if"])
    then, otherwise = compile_schema(schema.get("then", {})), compile_schema(schema.get("else", {}))
    return lambda value: then(value) if condition(value) else otherwise(value)


def _dependent(schema: Schema) -> Accepts:
    checks = {key: compile_schema(each) for key, each in schema["dependentSchemas"].items()}
    return lambda value: (
        not isinstance(value, dict) or all(check(value) for key, check in checks.items() if key in value)
    )


_KEYWORDS: Mapping[str, Callable[[Schema], Accepts]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "propertyNames": _property_names,
    "items": _items,
    "uniqueItems": _unique,
    "pattern": _pattern,
    "format": _format,
    "minimum": _bounded("minimum", int, is_least=True),
    "maximum": _bounded("maximum", int, is_least=False),
    "minLength": _bounded("minLength", str, is_least=True),
    "maxLength": _bounded("maxLength", str, is_least=False),
    "minItems": _bounded("minItems", list, is_least=True),
    "maxItems": _bounded("maxItems", list, is_least=False),
    "minProperties": _bounded("minProperties", dict, is_least=True),
    "maxProperties": _bounded("maxProperties", dict, is_least=False),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "dependentSchemas": _dependent,
}
