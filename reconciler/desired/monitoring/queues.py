"""The dashboard of Kueue's queues and quotas, by metrics that every Kueue since 0.16 has.

A Kueue with several replicas shows its gauges on each of them, so that they are taken once (`max`) before they are
added up. Quotas are shown where Kueue's Configuration says `metrics.enableClusterQueueResources: true`.
"""

from reconciler.desired.monitoring.grafana import Dashboard, Panel, PanelKind, Query, Row, Variable

_CHOSEN = 'cluster=~"$cluster", cluster_queue=~"$queue"'
_QUEUE = "cluster, cluster_queue"
_QUOTA = "cluster, cluster_queue, flavor, resource"
_BY_QUEUE = "{{cluster}} {{cluster_queue}}"
_BY_QUOTA = "{{cluster_queue}} {{flavor}} {{resource}}"


def queue_dashboard() -> Dashboard:
    variables = (
        Variable("cluster", "kueue_cluster_queue_status", "cluster"),
        Variable("queue", "kueue_cluster_queue_status", "cluster_queue"),
    )
    return Dashboard("queues", "Kueue queues", variables, (_now(), _workloads(), _waiting(), _quotas(), _trouble()))


def _gauge(metric: str, labels: str, more: str = "") -> str:
    inner = f"{labels}, {more}" if more else labels
    return f"sum by ({labels}) (max by ({inner}) ({metric}{{{_CHOSEN}}}))"


def _rate(metric: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({metric}{{{_CHOSEN}}}[$__rate_interval]))"


def _now() -> Row:
    pending = f"sum(max by ({_QUEUE}, status) (kueue_pending_workloads{{{_CHOSEN}}}))"
    admitted = f"sum(max by ({_QUEUE}) (kueue_admitted_active_workloads{{{_CHOSEN}}}))"
    inactive = f'count(max by ({_QUEUE}) (kueue_cluster_queue_status{{{_CHOSEN}, status="active"}}) == 0) or vector(0)'
    return Row(
        "Now",
        (
            Panel("Waiting workloads", (Query(pending),), PanelKind.NUMBER),
            Panel("Admitted workloads", (Query(admitted),), PanelKind.NUMBER),
            Panel("Queues that are not active", (Query(inactive),), PanelKind.NUMBER),
        ),
    )


def _workloads() -> Row:
    pending = _gauge("kueue_pending_workloads", f"{_QUEUE}, status")
    return Row(
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


def _waiting() -> Row:
    buckets = f"sum by (le, {_QUEUE}) (rate(kueue_admission_wait_time_seconds_bucket{{{_CHOSEN}}}[$__rate_interval]))"
    return Row(
        "Time until admission",
        (
            Panel("Median", (Query(f"histogram_quantile(0.5, {buckets})", _BY_QUEUE),), unit="s"),
            Panel("Nine of ten", (Query(f"histogram_quantile(0.9, {buckets})", _BY_QUEUE),), unit="s"),
            Panel("Admitted per second", (Query(_rate("kueue_admitted_workloads_total", _QUEUE), _BY_QUEUE),)),
        ),
    )


def _quotas() -> Row:
    usage, nominal = (_gauge(f"kueue_cluster_queue_{name}", _QUOTA) for name in ("resource_usage", "nominal_quota"))
    reserved = _gauge("kueue_cluster_queue_resource_reservation", _QUOTA)
    return Row(
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


def _trouble() -> Row:
    evicted = _rate("kueue_evicted_workloads_total", f"{_QUEUE}, reason")
    anywhere = '{cluster=~"$cluster"}[$__rate_interval]'
    by_whom = "cluster, preempting_cluster_queue, reason"
    preempted = f"sum by ({by_whom}) (rate(kueue_preempted_workloads_total{anywhere}))"
    attempts = f"sum by (cluster, result) (rate(kueue_admission_attempts_total{anywhere}))"
    return Row(
        "Trouble",
        (
            Panel("Evicted per second", (Query(evicted, f"{_BY_QUEUE} {{{{reason}}}}"),)),
            Panel(
                "Preempted per second, by who preempts", (Query(preempted, "{{preempting_cluster_queue}} {{reason}}"),)
            ),
            Panel("Rounds of admission per second", (Query(attempts, "{{cluster}} {{result}}"),)),
        ),
    )
