"""Words that a spec chooses from, and the rules of a fleet that are made of them."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from reconciler.quantity import NO_PERCENT, Percent


class Role(StrEnum):
    MANAGER = "manager"
    WORKER = "worker"
    STANDALONE = "standalone"


class Dispatch(StrEnum):
    """Who brings a queue's workloads from the manager to a worker."""

    MULTIKUEUE = "multikueue"
    KUBESTELLAR = "kubestellar"
    NONE = "none"


class PlacementRule(StrEnum):
    """Which of the clusters with room gets a job: the emptiest, the fullest, or the one of the largest weight."""

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
    """Which objects that kfleet did not create it may take over."""

    NEVER = "never"
    UNOWNED = "unowned"
    ALWAYS = "always"


class Drain(StrEnum):
    """How a cluster is emptied: not at all, by waiting for its jobs, or by having Kueue send them elsewhere."""

    NO = "no"
    WAIT = "wait"
    EVICT = "evict"


class AlertForm(StrEnum):
    """How alert rules reach Prometheus: by its operator, as a file that somebody mounts, or not at all."""

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


@dataclass(frozen=True, slots=True)
class Policy:
    conflicts: Conflicts = Conflicts.REFUSE
    adopt: Adopt = Adopt.UNOWNED
    prune: PrunePolicy = PrunePolicy()
    capacity: CapacityPolicy = CapacityPolicy()
