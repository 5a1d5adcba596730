"""The constraints of a JSON Schema, in words."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

BRANCHES = ("allOf", "anyOf", "oneOf")

_TYPES_OF_FORMATS = {
    "quantity": "quantity",
    "amount": "quantity|percent",
    "percent": "percent",
    "kfleet-duration": "duration",
    "pool-pattern": "pattern",
}
_RANGES = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", "character"),
    ("minItems", "maxItems", "entry"),
    ("minProperties", "maxProperties", "key"),
)
_PLURALS = {"": "", "entry": "entries"}
_PARTS = (("propertyNames", "keys"), ("additionalProperties", "values"), ("items", "entries"))
# Schemas write these two at the end of a description, because editors show no other text.
_NOTE = re.compile(r"\s*\b(Default|Example): (.+?)\.(?=\s|$)")
_SENTENCE = re.compile(r".+?\.(?=\s|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Description:
    """A description, with its notes on default and example split off."""

    text: str
    default: str
    example: str

    @property
    def first_sentence(self) -> str:
        found = _SENTENCE.match(self.text)
        return found.group() if found else self.text


def describe(schema: Schema) -> Description:
    written = str(schema.get("description", ""))
    notes = dict(_NOTE.findall(written))
    default = value_text(schema["default"]) if "default" in schema else notes.get("Default", "")
    return Description(_NOTE.sub("", written).strip(), default, notes.get("Example", ""))


def type_of(schema: Schema) -> str:
    """Return the type in the notation of `kubectl explain`: string, []object, map[string]quantity."""
    if "format" in schema:
        return _TYPES_OF_FORMATS.get(schema["format"], str(schema["format"]))
    return "|".join(_structure(name, schema) for name in _type_names(schema)) or "any"


def _type_names(schema: Schema) -> list[str]:
    if "type" in schema:
        written = schema["type"]
        return [written] if isinstance(written, str) else list(written)
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if values:
        return list(dict.fromkeys("boolean" if isinstance(value, bool) else "string" for value in values))
    branches = [branch for keyword in BRANCHES for branch in schema.get(keyword, ())]
    return list(dict.fromkeys(name for branch in branches for name in _type_names(branch)))


def _structure(name: str, schema: Schema) -> str:
    if name == "array":
        inner = type_of(schema.get("items", {}))
        return f"[]({inner})" if "|" in inner else f"[]{inner}"
    values = schema.get("additionalProperties")
    if name == "object" and isinstance(values, dict) and "properties" not in schema:
        return f"map[string]{type_of(values)}"
    return name


def allowed_of(schema: Schema) -> tuple[str, ...]:
    """Return the closed list of values, of the field itself or of each item of a list."""
    if "const" in schema:
        return (value_text(schema["const"]),)
    if "enum" in schema:
        return tuple(value_text(value) for value in schema["enum"])
    return allowed_of(schema["items"]) if "items" in schema else ()


def limits_of(schema: Schema) -> tuple[str, ...]:
    """Return every bound and rule once."""
    return tuple(dict.fromkeys(_limits(schema)))


def _limits(schema: Schema) -> Iterator[str]:
    for low, high, noun in _RANGES:
        if low in schema or high in schema:
            yield _range(schema.get(low), schema.get(high), noun)
    if schema.get("uniqueItems"):
        yield "items are unique"
    if "pattern" in schema:
        yield schema.get("patternErrorMessage", f"matches {schema['pattern']}")
    for keyword, noun in _PARTS:
        part = schema.get(keyword)
        if isinstance(part, dict):
            yield from _rules(part) if "properties" in part else (f"{noun}: {limit}" for limit in _limits(part))
    yield from _rules(schema)


def _range(low: int | None, high: int | None, noun: str) -> str:
    if (low, high, noun) == (1, None, "character"):
        return "not empty"
    bound = high if high is not None else low
    counted = noun if bound == 1 else _PLURALS.get(noun, f"{noun}s")
    if low is not None and high is not None:
        return f"{low} to {high} {counted}".rstrip()
    return f"{'at least' if high is None else 'at most'} {bound} {counted}".rstrip()


def _rules(schema: Schema) -> Iterator[str]:
    """Return the schema's own messages about fields that depend on each other."""
    places = (schema, schema.get("then"), schema.get("else"), *schema.get("dependentSchemas", {}).values())
    yield from (place["errorMessage"] for place in places if isinstance(place, dict) and "errorMessage" in place)


def conditions_of(schema: Schema) -> Mapping[str, str]:
    """Return the fields that are required only under a condition, each with its condition: `source is static`."""
    found: dict[str, str] = {}
    for rule in (schema, *schema.get("allOf", ())):
        if "if" in rule:
            words = " and ".join(_condition(*item) for item in rule["if"].get("properties", {}).items())
            found |= dict.fromkeys(rule.get("then", {}).get("required", ()), words)
    return found


def _condition(name: str, schema: Schema) -> str:
    *others, last = allowed_of(schema)
    return f"{name} is {', '.join(others)} or {last}" if others else f"{name} is {last}"


def value_text(value: Any) -> str:
    """Return a value as it is written in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
