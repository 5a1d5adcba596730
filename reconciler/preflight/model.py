"""What preflight judges by."""

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.desired import Desired
from reconciler.links import Links, ManagedClusters
from reconciler.objects import ClusterName
from reconciler.prediction import ClusterView
from reconciler.spec.model import Cluster, FleetSpec

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that preflight judges by. How the manager logs in to `native` workers is written by hand."""

    spec: FleetSpec
    desired: Desired
    views: Sequence[ClusterView]
    links: Links | None = None
    workers: tuple[Cluster, ...] = ()
    native: tuple[Cluster, ...] = ()
    inventory: ManagedClusters | None = None

    def view(self, name: ClusterName) -> ClusterView | None:
        return next((view for view in self.views if view.name == name and view.is_reachable), None)


def listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more
