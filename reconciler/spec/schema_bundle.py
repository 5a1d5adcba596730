"""The schema for editors: one file without references to others, so that it works offline and by its address.

Decision: a document is checked by the schema of its own kind, chosen with if and then. With oneOf an editor reports a
mistyped field as a failure of all kinds, at the whole document.
"""

import json
from collections.abc import Mapping
from typing import Any

from reconciler.spec.schema import FILES, KFLEET_VERSION, read_schema

ADDRESS = "https://kfleet.dev/schemas/kfleet.json"
_PARTS = {**FILES, "common": "common.json"}
_NAMES = {file: name for name, file in _PARTS.items()}


def bundled_schema() -> dict[str, Any]:
    """Return the content of schemas/kfleet.json."""
    own = [kind for kind in FILES if kind != "MasterQueue"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        "title": "kfleet",
        "description": "Any document of a fleet; apiVersion and kind say which. Native objects are accepted.",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "allOf": [
            {
                "if": _has("apiVersion", {"pattern": f"^{KFLEET_VERSION.partition('/')[0]}/"}),
                "then": {"properties": {"kind": {"enum": own}}, "allOf": [_case(kind) for kind in own]},
            },
            {"if": _has("apiVersion", {"pattern": "^vk\\.io/"}), "then": _case("MasterQueue")},
        ],
        "$defs": {kind: _local(read_schema(name), kind) for kind, name in _PARTS.items()},
    }


def kind_schema(kind: str) -> dict[str, Any]:
    """Return the schema of one kind, with the files that it refers to as definitions."""
    own: dict[str, Any] = _local(read_schema(FILES[kind]), kind)
    found, waiting = {}, [kind]
    while waiting:
        name = waiting.pop()
        found[name] = _local(read_schema(_PARTS[name]), name)
        waiting += {other for other in _PARTS if f'"#/$defs/{other}/' in json.dumps(found[name])} - set(found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **{key: value for key, value in own.items() if key != "$defs"},
        "$defs": found,
    }


def schema_text(kind: str = "") -> str:
    """Return the schema of all documents, or of one kind, as a file has it."""
    return json.dumps(kind_schema(kind) if kind else bundled_schema(), indent=2) + "\n"


def _case(kind: str) -> dict[str, Any]:
    return {"if": _has("kind", {"const": kind}), "then": {"$ref": f"#/$defs/{kind}"}}


def _has(key: str, condition: Mapping[str, Any]) -> dict[str, Any]:
    return {"required": [key], "properties": {key: condition}}


def _local(schema: Any, kind: str) -> Any:
    """Return a schema whose references lead to its copy in the bundle."""
    if isinstance(schema, list):
        return [_local(each, kind) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _local(value, kind) for key, value in schema.items() if key not in {"$schema", "$id"}}
    if isinstance(reference := schema.get("$ref"), str):
        file, _, pointer = reference.partition("#")
        kept["$ref"] = f"#/$defs/{_NAMES.get(file, kind)}{pointer}"
    return kept
