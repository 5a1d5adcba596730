"""Validates documents with the JSON Schemas in `schemas/`."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from reconciler.errors import SpecError
from reconciler.spec.document import Document
from reconciler.spec.schema_compiled import Accepts, compile_schema

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
