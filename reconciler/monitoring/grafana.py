"""Dashboards as Grafana reads them. A dashboard is a few rows of panels; where each lies follows from their order.

No GPU stood by when this was written: the names are those of the exporter's own list of counters, and are all here.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.objects import Manifest

SCHEMA_VERSION = 39
COLUMNS, HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
MEMORY_USED = "DCGM_FI_DEV_FB_USED"
MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LAST_XID = "DCGM_FI_DEV_XID_ERRORS"
DCGM_METRICS = (UTILIZATION, MEMORY_USED, MEMORY_FREE, TEMPERATURE, POWER, LAST_XID)
_GPU_FILTER = '{cluster=~"$cluster", Hostname=~"$node"}'
_BY_GPU = "{{Hostname}} {{gpu}}"
_CLUSTER_FILTER = '{cluster=~"$cluster"}'
_QUEUE_FILTER = 'cluster=~"$cluster", cluster_queue=~"$queue"'
_QUEUE = "cluster, cluster_queue"
_QUOTA = "cluster, cluster_queue, flavor, resource"
_BY_QUEUE = "{{cluster}} {{cluster_queue}}"
_BY_QUOTA = "{{cluster_queue}} {{flavor}} {{resource}}"


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


def gpu_dashboard() -> Dashboard:
    variables = (Variable("cluster", UTILIZATION, "cluster"), Variable("node", UTILIZATION, "Hostname"))
    memory = f"{MEMORY_USED}{_GPU_FILTER} / ({MEMORY_USED}{_GPU_FILTER} + {MEMORY_FREE}{_GPU_FILTER})"
    now = (
        Panel("GPUs", (Query(f"count({UTILIZATION}{_GPU_FILTER})"),), PanelKind.NUMBER),
        Panel("Mean utilization", (Query(f"avg({UTILIZATION}{_GPU_FILTER})"),), PanelKind.NUMBER, "percent"),
        Panel("Idle GPUs", (Query(f"count({UTILIZATION}{_GPU_FILTER} < 5) or vector(0)"),), PanelKind.NUMBER),
        Panel("Power", (Query(f"sum({POWER}{_GPU_FILTER})"),), PanelKind.NUMBER, "watt"),
    )
    use = (
        Panel("Utilization", (Query(f"{UTILIZATION}{_GPU_FILTER}", _BY_GPU),), unit="percent"),
        Panel("Memory in use", (Query(memory, _BY_GPU),), unit="percentunit"),
    )
    state = (
        Panel("Temperature", (Query(f"{TEMPERATURE}{_GPU_FILTER}", _BY_GPU),), unit="celsius"),
        Panel("Power", (Query(f"{POWER}{_GPU_FILTER}", _BY_GPU),), unit="watt"),
        Panel("Last XID error", (Query(f"{LAST_XID}{_GPU_FILTER} > 0", _BY_GPU),)),
    )
    return Dashboard(
        "gpus", "GPUs", variables, (DashboardRow("Now", now), DashboardRow("Use", use), DashboardRow("State", state))
    )


def own_dashboard() -> Dashboard:
    variables = (Variable("cluster", "kfleet_cluster_reachable", "cluster"),)
    return Dashboard("kfleet", "kfleet", variables, (_own_state(), _work(), _clusters(), _capacity()))


def _own_state() -> DashboardRow:
    return DashboardRow(
        "Now",
        (
            Panel(
                "Leaders",
                (Query("sum by (fleet) (kfleet_leader)", "{{fleet}}"),),
                PanelKind.NUMBER,
                help="One per fleet; without a leader no replica writes.",
            ),
            Panel("Clusters reached", (Query(f"sum(kfleet_cluster_reachable{_CLUSTER_FILTER})"),), PanelKind.NUMBER),
            Panel("Refused by a guard", (Query("max(kfleet_refusals)"),), PanelKind.NUMBER),
            Panel("Newest commit not followed", (Query("max(kfleet_revision_refused)"),), PanelKind.NUMBER),
            Panel("Revision", (Query("kfleet_revision_info", "{{revision}}"),), PanelKind.TABLE),
        ),
    )


def _work() -> DashboardRow:
    buckets = "sum by (le) (rate(kfleet_reconcile_seconds_bucket[$__rate_interval]))"
    writes = f"sum by (cluster, action, result) (increase(kfleet_writes_total{_CLUSTER_FILTER}[$__rate_interval]))"
    failures = "sum(increase(kfleet_cycle_failures_total[$__rate_interval]))"
    pushes = "sum by (result) (increase(kfleet_webhooks_total[$__rate_interval]))"
    times = (
        Query(f"histogram_quantile(0.5, {buckets})", "median"),
        Query(f"histogram_quantile(0.99, {buckets})", "p99"),
    )
    return DashboardRow(
        "Work",
        (
            Panel("Time of a cycle", times, unit="s"),
            Panel("Objects written", (Query(writes, "{{cluster}} {{action}} {{result}}"),)),
            Panel(
                "Failed cycles, announced pushes", (Query(failures, "failed cycles"), Query(pushes, "push {{result}}"))
            ),
        ),
    )


def _clusters() -> DashboardRow:
    return DashboardRow(
        "Clusters",
        (
            Panel(
                "Objects, by what the plan says", (Query(f"kfleet_objects{_CLUSTER_FILTER}", "{{cluster}} {{action}}"),)
            ),
            Panel(
                "Fields that differ, by cause",
                (Query(f"kfleet_changed_fields{_CLUSTER_FILTER}", "{{cluster}} {{cause}}"),),
            ),
            Panel("What could not be seen", (Query(f"kfleet_gaps{_CLUSTER_FILTER}", "{{cluster}}"),)),
            Panel("Unhealthy objects", _unwell()),
        ),
    )


def _unwell() -> tuple[Query, ...]:
    preflight_issues = Query(f"kfleet_preflight_issues{_CLUSTER_FILTER}", "{{cluster}} {{check}}")
    return preflight_issues, Query(f"kfleet_unhealthy_objects{_CLUSTER_FILTER}", "{{cluster}} {{kind}}")


def _capacity() -> DashboardRow:
    labels = "{{cluster}} {{flavor}} {{resource}}"
    queue = "{{cluster}} {{queue}} {{flavor}} {{resource}}"
    quota = (
        Query(f"kfleet_quota{_CLUSTER_FILTER}", f"quota {queue}"),
        Query(f"kfleet_usage{_CLUSTER_FILTER}", f"used {queue}"),
    )
    return DashboardRow(
        "Capacity",
        (
            Panel("Capacity that counts", (Query(f"kfleet_capacity{_CLUSTER_FILTER}", labels),)),
            Panel("Quota and use", quota),
            Panel("Age of observations", (Query("kfleet_observation_age_seconds", "{{source}}"),), unit="s"),
        ),
    )


def queue_dashboard() -> Dashboard:
    variables = (
        Variable("cluster", "kueue_cluster_queue_status", "cluster"),
        Variable("queue", "kueue_cluster_queue_status", "cluster_queue"),
    )
    return Dashboard(
        "queues", "Kueue queues", variables, (_queue_state(), _workloads(), _waiting(), _quotas(), _trouble())
    )


def _gauge(metric: str, labels: str, more: str = "") -> str:
    inner = f"{labels}, {more}" if more else labels
    return f"sum by ({labels}) (max by ({inner}) ({metric}{{{_QUEUE_FILTER}}}))"


def _rate(metric: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({metric}{{{_QUEUE_FILTER}}}[$__rate_interval]))"


def _queue_state() -> DashboardRow:
    pending = f"sum(max by ({_QUEUE}, status) (kueue_pending_workloads{{{_QUEUE_FILTER}}}))"
    admitted = f"sum(max by ({_QUEUE}) (kueue_admitted_active_workloads{{{_QUEUE_FILTER}}}))"
    inactive = (
        f'count(max by ({_QUEUE}) (kueue_cluster_queue_status{{{_QUEUE_FILTER}, status="active"}}) == 0) or vector(0)'
    )
    return DashboardRow(
        "Now",
        (
            Panel("Waiting workloads", (Query(pending),), PanelKind.NUMBER),
            Panel("Admitted workloads", (Query(admitted),), PanelKind.NUMBER),
            Panel("Queues that are not active", (Query(inactive),), PanelKind.NUMBER),
        ),
    )


def _workloads() -> DashboardRow:
    pending = _gauge("kueue_pending_workloads", f"{_QUEUE}, status")
    return DashboardRow(
        "Workloads",
        (
            Panel(
                "Waiting",
                (Query(pending, f"{_BY_QUEUE} {{{{status}}}}"),),
                help="Inadmissible workloads wait until something changes; active ones are tried again and again.",
            ),
            Panel("Admitted", (Query(_gauge("kueue_admitted_active_workloads", _QUEUE), _BY_QUEUE),)),
            Panel("With quota", (Query(_gauge("kueue_reserving_active_workloads", _QUEUE), _BY_QUEUE),)),
        ),
    )


def _waiting() -> DashboardRow:
    buckets = (
        f"sum by (le, {_QUEUE}) (rate(kueue_admission_wait_time_seconds_bucket{{{_QUEUE_FILTER}}}[$__rate_interval]))"
    )
    return DashboardRow(
        "Time until admission",
        (
            Panel("Median", (Query(f"histogram_quantile(0.5, {buckets})", _BY_QUEUE),), unit="s"),
            Panel("Nine of ten", (Query(f"histogram_quantile(0.9, {buckets})", _BY_QUEUE),), unit="s"),
            Panel("Admitted per second", (Query(_rate("kueue_admitted_workloads_total", _QUEUE), _BY_QUEUE),)),
        ),
    )


def _quotas() -> DashboardRow:
    usage, nominal = (_gauge(f"kueue_cluster_queue_{name}", _QUOTA) for name in ("resource_usage", "nominal_quota"))
    reserved = _gauge("kueue_cluster_queue_resource_reservation", _QUOTA)
    return DashboardRow(
        "Quota",
        (
            Panel("Used", (Query(usage, _BY_QUOTA),)),
            Panel("Nominal quota", (Query(nominal, _BY_QUOTA),)),
            Panel("Reserved", (Query(reserved, _BY_QUOTA),)),
            Panel(
                "Used, of nominal",
                (Query(f"{usage} / ({nominal} > 0)", _BY_QUOTA),),
                PanelKind.BARS,
                "percentunit",
                "More than 100 % is borrowed from the cohort, or a quota that shrank below its use.",
            ),
        ),
    )


def _trouble() -> DashboardRow:
    evicted = _rate("kueue_evicted_workloads_total", f"{_QUEUE}, reason")
    anywhere = '{cluster=~"$cluster"}[$__rate_interval]'
    by_whom = "cluster, preempting_cluster_queue, reason"
    preempted = f"sum by ({by_whom}) (rate(kueue_preempted_workloads_total{anywhere}))"
    attempts = f"sum by (cluster, result) (rate(kueue_admission_attempts_total{anywhere}))"
    return DashboardRow(
        "Trouble",
        (
            Panel("Evicted per second", (Query(evicted, f"{_BY_QUEUE} {{{{reason}}}}"),)),
            Panel(
                "Preempted per second, by who preempts", (Query(preempted, "{{preempting_cluster_queue}} {{reason}}"),)
            ),
            Panel("Rounds of admission per second", (Query(attempts, "{{cluster}} {{result}}"),)),
        ),
    )
