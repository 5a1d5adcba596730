"""Lint rules as text and as JSON."""

import textwrap
from collections.abc import Mapping
from typing import Any

import click

from reconciler.cli.explain_text import INDENT, LABEL_WIDTH, table, wrapped
from reconciler.errors import KfleetError
from reconciler.lint import RULES, Rule
from reconciler.lint.docs import shortened


def rules_text(name: str, width: int) -> str:
    """The rule of a name; all of them without one."""
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
    for label, example in (("BAD", shortened(rule.bad)), ("GOOD", shortened(rule.good))):
        lines += ["", _bold(label), textwrap.indent(example.strip("\n"), INDENT)] if example else []
    return "\n".join([*lines, "", _bold("SILENCE"), *wrapped(_silence(rule), width, INDENT)])


def _silence(rule: Rule) -> str:
    if not rule.can_be_silenced:
        return "This rule cannot be silenced."
    return f'With a reason, on the document concerned: the annotation kfleet.dev/lint-ignore: "{rule.id}: the reason".'


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _rule_json(rule: Rule) -> Mapping[str, Any]:
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "title": rule.title,
        "why": rule.why,
        "bad": rule.bad,
        "good": rule.good,
        "canBeSilenced": rule.can_be_silenced,
    }
