"""The fleet as values: the content of the files, with every default applied and every text parsed.

Each noun has the document it was read from, so that a later check can report the location of a problem:
`queue.document.error(("spec", "quota", 0, "flavor"), "…")`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import Amount, Percent, Quantity
from reconciler.spec.enums import CapacitySource, Dispatch, Drain, Policy, Role, StopPolicy
from reconciler.spec.files import Document, SpecSource
from reconciler.spec.nats import MasterQueue, NatsConnection, NatsFlavor
from reconciler.spec.selectors import LabelSelector, Targets
from reconciler.spec.settings import DEFAULT, PLAIN_KUBESTELLAR, Credentials, KubeStellar, Monitoring, SkyPilot


@dataclass(frozen=True, slots=True)
class SecretRef:
    namespace: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class AccessSpec:
    """How to reach a cluster: one of the four ways is set, or none, which means the context with the cluster's name."""

    context: str = ""
    kubeconfig: str = ""
    in_cluster: bool = False
    secret_ref: SecretRef | None = None
    env: str = ""


@dataclass(frozen=True, slots=True)
class LintSetting:
    """The level of a lint rule in the whole fleet: ignore, warning or error, with the reason."""

    rule: str
    level: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """`inventory` is KubeStellar's inventory and transport space, if the fleet sets how to reach it.

    `home` is the cluster with the lease and the ledger of a fleet without a manager.
    """

    name: str
    policy: Policy
    suspend: bool
    nats: tuple[NatsConnection, ...]
    has_live_master_queues: bool
    document: Document = field(repr=False)
    kubestellar: KubeStellar = PLAIN_KUBESTELLAR
    inventory: AccessSpec | None = None
    monitoring: Monitoring | None = None
    home: str = ""
    lint: tuple[LintSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class KueueInstall:
    """The release of Kueue that `kfleet kueue` installs, and the values of its Helm chart."""

    version: str
    values: Manifest = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Kueue:
    """The Kueue of a cluster. `version` is assumed until the cluster is observed; empty means the newest."""

    namespace: str = "kueue-system"
    version: str = ""
    configuration: Manifest = field(default_factory=dict)
    install: KueueInstall | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    name: ClusterName
    role: Role
    labels: Mapping[str, str]
    access: AccessSpec
    drain: Drain
    suspend: bool
    kueue: Kueue
    document: Document = field(repr=False)
    credentials: Credentials = DEFAULT
    has_published_metrics: bool = False

    @property
    def kubeconfig_secret(self) -> str:
        """The Secret on the manager with the worker's kubeconfig."""
        return self.credentials.secret or self.issued_secret

    @property
    def issued_secret(self) -> str:
        """The Secret to which kfleet writes a kubeconfig that it generates."""
        return f"multikueue-{self.name}"

    @property
    def is_drained(self) -> bool:
        return self.drain is not Drain.NO


@dataclass(frozen=True, slots=True)
class ClusterSelector:
    """Names or labels. Labels select among workers and standalone clusters; a name may be any cluster."""

    names: tuple[ClusterName, ...] = ()
    labels: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """The source of a flavor's capacity; `headroom` is None if the fleet's policy applies.

    `subtract_other` subtracts usage on the nodes outside Kueue; `nats` selects the pools that are summed.
    """

    source: CapacitySource
    headroom: Percent | None = None
    resources: Mapping[str, Quantity] = field(default_factory=dict)
    subtract_other: bool = False
    nats: NatsFlavor | None = None


@dataclass(frozen=True, slots=True)
class Flavor:
    """`clusters` is None if every worker and standalone cluster has the flavor."""

    name: str
    clusters: ClusterSelector | None
    node_labels: Mapping[str, str]
    node_taints: tuple[Manifest, ...]
    tolerations: tuple[Manifest, ...]
    topology_name: str
    capacity: Capacity
    document: Document = field(repr=False)


@dataclass(frozen=True, slots=True)
class QuotaEntry:
    flavor: str
    resources: Mapping[str, Amount]
    borrowing_limit: Mapping[str, Amount] = field(default_factory=dict)
    lending_limit: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """An AdmissionCheck of a queue; without `on_flavors` it applies to all flavors."""

    name: str
    on_flavors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A ClusterQueue on the manager and on workers.

    `namespace_selector` is None if the namespaces of the queue's tenants are meant; `manager_quota` is empty if the
    manager gets the sum of its workers. `preemption`, `flavor_fungibility` and `admission_scope` are passed to Kueue
    unchanged; empty means Kueue's defaults.
    """

    name: str
    cohort: str
    clusters: ClusterSelector | None
    dispatch: Dispatch
    quota: tuple[QuotaEntry, ...]
    manager_quota: tuple[QuotaEntry, ...]
    preemption: Manifest
    flavor_fungibility: Manifest
    queueing_strategy: str
    stop_policy: StopPolicy
    namespace_selector: LabelSelector | None
    admission_checks: tuple[AdmissionCheck, ...]
    fair_sharing_weight: Quantity | None
    admission_scope: Manifest
    drain_on_delete: bool
    document: Document = field(repr=False)
    quota_management: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A subject of RBAC in a team, and its role there: user or admin."""

    kind: str
    name: str
    namespace: str = ""
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Tenant:
    """`skypilot` is None if the team does not use it."""

    name: str
    namespaces: tuple[str, ...]
    queue: str
    local_queue: str
    fair_sharing_weight: Quantity | None
    stop_policy: StopPolicy
    namespace_labels: Mapping[str, str]
    skypilot: SkyPilot | None
    document: Document = field(repr=False)
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeObject:
    """A Kubernetes object as written, `current` in Kueue's newest version, and notes on the conversion."""

    manifest: Manifest
    current: Manifest = field(repr=False)
    notes: tuple[str, ...]
    targets: Targets
    document: Document = field(repr=False)


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """The content of one revision, in the order of its files; `source` is None if it was not requested."""

    origin: str
    revision: str
    fleet: Fleet
    clusters: tuple[Cluster, ...]
    flavors: tuple[Flavor, ...]
    queues: tuple[Queue, ...]
    tenants: tuple[Tenant, ...]
    master_queues: tuple[MasterQueue, ...]
    objects: tuple[NativeObject, ...]
    source: SpecSource | None = None

    @property
    def manager(self) -> Cluster | None:
        return next((cluster for cluster in self.clusters if cluster.role is Role.MANAGER), None)

    def is_suspended(self, name: ClusterName) -> bool:
        """Whether a cluster is observed but not written to."""
        return self.fleet.suspend or any(cluster.suspend for cluster in self.clusters if cluster.name == name)

    def selected(self, selector: ClusterSelector | None) -> tuple[Cluster, ...]:
        """Return the clusters that a flavor or a queue names; a name without a cluster selects nothing."""
        if selector is not None and selector.labels is None:
            return tuple(cluster for cluster in self.clusters if cluster.name in selector.names)
        return tuple(
            cluster
            for cluster in self.clusters
            if cluster.role is not Role.MANAGER
            and (selector is None or selector.labels is None or selector.labels.matches(cluster.labels))
        )

    def targeted(self, targets: Targets) -> tuple[Cluster, ...]:
        """Return the clusters that a native object belongs on. Labels never select the manager, as in a Queue."""
        if targets.labels is not None:
            others = (cluster for cluster in self.clusters if cluster.role is not Role.MANAGER)
            return tuple(cluster for cluster in others if targets.labels.matches(cluster.labels))
        words = targets.words or (("manager",) if self.manager else ("all",))
        return tuple(cluster for cluster in self.clusters if _is_meant(cluster, words))


def _is_meant(cluster: Cluster, words: tuple[str, ...]) -> bool:
    group = "manager" if cluster.role is Role.MANAGER else f"{cluster.role}s"
    return "all" in words or group in words or cluster.name in words
