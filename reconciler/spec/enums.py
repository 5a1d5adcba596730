"""The enums of a spec, and the policies of a fleet that consist of them."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from reconciler.quantity import NO_PERCENT, Percent


class Role(StrEnum):
    MANAGER = "manager"
    WORKER = "worker"
    STANDALONE = "standalone"


class Dispatch(StrEnum):
    """What dispatches a queue's workloads from the manager to a worker."""

    MULTIKUEUE = "multikueue"
    KUBESTELLAR = "kubestellar"
    NONE = "none"


class PlacementRule(StrEnum):
    """Which cluster with free capacity gets a job: the emptiest, the fullest, or the one with the largest weight."""

    SPREAD = "spread"
    PACK = "pack"
    WEIGHTS = "weights"


class CapacitySource(StrEnum):
    STATIC = "static"
    NODES = "nodes"
    CLUSTER_METRICS = "clusterMetrics"
    NATS = "nats"


class Conflicts(StrEnum):
    """What to do when another field manager owns a field that the fleet sets."""

    REFUSE = "refuse"
    TAKE = "take"


class Adopt(StrEnum):
    """Which objects that kfleet did not create it may adopt."""

    NEVER = "never"
    UNOWNED = "unowned"
    ALWAYS = "always"


class Drain(StrEnum):
    """How a cluster is drained: not at all, by waiting for its jobs, or by having Kueue send them elsewhere."""

    NO = "no"
    WAIT = "wait"
    EVICT = "evict"


class AlertForm(StrEnum):
    """How alert rules reach Prometheus: through its operator, as a file that the operator mounts, or not at all."""

    PROMETHEUS_RULE = "prometheusRule"
    CONFIG_MAP = "configMap"
    NONE = "none"


class StopPolicy(StrEnum):
    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


@dataclass(frozen=True, slots=True)
class PrunePolicy:
    max_deletes: int = 10
    max_percent: int = 25


@dataclass(frozen=True, slots=True)
class CapacityPolicy:
    headroom: Percent = NO_PERCENT
    stale_after: timedelta = timedelta(seconds=90)
    drop_after: timedelta = timedelta(minutes=15)
    shrink_delay: timedelta = timedelta(seconds=60)
    pool_labels: tuple[str, ...] | None = None

    def allows_label(self, key: str) -> bool:
        """Whether a pool may set a label. An entry that ends with / matches a whole domain."""
        domain, slash, _ = key.rpartition("/")
        return self.pool_labels is None or key in self.pool_labels or (f"{domain}{slash}" or key) in self.pool_labels


@dataclass(frozen=True, slots=True)
class Policy:
    conflicts: Conflicts = Conflicts.REFUSE
    adopt: Adopt = Adopt.UNOWNED
    prune: PrunePolicy = PrunePolicy()
    capacity: CapacityPolicy = CapacityPolicy()
    max_evictions: int | None = None
