"""Dashboards and alerts as objects: ConfigMaps that Grafana's sidecar finds by their label, and a PrometheusRule."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import yaml

from reconciler.monitoring.grafana import (
    LAST_XID,
    TEMPERATURE,
    Dashboard,
    dashboard_json,
    gpu_dashboard,
    own_dashboard,
    queue_dashboard,
)
from reconciler.objects import Manifest
from reconciler.render.model import DesiredObject, desired_object, without_empty
from reconciler.spec.enums import AlertForm
from reconciler.spec.model import Cluster, Fleet, FleetSpec
from reconciler.spec.settings import Monitoring

SIDECAR_LABEL = {"grafana_dashboard": "1"}


def monitoring_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    wanted = spec.fleet.monitoring
    if wanted is None:
        return
    for cluster in spec.targeted(wanted.targets):
        place = _Place(spec.fleet, wanted, cluster)
        for manifest in (*place.dashboards(), *place.alerts()):
            yield desired_object(cluster, manifest, spec.fleet.document)


class _Place:
    """One cluster that gets them."""

    def __init__(self, fleet: Fleet, wanted: Monitoring, cluster: Cluster) -> None:
        self._fleet, self._wanted = fleet, wanted
        self._namespace = wanted.namespace or cluster.kueue.namespace

    def dashboards(self) -> Iterator[Manifest]:
        for dashboard in all_dashboards() if self._wanted.has_dashboards else ():
            text = json.dumps(dashboard_json(self._fleet.name, dashboard), indent=1)
            name = f"dashboard-{dashboard.name}"
            metadata = self._metadata(name, SIDECAR_LABEL)
            yield {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": {f"kfleet-{self._fleet.name}-{dashboard.name}.json": text},
            }

    def alerts(self) -> Iterator[Manifest]:
        content = {"groups": rule_groups(self._fleet.name, self._fleet.policy.capacity.stale_after)}
        metadata = self._metadata("alerts", {})
        if self._wanted.alerts is AlertForm.PROMETHEUS_RULE:
            api = "monitoring.coreos.com/v1"
            yield {"apiVersion": api, "kind": "PrometheusRule", "metadata": metadata, "spec": content}
        elif self._wanted.alerts is AlertForm.CONFIG_MAP:
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
            data = {f"kfleet-{self._fleet.name}.rules.yaml": text}
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def _metadata(self, name: str, labels: Manifest) -> Manifest:
        full = f"kfleet-{self._fleet.name}-{name}"
        return without_empty({"name": full, "namespace": self._namespace, "labels": {**labels, **self._wanted.labels}})


def all_dashboards() -> tuple[Dashboard, ...]:
    return queue_dashboard(), gpu_dashboard(), own_dashboard()


_QUEUE = "cluster, cluster_queue"
HOTTEST = 90


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expression: str
    minutes: int
    summary: str
    severity: str = "warning"


def rule_groups(fleet: str, stale_after: timedelta) -> list[Manifest]:
    """`stale_after` is the age from which on an observation is old by the policy of the fleet."""
    groups = {"kueue": _KUEUE, "kfleet": (_no_leader(fleet), *_KFLEET, _silent(stale_after)), "gpus": _GPUS}
    return [{"name": f"kfleet-{name}", "rules": _rules(alerts)} for name, alerts in groups.items()]


def _rules(alerts: Sequence[Alert]) -> list[Manifest]:
    return [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": f"{alert.minutes}m",
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary},
        }
        for alert in alerts
    ]


def _no_leader(fleet: str) -> Alert:
    """Where no controller was scraped within a day there is none to be missed: a CronJob, or another Prometheus."""
    leader = f'kfleet_leader{{fleet="{fleet}"}}'
    return Alert(
        "KfleetNoLeader",
        f"sum({leader}) < 1 or (count(count_over_time({leader}[1d])) unless count({leader}))",
        5,
        f"No replica of kfleet writes fleet {fleet}: none runs, or none can reach the manager.",
        "critical",
    )


def _silent(stale_after: timedelta) -> Alert:
    seconds = int(stale_after.total_seconds())
    summary = (
        f"{{{{ $labels.source }}}} was not observed for {seconds} s: a cluster counts as it was last seen, a pool that "
        "was listened for counts as 0; `kfleet observe` tells."
    )
    return Alert("KfleetSourceSilent", f"kfleet_observation_age_seconds > {seconds}", 5, summary)


_KUEUE = (
    Alert(
        "KueueQueueNotActive",
        f'max by ({_QUEUE}) (kueue_cluster_queue_status{{status="active"}}) == 0',
        10,
        "The ClusterQueue {{ $labels.cluster_queue }} admits nothing; `kfleet status` says why.",
    ),
    Alert(
        "KueueNothingAdmitted",
        f"sum by ({_QUEUE}) (max by ({_QUEUE}, status) (kueue_pending_workloads)) > 0"
        f" unless on ({_QUEUE}) sum by ({_QUEUE}) (increase(kueue_admitted_workloads_total[1h])) > 0",
        60,
        "Workloads wait in {{ $labels.cluster_queue }} for an hour, and none was admitted for two.",
    ),
    Alert(
        "KueueManyEvictions",
        f'sum by ({_QUEUE}, reason) (increase(kueue_evicted_workloads_total{{reason!="Preempted"}}[30m])) > 10',
        15,
        "Many workloads of {{ $labels.cluster_queue }} are evicted: {{ $labels.reason }}.",
    ),
)
_KFLEET = (
    Alert("KfleetCyclesFail", "increase(kfleet_cycle_failures_total[10m]) > 3", 10, "Cycles of kfleet end in errors."),
    Alert(
        "KfleetWritesFail",
        'sum by (cluster) (increase(kfleet_writes_total{result="failed"}[15m])) > 3',
        15,
        "{{ $labels.cluster }} does not take what kfleet writes.",
    ),
    Alert("KfleetRefused", "kfleet_refusals > 0", 10, "A guard refuses to write; `kfleet plan` says why."),
    Alert(
        "KfleetCommitNotFollowed",
        "kfleet_revision_refused > 0",
        10,
        "The newest commit is broken, is not trusted, or cannot be fetched; the last good one stays.",
    ),
    Alert(
        "KfleetNoRevision",
        "kfleet_revision_known == 0",
        10,
        "kfleet has read no revision since its start, so that nothing is written; /readyz says why.",
    ),
    Alert(
        "KfleetNotFetched",
        "kfleet_fetch_age_seconds > 3600",
        5,
        "The repository of kfleet was not fetched for an hour, so that newer commits are not found; /readyz says why.",
    ),
    Alert("KfleetClusterLost", "kfleet_cluster_reachable == 0", 5, "{{ $labels.cluster }} does not answer kfleet."),
    Alert(
        "KfleetUnhealthy",
        "sum by (cluster) (kfleet_preflight_issues or kfleet_unhealthy_objects) > 0",
        15,
        "What kfleet wrote on {{ $labels.cluster }} does not work; `kfleet status` says what to do.",
    ),
    Alert("KfleetBlind", "kfleet_gaps > 0", 15, "kfleet cannot see all of {{ $labels.cluster }}."),
    Alert(
        "KfleetFight",
        'kfleet_changed_fields{cause="drift"} > 0',
        15,
        "A user or another tool keeps changing objects of the fleet on {{ $labels.cluster }}.",
    ),
)
_GPUS = (
    Alert(
        "GpuError",
        f"{LAST_XID} > 0",
        1,
        "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} reports the XID error {{ $value }}.",
    ),
    Alert(
        "GpuHot",
        f"{TEMPERATURE} > {HOTTEST}",
        5,
        "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} is at {{ $value }} °C.",
    ),
)
