"""Kinds and fields as text, as JSON and as the reference page."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from reconciler.cli.explain_fields import SPEC, Field, api_version, fields_of, list_kinds
from reconciler.errors import KfleetError
from reconciler.lint.docs import example_of, shortened
from reconciler.lint.model import Rule
from reconciler.lint.run import RULES

INDENT = "  "
LABEL_WIDTH = 10
HEAD = """\
# Fleet reference

This page is generated from the schemas in [`schemas/`](../schemas). `kfleet validate` uses the same schemas, and
editors can use them too (`# yaml-language-server: $schema=…`). `kfleet explain queue.quota` prints the same text.

A `quantity` is a Kubernetes quantity (`8`, `500m`, `64Gi`), a `percent` is a share of the flavor's capacity (`60%`),
and a `duration` is a number with a unit (`90s`, `15m`, `240h`). **Bold** fields are required. `name` and the other
fields of `metadata` are those of Kubernetes.
"""


def kinds_text(kinds: tuple[Field, ...], width: int) -> str:
    rows = [(kind.kind.lower(), kind.description.text) for kind in kinds]
    lines = [click.style("KINDS", bold=True), *table(rows, width)]
    examples = ("queue", "queue.quota.borrowingLimit", "tenant --recursive", "KF012", "rules")
    return "\n".join([*lines, "", *(f"kfleet explain {example}" for example in examples)])


def field_text(field: Field, width: int, *, is_recursive: bool) -> str:
    """Print everything known about a field, in the order of `kubectl explain`."""
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
    """List the fields with one sentence each; for a document, those of its spec directly: users want these."""
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


def rules_text(name: str, width: int) -> str:
    """Explain one rule, or list all rules if the name is empty."""
    if name:
        return _rule_text(_find_rule(name), width)
    return "\n".join(table([(f"{rule.id} {rule.severity}", rule.title) for rule in RULES], width, indent=""))


def rules_json(name: str) -> Mapping[str, Any]:
    return _rule_json(_find_rule(name)) if name else {"rules": [_rule_json(rule) for rule in RULES]}


def _find_rule(name: str) -> Rule:
    for rule in RULES:
        if rule.id == name.upper():
            return rule
    raise KfleetError(f"{name}: no such lint rule; kfleet explain rules lists them")


def _rule_text(rule: Rule, width: int) -> str:
    lines = [f"{_bold('RULE'.ljust(LABEL_WIDTH))}{rule.id}", f"{_bold('SEVERITY'.ljust(LABEL_WIDTH))}{rule.severity}"]
    for label, text in (("TITLE", rule.title), ("WHY", rule.why)):
        lines += ["", _bold(label), *wrapped(text, width, INDENT)]
    for label, example in (("BAD", shortened(example_of(rule.id).bad)), ("GOOD", shortened(example_of(rule.id).good))):
        lines += ["", _bold(label), textwrap.indent(example.strip("\n"), INDENT)] if example else []
    return "\n".join([*lines, "", _bold("SILENCE"), *wrapped(_silence(rule), width, INDENT)])


def _silence(rule: Rule) -> str:
    if not rule.can_be_silenced:
        return "This rule cannot be silenced."
    return f'With a reason, on the document itself: the annotation kfleet.dev/lint-ignore: "{rule.id}: the reason".'


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _rule_json(rule: Rule) -> Mapping[str, Any]:
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "title": rule.title,
        "why": rule.why,
        "bad": example_of(rule.id).bad,
        "good": example_of(rule.id).good,
        "canBeSilenced": rule.can_be_silenced,
    }


def reference_markdown() -> str:
    return "".join((HEAD, *(line for kind in list_kinds() for line in _kind_section(kind))))


def _kind_section(kind: Field) -> Iterator[str]:
    yield f"\n## {kind.kind}\n\n`{api_version(kind.kind)}`. {kind.description.text}\n\n"
    yield "| field | type | description |\n|---|---|---|\n"
    for outer in fields_of(kind):
        if outer.name not in {"apiVersion", "kind", "metadata"}:
            yield from _rows(outer)


def _rows(field: Field) -> Iterator[str]:
    if field.path != (SPEC,):
        yield f"| {_name(field)} | `{_cell(field.type)}` | {_cell(_meaning(field))} |\n"
    for inner in fields_of(field):
        yield from _rows(inner)


def _name(field: Field) -> str:
    path = ".".join(field.path[1:] if field.path[0] == SPEC else field.path)
    return f"**`{path}`**" if field.is_required else f"`{path}`"


def _meaning(field: Field) -> str:
    said = [field.description.text]
    said += [f"Required if {field.required_when}."] if field.required_when else []
    said += [f"One of: {', '.join(f'`{value}`' for value in field.allowed)}."] if field.allowed else []
    said += [f"Limits: {', '.join(field.limits)}."] if field.limits else []
    said += [f"Default: `{field.description.default}`."] if field.description.default else []
    said += [f"Example: `{field.description.example}`."] if field.description.example else []
    return " ".join(said)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
