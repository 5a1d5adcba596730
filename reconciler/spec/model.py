"""The fleet as values: what the files say, with every default filled in and every text read.

Each noun carries the document it was read from, so that whoever finds something wrong with it can say where:
`queue.document.error(("spec", "quota", 0, "flavor"), "…")`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import Amount, Percent, Quantity
from reconciler.spec.choices import CapacitySource, Dispatch, Drain, Policy, Role, StopPolicy
from reconciler.spec.credentials import DEFAULT, Credentials
from reconciler.spec.document import Document
from reconciler.spec.kubestellar import DEFAULT as DEFAULT_KUBESTELLAR
from reconciler.spec.kubestellar import KubeStellar
from reconciler.spec.masterqueue import MasterQueue, NatsFlavor
from reconciler.spec.monitoring import Monitoring
from reconciler.spec.nats import NatsConnection
from reconciler.spec.selector import LabelSelector
from reconciler.spec.skypilot import SkyPilot
from reconciler.spec.targets import Targets


@dataclass(frozen=True, slots=True)
class SecretRef:
    namespace: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a cluster: one of the four ways is set, or none, which means a context of the cluster's name."""

    context: str = ""
    kubeconfig: str = ""
    in_cluster: bool = False
    secret_ref: SecretRef | None = None
    env: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """`inventory` is KubeStellar's inventory and transport space, where a fleet says how to reach it."""

    name: str
    policy: Policy
    suspend: bool
    nats: tuple[NatsConnection, ...]
    has_live_master_queues: bool
    document: Document = field(repr=False)
    kubestellar: KubeStellar = DEFAULT_KUBESTELLAR
    inventory: Access | None = None
    monitoring: Monitoring | None = None


@dataclass(frozen=True, slots=True)
class Kueue:
    """The Kueue of a cluster. `version` is what is assumed while the cluster is not asked; empty means the newest."""

    namespace: str = "kueue-system"
    version: str = ""
    configuration: Manifest = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cluster:
    name: ClusterName
    role: Role
    labels: Mapping[str, str]
    access: Access
    drain: Drain
    suspend: bool
    kueue: Kueue
    document: Document = field(repr=False)
    credentials: Credentials = DEFAULT
    has_published_metrics: bool = False

    @property
    def kubeconfig_secret(self) -> str:
        """The Secret on the manager that holds the worker's kubeconfig."""
        return self.credentials.secret or self.issued_secret

    @property
    def issued_secret(self) -> str:
        """The Secret where kfleet puts a kubeconfig of its own making."""
        return f"multikueue-{self.name}"

    @property
    def is_drained(self) -> bool:
        return self.drain is not Drain.NO


@dataclass(frozen=True, slots=True)
class ClusterSelector:
    """Names, or labels. Labels choose among workers and standalone clusters; a name may be any cluster."""

    names: tuple[ClusterName, ...] = ()
    labels: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Where the capacity of a flavor is learnt; `headroom` is None where the fleet's policy holds.

    `subtract_other` takes off what runs on the nodes outside of Kueue; `nats` says which pools are added up.
    """

    source: CapacitySource
    headroom: Percent | None = None
    resources: Mapping[str, Quantity] = field(default_factory=dict)
    subtract_other: bool = False
    nats: NatsFlavor | None = None


@dataclass(frozen=True, slots=True)
class Flavor:
    """`clusters` is None where every worker and standalone cluster has the flavor."""

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
    """A check of a queue; without `on_flavors` it holds for all of them."""

    name: str
    on_flavors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A ClusterQueue on the manager and on workers.

    `namespace_selector` is None where the namespaces of the queue's tenants are meant; `manager_quota` is empty where
    the manager gets the sum of its workers. `preemption`, `flavor_fungibility` and `admission_scope` are passed on to
    Kueue as they are written; empty means Kueue's defaults.
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
class Tenant:
    """`skypilot` is None where the team does not use it."""

    name: str
    namespaces: tuple[str, ...]
    queue: str
    local_queue: str
    fair_sharing_weight: Quantity | None
    stop_policy: StopPolicy
    namespace_labels: Mapping[str, str]
    skypilot: SkyPilot | None
    document: Document = field(repr=False)


@dataclass(frozen=True, slots=True)
class NativeObject:
    """A Kubernetes object as it is written, and `current` in Kueue's newest version, with notes on the way there."""

    manifest: Manifest
    current: Manifest = field(repr=False)
    notes: tuple[str, ...]
    targets: Targets
    document: Document = field(repr=False)


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """Everything one revision says, in the order of its files."""

    origin: str
    revision: str
    fleet: Fleet
    clusters: tuple[Cluster, ...]
    flavors: tuple[Flavor, ...]
    queues: tuple[Queue, ...]
    tenants: tuple[Tenant, ...]
    master_queues: tuple[MasterQueue, ...]
    objects: tuple[NativeObject, ...]

    @property
    def manager(self) -> Cluster | None:
        return next((cluster for cluster in self.clusters if cluster.role is Role.MANAGER), None)

    def is_suspended(self, name: ClusterName) -> bool:
        """Whether a cluster is looked at and not written to."""
        return self.fleet.suspend or any(cluster.suspend for cluster in self.clusters if cluster.name == name)

    def selected(self, selector: ClusterSelector | None) -> tuple[Cluster, ...]:
        """The clusters that a flavor or a queue names; a name that no cluster has selects nothing."""
        if selector is not None and selector.labels is None:
            return tuple(cluster for cluster in self.clusters if cluster.name in selector.names)
        return tuple(
            cluster
            for cluster in self.clusters
            if cluster.role is not Role.MANAGER
            and (selector is None or selector.labels is None or selector.labels.matches(cluster.labels))
        )

    def targeted(self, targets: Targets) -> tuple[Cluster, ...]:
        """The clusters that a native object goes to."""
        if targets.labels is not None:
            return tuple(cluster for cluster in self.clusters if targets.labels.matches(cluster.labels))
        words = targets.words or (("manager",) if self.manager else ("all",))
        return tuple(cluster for cluster in self.clusters if _is_meant(cluster, words))


def _is_meant(cluster: Cluster, words: tuple[str, ...]) -> bool:
    group = "manager" if cluster.role is Role.MANAGER else f"{cluster.role}s"
    return "all" in words or group in words or cluster.name in words
