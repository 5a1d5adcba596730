"""Dashboards and alerts as objects: ConfigMaps that Grafana's sidecar finds by their label, and a PrometheusRule."""

import json
from collections.abc import Iterator

import yaml

from reconciler.monitoring.alerts import rule_groups
from reconciler.monitoring.grafana import Dashboard, dashboard_json, gpu_dashboard, own_dashboard, queue_dashboard
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
