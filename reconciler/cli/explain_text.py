"""Kinds and fields as text and as JSON."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from reconciler.cli.explain_fields import SPEC, Field, api_version, fields_of

INDENT = "  "
LABEL_WIDTH = 10


def kinds_text(kinds: tuple[Field, ...], width: int) -> str:
    rows = [(kind.kind.lower(), kind.description.text) for kind in kinds]
    lines = [click.style("KINDS", bold=True), *table(rows, width)]
    examples = ("queue", "queue.quota.borrowingLimit", "tenant --recursive", "KF012", "rules")
    return "\n".join([*lines, "", *(f"kfleet explain {example}" for example in examples)])


def field_text(field: Field, width: int, *, is_recursive: bool) -> str:
    """All that is known of a field, in the order in which `kubectl explain` says it."""
    facts = [(label, value) for label, value in _facts(field) if value]
    lines = [f"{click.style(label.ljust(LABEL_WIDTH), bold=True)}{value}" for label, value in facts]
    if field.description.text:
        lines += ["", click.style("DESCRIPTION", bold=True), *wrapped(field.description.text, width, INDENT)]
    inner = list(_tree(field, INDENT) if is_recursive else _fields(field, width))
    return "\n".join([*lines, *(["", click.style("FIELDS", bold=True), *inner] if inner else ())])


def field_json(field: Field, *, is_recursive: bool) -> Mapping[str, Any]:
    inner = fields_of(field)
    own = {"kind": field.kind, "apiVersion": api_version(field.kind), **_json_facts(field)}
    if is_recursive:
        return own | {"fields": [_json_tree(each) for each in inner]}
    return own | {"fields": [_json_facts(each) for each in inner]}


def _facts(field: Field) -> Iterator[tuple[str, str]]:
    yield "KIND", f"{field.kind} ({api_version(field.kind)})"
    yield "FIELD", ".".join(field.path) and f"{'.'.join(field.path)} {_signature(field)}"
    yield "DEFAULT", field.description.default
    yield "ALLOWED", ", ".join(field.allowed)
    yield "LIMITS", f"\n{' ' * LABEL_WIDTH}".join(field.limits)
    yield "EXAMPLE", field.description.example


def _signature(field: Field) -> str:
    if field.is_required:
        return f"<{field.type}> -required-"
    return f"<{field.type}>" + (f" -required when {field.required_when}-" if field.required_when else "")


def _fields(field: Field, width: int, indent: str = INDENT) -> Iterator[str]:
    """The fields with a sentence each; those of a document's spec at once, for they are what is looked for."""
    for each in fields_of(field):
        yield _headline(each, indent)
        yield from wrapped(each.description.first_sentence, width, indent + INDENT * 2)
        if each.path == (SPEC,):
            yield from _fields(each, width, indent + INDENT)


def _headline(field: Field, indent: str) -> str:
    allowed = f" {' | '.join(field.allowed)}" if field.allowed else ""
    return f"{indent}{click.style(field.name, bold=True)} {_signature(field)}{allowed}"


def _tree(field: Field, indent: str) -> Iterator[str]:
    for each in fields_of(field):
        yield _headline(each, indent)
        yield from _tree(each, indent + INDENT)


def _json_tree(field: Field) -> Mapping[str, Any]:
    return {**_json_facts(field), "fields": [_json_tree(each) for each in fields_of(field)]}


def _json_facts(field: Field) -> dict[str, Any]:
    return {
        "field": ".".join(field.path),
        "type": field.type,
        "required": field.is_required,
        "requiredWhen": field.required_when,
        "default": field.description.default,
        "example": field.description.example,
        "allowed": list(field.allowed),
        "limits": list(field.limits),
        "description": field.description.text,
    }


def table(rows: list[tuple[str, str]], width: int, indent: str = INDENT) -> Iterator[str]:
    first = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        lines = wrapped(text, width, " " * (len(indent) + first))
        yield f"{indent}{click.style(name, bold=True)}{lines[0][len(indent) + len(name) :]}"
        yield from lines[1:]


def wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
