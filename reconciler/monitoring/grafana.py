"""Dashboards as Grafana reads them. A dashboard is a few rows of panels; where each lies follows from their order."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.objects import Manifest

SCHEMA_VERSION = 39
COLUMNS, HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class PanelKind(StrEnum):
    LINES = "timeseries"
    NUMBER = "stat"
    BARS = "bargauge"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    """One line per series; `legend` names it by its labels, as in `{{queue}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    kind: PanelKind = PanelKind.LINES
    unit: str = "short"
    help: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice above the dashboard, by the values that a label of a metric has."""

    name: str
    metric: str
    label: str


@dataclass(frozen=True, slots=True)
class DashboardRow:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    name: str
    title: str
    variables: tuple[Variable, ...]
    rows: tuple[DashboardRow, ...]


def dashboard_json(fleet: str, dashboard: Dashboard) -> Manifest:
    return {
        "uid": _uid(fleet, dashboard.name),
        "title": f"{dashboard.title} ({fleet})",
        "tags": ["kfleet", fleet],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source_choice(), *(_choice(variable) for variable in dashboard.variables)]},
        "panels": list(_placed(dashboard.rows)),
    }


def _uid(fleet: str, name: str) -> str:
    """Grafana takes 40 characters; a fleet's name may be longer."""
    return f"kfleet-{name}-{hashlib.sha256(fleet.encode()).hexdigest()[:12]}"


def _source_choice() -> Manifest:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _choice(variable: Variable) -> Manifest:
    return {
        "name": variable.name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({variable.metric}, {variable.label})", "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # Also where no series has the label: a Prometheus that watches one cluster does not name it.
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _placed(rows: Sequence[DashboardRow]) -> Iterator[Manifest]:
    number, top = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        top += 1
        width = COLUMNS // len(row.panels)
        for position, panel in enumerate(row.panels):
            number += 1
            yield _panel(number, panel, {"x": position * width, "y": top, "w": width, "h": HEIGHT})
        top += HEIGHT


def _panel(number: int, panel: Panel, place: Manifest) -> Manifest:
    is_line = panel.kind is PanelKind.LINES
    drawing: dict[str, Any] = {"fillOpacity": 10, "showPoints": "never"} if is_line else {}
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": drawing}, "overrides": []},
        "options": {"legend": {"displayMode": "table", "calcs": ["lastNotNull", "max"]}} if is_line else {},
        "targets": [_target(query, chr(ord("A") + index), panel.kind) for index, query in enumerate(panel.queries)],
    }


def _target(query: Query, letter: str, kind: PanelKind) -> Manifest:
    is_line = kind is PanelKind.LINES
    return {
        "refId": letter,
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "range": is_line,
        "instant": not is_line,
        "format": "table" if kind is PanelKind.TABLE else "time_series",
    }
