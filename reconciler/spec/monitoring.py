"""Dashboards and alerts, as the fleet asks for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import Manifest
from reconciler.spec.choices import AlertForm
from reconciler.spec.targets import Targets


@dataclass(frozen=True, slots=True)
class Monitoring:
    """`namespace` is empty where Kueue's is meant; `labels` go on every object, beside the one for Grafana."""

    has_dashboards: bool = True
    alerts: AlertForm = AlertForm.PROMETHEUS_RULE
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: Targets = field(default_factory=Targets)


def read_monitoring(monitoring: Manifest | None) -> Monitoring | None:
    """None where the fleet does not ask for it."""
    if monitoring is None:
        return None
    return Monitoring(
        has_dashboards=monitoring.get("dashboards", True),
        alerts=AlertForm(monitoring.get("alerts", AlertForm.PROMETHEUS_RULE)),
        namespace=monitoring.get("namespace", ""),
        labels=monitoring.get("labels", {}),
        targets=Targets(words=tuple(monitoring.get("clusters", ()))),
    )
