"""Label selectors, as Kubernetes has them: a manifest, a line of text, and a question to a set of labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.objects import Manifest

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.operator is Operator.IN:
            return labels.get(self.key) in self.values
        if self.operator is Operator.NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) is (self.operator is Operator.EXISTS)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; without any it matches everything."""

    labels: Mapping[str, str]
    expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels.items()) and all(
            requirement.matches(labels) for requirement in self.expressions
        )

    def manifest(self) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if self.labels:
            written["matchLabels"] = dict(self.labels)
        if self.expressions:
            written["matchExpressions"] = [_expression(requirement) for requirement in self.expressions]
        return written


def read_selector(manifest: Manifest) -> LabelSelector:
    """Read `matchLabels` and `matchExpressions` that a schema has checked."""
    return LabelSelector(
        labels=manifest.get("matchLabels") or {},
        expressions=tuple(
            Requirement(each["key"], Operator(each["operator"]), tuple(each.get("values") or ()))
            for each in manifest.get("matchExpressions") or ()
        ),
    )


def parse_selector(text: str) -> LabelSelector:
    """Read the form of the command line: `site=cnaf,gpu in (a100,h100),!spot`."""
    parts = [part.strip() for part in _COMMA_OUTSIDE_PARENTHESES.split(text)]
    return LabelSelector({}, tuple(_parse_requirement(part, text) for part in parts))


def _parse_requirement(part: str, text: str) -> Requirement:
    if match := _SET.fullmatch(part):
        values = tuple(value.strip() for value in match[3].split(","))
        if all(re.fullmatch(_VALUE, value) for value in values):
            return Requirement(match[1], Operator.IN if match[2] == "in" else Operator.NOT_IN, values)
    if match := _EQUALITY.fullmatch(part):
        return Requirement(match[1], Operator.NOT_IN if match[2] == "!=" else Operator.IN, (match[3],))
    if match := _EXISTS.fullmatch(part):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS)
    raise ValueError(
        f"{text!r} is no label selector: cannot read {part!r}; "
        "write site=cnaf, site!=cnaf, site in (cnaf, lyon), site notin (lyon), site or !site"
    )


def _expression(requirement: Requirement) -> dict[str, Any]:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": str(requirement.operator), **values}
