"""How the manager's Kueue authenticates at a worker, and other settings of the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.objects import Manifest
from reconciler.spec.enums import AlertForm
from reconciler.spec.formats import parse_duration
from reconciler.spec.selectors import Targets

# Older servers do not support Kueue: their pods get a label instead.
QUEUE_NAME_SINCE = (0, 10)


@dataclass(frozen=True, slots=True)
class Credentials:
    """How the manager's Kueue authenticates at a worker: with a token that kfleet issues, or one of the last two.

    `server` is empty if the manager's network reaches the worker at the address that kfleet uses.
    """

    lifetime: timedelta = timedelta(days=30)
    server: str = ""
    secret: str = ""
    cluster_profile: str = ""

    @property
    def is_issued(self) -> bool:
        return not (self.secret or self.cluster_profile)


DEFAULT = Credentials()


def read_credentials(credentials: Manifest) -> Credentials:
    return Credentials(
        lifetime=parse_duration(credentials["lifetime"]) if "lifetime" in credentials else DEFAULT.lifetime,
        server=credentials.get("server", "").rstrip("/"),
        secret=credentials.get("secret", ""),
        cluster_profile=credentials.get("clusterProfile", ""),
    )


@dataclass(frozen=True, slots=True)
class Monitoring:
    """`namespace` is empty if Kueue's is meant; every object gets `labels`, in addition to the one for Grafana."""

    has_dashboards: bool = True
    alerts: AlertForm = AlertForm.PROMETHEUS_RULE
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: Targets = field(default_factory=Targets)


def read_monitoring(monitoring: Manifest | None) -> Monitoring | None:
    """None if the fleet does not enable it."""
    if monitoring is None:
        return None
    return Monitoring(
        has_dashboards=monitoring.get("dashboards", True),
        alerts=AlertForm(monitoring.get("alerts", AlertForm.PROMETHEUS_RULE)),
        namespace=monitoring.get("namespace", ""),
        labels=monitoring.get("labels", {}),
        targets=Targets(words=tuple(monitoring.get("clusters", ()))),
    )


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A ProvisioningRequest for every workload of the queue; no `resources` means all covered ones."""

    class_name: str
    resources: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    merge_policy: str = ""


@dataclass(frozen=True, slots=True)
class SkyPilot:
    """`version` is the team's API server's, empty for a current one; `configuration` is the rest of its config."""

    version: str = ""
    configuration: Manifest = field(default_factory=dict)
    provisioning: Provisioning | None = None

    @property
    def knows_queues(self) -> bool:
        return not self.version or tuple(map(int, self.version.split(".")[:2])) >= QUEUE_NAME_SINCE


def read_skypilot(written: Manifest | None) -> SkyPilot | None:
    if written is None:
        return None
    provisioning = written.get("provisioning")
    return SkyPilot(
        written.get("version", "").removeprefix("v"),
        written.get("config", {}),
        None if provisioning is None else _provisioning(provisioning),
    )


def _provisioning(written: Manifest) -> Provisioning:
    return Provisioning(
        written["className"],
        tuple(written.get("managedResources", ())),
        written.get("parameters", {}),
        written.get("podSetMergePolicy", ""),
    )
