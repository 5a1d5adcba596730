"""Schema violations in words: the field, the wrong value, and what is allowed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from reconciler.errors import SpecError
from reconciler.spec.files import Document, FieldPath
from reconciler.spec.formats import FORMATS, check_format
from reconciler.text import plain, quote_value, suggest

MOST_PER_DOCUMENT = 100

_NOUNS = {
    "string": "a string",
    "object": "a mapping",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}
_UNITS = {"kfleet-duration": "s", "percent": "%"}
_WEIGHTS = {"type": 0, "required": 1, "additionalProperties": 1}


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    path: FieldPath
    keyword: str
    wrong: Any
    limit: Any
    schema: Mapping[str, Any]
    message: str
    is_about_a_key: bool


def find_violations(schema: Mapping[str, Any], document: Document) -> list[SpecError]:
    """Return one error per field: further violations are irrelevant if the type of a value is wrong."""
    validator = Draft202012Validator(schema, format_checker=_format_checker())
    violations = [violation for error in validator.iter_errors(document.value) for violation in _leaves(error)]
    told: dict[FieldPath, str] = {}
    for violation in sorted(violations, key=lambda violation: _WEIGHTS.get(violation.keyword, 2)):
        for path, problem in _problems(violation):
            told.setdefault(path, problem)
    errors = [document.error(path, problem) for path, problem in list(told.items())[:MOST_PER_DOCUMENT]]
    if len(told) > MOST_PER_DOCUMENT:
        errors.append(document.error((), f"{len(told) - MOST_PER_DOCUMENT} more problems in this document"))
    return errors


def _format_checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name in FORMATS:
        checker.checks(name, raises=ValueError)(_checks(name))
    return checker


def _checks(name: str) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        check_format(name, value)
        return True

    return check


def _leaves(error: ValidationError) -> Iterator[SchemaViolation]:
    # The branches of if/then/else contain the real problem; those of oneOf are alternatives, and the schema has its own
    # message about which to choose.
    if error.validator == "if" and error.context:
        for each in error.context:
            yield from _leaves(each)
        return
    yield SchemaViolation(
        path=tuple(error.absolute_path),
        keyword=str(error.validator),
        wrong=error.instance,
        limit=error.validator_value,
        schema=cast("Mapping[str, Any]", error.schema),
        message=str(error.cause or error.message),
        is_about_a_key="propertyNames" in error.absolute_schema_path,
    )


def _problems(violation: SchemaViolation) -> list[tuple[FieldPath, str]]:
    path, wrong = violation.path, violation.wrong
    if violation.is_about_a_key:
        return [((*path, wrong), _advice(violation))]
    if violation.keyword == "required":
        return [((*path, key), "is required") for key in violation.limit if key not in wrong]
    if violation.keyword == "additionalProperties":
        known = sorted(violation.schema.get("properties", ()))
        allowed = ", ".join(known)
        unknown = [key for key in wrong if key not in known]
        return [((*path, key), f"unknown field{suggest(key, known)}; allowed: {allowed}") for key in unknown]
    return [(path, _WORDINGS.get(violation.keyword, _advice)(violation))]


def _advice(violation: SchemaViolation) -> str:
    """Return the schema's own message for this violation."""
    key = "patternErrorMessage" if violation.keyword == "pattern" else "errorMessage"
    value = "" if isinstance(violation.wrong, dict | list) else f"{quote_value(violation.wrong)} is not allowed: "
    return f"{value}{violation.schema.get(key, violation.message)}"


def _type(violation: SchemaViolation) -> str:
    allowed = [violation.limit] if isinstance(violation.limit, str) else violation.limit
    nouns = " or ".join(_NOUNS[each] for each in allowed)
    return f"{quote_value(violation.wrong)} is not {nouns}{_way_out(violation, allowed)}"


def _way_out(violation: SchemaViolation, allowed: list[str]) -> str:
    """Return how to write the value instead, if that is clear."""
    wrong = violation.wrong
    if "string" in allowed and isinstance(wrong, bool | int | float):
        unit = "" if isinstance(wrong, bool) else _UNITS.get(violation.schema.get("format", ""), "")
        return f": write {wrong}{unit}" if unit else ": put it in quotes"
    if isinstance(wrong, str) and {"integer", "number"} & {*allowed} and wrong.strip().rstrip("%").isdigit():
        return f": write {wrong.strip().rstrip('%')}"
    if isinstance(wrong, str) and "boolean" in allowed and wrong.lower() in {"true", "false"}:
        return f": write {wrong.lower()} without quotes"
    return ""


def _choice(violation: SchemaViolation) -> str:
    limit, wrong = violation.limit, violation.wrong
    allowed = [plain(each) for each in (limit if violation.keyword == "enum" else [limit])]
    hint = suggest(wrong, allowed) if isinstance(wrong, str) else ""
    if isinstance(wrong, str) and any(isinstance(each, bool) and plain(each) == wrong for each in _listed(limit)):
        hint = f": write {wrong} without quotes"
    return f"{quote_value(wrong)} is not allowed{hint}; allowed: {', '.join(allowed)}"


def _listed(limit: Any) -> list[Any]:
    return limit if isinstance(limit, list) else [limit]


def _too_small(violation: SchemaViolation) -> str:
    if isinstance(violation.wrong, int | float):
        return f"{quote_value(violation.wrong)} is too small: at least {violation.limit}"
    return "must not be empty"


def _too_large(violation: SchemaViolation) -> str:
    if isinstance(violation.wrong, int | float):
        return f"{quote_value(violation.wrong)} is too large: at most {violation.limit}"
    if "errorMessage" in violation.schema:
        return _advice(violation)
    unit = "characters" if isinstance(violation.wrong, str) else "entries"
    return f"has {len(violation.wrong)} {unit}: at most {violation.limit}"


_WORDINGS: Mapping[str, Callable[[SchemaViolation], str]] = {
    "type": _type,
    "enum": _choice,
    "const": _choice,
    "format": lambda violation: violation.message,
    "minimum": _too_small,
    "minLength": _too_small,
    "minItems": _too_small,
    "minProperties": _too_small,
    "maximum": _too_large,
    "maxLength": _too_large,
    "maxItems": _too_large,
    "maxProperties": _too_large,
    "uniqueItems": lambda _: "contains the same entry twice",
}
