"""The metrics that dashboards and alerts name."""

import re
from collections.abc import Iterator
from datetime import timedelta

from reconciler.desired.monitoring.alerts import rule_groups
from reconciler.desired.monitoring.objects import all_dashboards

_NAME = re.compile(r"\b(?:kueue|kfleet|DCGM)_\w+")
# What a histogram is made of.
_PARTS = ("_bucket", "_sum", "_count")


def expressions() -> Iterator[str]:
    for dashboard in all_dashboards():
        yield from (variable.metric for variable in dashboard.variables)
        for row in dashboard.rows:
            for panel in row.panels:
                yield from (query.expression for query in panel.queries)
    for group in rule_groups(timedelta(seconds=90)):
        yield from (rule["expr"] for rule in group["rules"])


def named_metrics(prefix: str) -> set[str]:
    names = {name for expression in expressions() for name in _NAME.findall(expression)}
    return {_whole(name) for name in names if name.startswith(prefix)}


def _whole(name: str) -> str:
    return next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
