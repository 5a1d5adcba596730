"""The dashboard of kfleet itself."""

from reconciler.desired.monitoring.grafana import Dashboard, Panel, PanelKind, Query, Row, Variable

_CHOSEN = '{cluster=~"$cluster"}'


def own_dashboard() -> Dashboard:
    variables = (Variable("cluster", "kfleet_cluster_reachable", "cluster"),)
    return Dashboard("kfleet", "kfleet", variables, (_now(), _work(), _clusters(), _capacity()))


def _now() -> Row:
    return Row(
        "Now",
        (
            Panel(
                "Leaders",
                (Query("sum by (fleet) (kfleet_leader)", "{{fleet}}"),),
                PanelKind.NUMBER,
                help="One for each fleet, or nobody writes.",
            ),
            Panel("Clusters reached", (Query(f"sum(kfleet_cluster_reachable{_CHOSEN})"),), PanelKind.NUMBER),
            Panel("Refused by a guard", (Query("max(kfleet_refusals)"),), PanelKind.NUMBER),
            Panel("Newest commit not followed", (Query("max(kfleet_revision_refused)"),), PanelKind.NUMBER),
            Panel("Revision", (Query("kfleet_revision_info", "{{revision}}"),), PanelKind.TABLE),
        ),
    )


def _work() -> Row:
    buckets = "sum by (le) (rate(kfleet_reconcile_seconds_bucket[$__rate_interval]))"
    writes = f"sum by (cluster, action, result) (increase(kfleet_writes_total{_CHOSEN}[$__rate_interval]))"
    failures = "sum(increase(kfleet_cycle_failures_total[$__rate_interval]))"
    pushes = "sum by (result) (increase(kfleet_webhooks_total[$__rate_interval]))"
    times = (
        Query(f"histogram_quantile(0.5, {buckets})", "median"),
        Query(f"histogram_quantile(0.99, {buckets})", "p99"),
    )
    return Row(
        "Work",
        (
            Panel("Time of a cycle", times, unit="s"),
            Panel("Objects written", (Query(writes, "{{cluster}} {{action}} {{result}}"),)),
            Panel(
                "Failed cycles, announced pushes", (Query(failures, "failed cycles"), Query(pushes, "push {{result}}"))
            ),
        ),
    )


def _clusters() -> Row:
    return Row(
        "Clusters",
        (
            Panel("Objects, by what the plan says", (Query(f"kfleet_objects{_CHOSEN}", "{{cluster}} {{action}}"),)),
            Panel("Fields that differ, by cause", (Query(f"kfleet_changed_fields{_CHOSEN}", "{{cluster}} {{cause}}"),)),
            Panel("What could not be seen", (Query(f"kfleet_gaps{_CHOSEN}", "{{cluster}}"),)),
            Panel("What is not well", _unwell()),
        ),
    )


def _unwell() -> tuple[Query, ...]:
    obstacles = Query(f"kfleet_obstacles{_CHOSEN}", "{{cluster}} {{check}}")
    return obstacles, Query(f"kfleet_ailments{_CHOSEN}", "{{cluster}} {{kind}}")


def _capacity() -> Row:
    labels = "{{cluster}} {{flavor}} {{resource}}"
    queue = "{{cluster}} {{queue}} {{flavor}} {{resource}}"
    quota = (Query(f"kfleet_quota{_CHOSEN}", f"quota {queue}"), Query(f"kfleet_usage{_CHOSEN}", f"used {queue}"))
    return Row(
        "Capacity",
        (
            Panel("Capacity that counts", (Query(f"kfleet_capacity{_CHOSEN}", labels),)),
            Panel("Quota and use", quota),
            Panel("Age of observations", (Query("kfleet_observation_age_seconds", "{{source}}"),), unit="s"),
        ),
    )
