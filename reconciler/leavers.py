"""What was seen of workers on their way out: drained ones, ones that a queue names no more, ones that left the spec.

A job that runs on a worker is started a second time elsewhere when the worker leaves the MultiKueueConfig under it. So
a worker keeps its seat until nothing runs there any more and its queues let nothing new in.
"""

from dataclasses import dataclass, field

from reconciler.objects import ClusterName, Manifest
from reconciler.spec.model import Cluster


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker's place in a live MultiKueueConfig that the spec does not give it for good.

    `running` counts the workloads that went there through this config and have not ended; None where not even the
    manager could tell. `queues` are the fleet's own queues on the worker that they go through, as they are; `is_held`
    says that these let no more in, and that Kueue knows it. `problem` says why the worker itself was not seen.
    `is_busy` says that the manager still has workloads in a queue of this config, wherever they run.
    """

    config: str
    cluster: ClusterName
    running: int | None = None
    is_held: bool = False
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class Departed:
    """A worker that the spec names no more, as the manager remembers it; `queues` are the fleet's own there."""

    cluster: Cluster
    queues: tuple[Manifest, ...] = field(default=(), repr=False)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Leavers:
    """Everybody on the way out.

    `problem` says why not even the manager's configs were seen: then nobody knows who is leaving, and all has to stay
    as it is. `sitting` are all seats that are taken, by config and cluster; worth knowing only where somebody leaves.
    """

    seats: tuple[Seat, ...] = ()
    departed: tuple[Departed, ...] = ()
    problem: str = ""
    sitting: frozenset[tuple[str, str]] = frozenset()
