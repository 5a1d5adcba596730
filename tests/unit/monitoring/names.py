"""The metrics that dashboards and alerts name, and the labels that they expect of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from reconciler.monitoring.render import all_dashboards, rule_groups

_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_IN_TEXT = re.compile(r"\$labels\.(\w+)")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_BY = re.compile(r"\bby \(([^()]*)\) $")
_NAME = re.compile(r"\b(?:kueue|kfleet|DCGM)_\w+")
# What a histogram is made of.
_PARTS = ("_bucket", "_sum", "_count")


@dataclass(frozen=True)
class Asked:
    """A question to Prometheus, and the labels by which its answers are told."""

    expression: str
    told_by: frozenset[str]


def expressions() -> Iterator[str]:
    return (one.expression for one in questions())


def questions() -> Iterator[Asked]:
    for dashboard in all_dashboards():
        yield from (Asked(variable.metric, frozenset({variable.label})) for variable in dashboard.variables)
        for row in dashboard.rows:
            for panel in row.panels:
                yield from (Asked(one.expression, frozenset(_LEGEND.findall(one.legend))) for one in panel.queries)
    for group in rule_groups("science", timedelta(seconds=90)):
        for rule in group["rules"]:
            yield Asked(rule["expr"], frozenset(_IN_TEXT.findall(str(rule["annotations"]))))


def named_metrics(prefix: str) -> set[str]:
    names = {name for expression in expressions() for name in _NAME.findall(expression)}
    return {_whole(name) for name in names if name.startswith(prefix)}


def named_labels(prefix: str) -> dict[str, set[str]]:
    """By metric: what is asked of its labels, grouped by around it, or written of it. `le` is that of a histogram."""
    found: dict[str, set[str]] = {}
    for asked in questions():
        for match in _NAME.finditer(asked.expression):
            own = _MATCHER.findall(_braces(asked.expression[match.end() :]))
            labels = {*own, *_grouped_by(asked.expression[: match.start()]), *asked.told_by} - {"le"}
            if match[0].startswith(prefix):
                found.setdefault(_whole(match[0]), set()).update(labels)
    return found


def _braces(text: str) -> str:
    return text[: text.index("}")] if text.startswith("{") else ""


def _grouped_by(before: str) -> set[str]:
    """The labels of every `by (…)` whose brackets are still open."""
    stack: list[set[str]] = []
    for place, letter in enumerate(before):
        if letter == "(":
            by = _BY.search(before[:place])
            stack.append({one.strip() for one in by[1].split(",")} if by else set())
        elif letter == ")":
            stack.pop()
    return set().union(*stack)


def shown_labels(text: str) -> dict[str, set[str]]:
    """By metric: the labels of its samples. A metric without any sample is left out."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(_whole(sample.name), set()).update(sample.labels)
    return found


def _whole(name: str) -> str:
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
