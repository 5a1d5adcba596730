"""Finds clusters of a fleet that are one API server under two names.

Kueue would see one cluster as two workers, and each would delete the jobs of the other; kfleet would delete under one
name what it writes under the other. So kfleet uses one name and ignores the others.

Decision: kfleet uses the name that the server's own inventory has; on a new server, the manager's name. If neither
settles it, kfleet uses none. A name whose uid in the manager's inventory is that of another server is left out here:
its access is wrong, and its jobs still run there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.objects import ClusterName
from reconciler.plan.model import Refusal, Refused
from reconciler.spec.model import FleetSpec
from reconciler.state.model import ClusterView

NEW_NAME = "it can join under its new name when all objects of the fleet under the old name are gone"


@dataclass(frozen=True, slots=True)
class SharedServers:
    """Names that kfleet ignores because another name leads to the same API server.

    `refused` are clusters of the spec, each with its other names. `forgotten` are clusters that are no longer in it.
    """

    refused: Mapping[ClusterName, tuple[ClusterName, ...]] = field(default_factory=dict)
    forgotten: frozenset[ClusterName] = frozenset()

    @property
    def names(self) -> frozenset[ClusterName]:
        return self.forgotten | self.refused.keys()

    def counted(self, spec: FleetSpec) -> FleetSpec:
        """The spec without the ignored clusters. The manager stays: without it there is no fleet."""
        kept = (one for one in spec.clusters if one.name not in self.refused or one is spec.manager)
        return replace(spec, clusters=tuple(kept))


NOT_SHARED = SharedServers()


def find_shared_servers(spec: FleetSpec, views: Iterable[ClusterView]) -> SharedServers:
    in_spec = {cluster.name for cluster in spec.clusters}
    refused: dict[ClusterName, tuple[ClusterName, ...]] = {}
    forgotten: set[ClusterName] = set()
    for group in _groups(spec, tuple(views)):
        owner = _owner(spec, group)
        others = [view.name for view in group if view.name != owner]
        refused |= {name: _beside(name, owner, others) for name in others if name in in_spec}
        forgotten |= {name for name in others if name not in in_spec and owner in in_spec}
    return SharedServers(refused, frozenset(forgotten))


def guard_shared_server(spec: FleetSpec, view: ClusterView, shared: SharedServers) -> Iterator[Refusal]:
    others = ", ".join(shared.refused.get(view.name, ()))
    if not others:
        return
    if all(name not in {cluster.name for cluster in spec.clusters} for name in shared.refused[view.name]):
        yield Refusal(Refused.MOVED, f"its inventory names it {others}; {NEW_NAME}", view.name)
        return
    way_out = "give each cluster its own access, or remove one of them from the fleet"
    problem = f"it is the same API server as {others} (uid {view.uid}); {way_out}"
    yield Refusal(Refused.SHARED, problem, view.name)


def _groups(spec: FleetSpec, views: Sequence[ClusterView]) -> Iterator[list[ClusterView]]:
    """The views of each server that has several names."""
    manager = next((view for view in views if spec.manager and view.name == spec.manager.name), None)
    known = manager.inventory.fleet if manager and manager.inventory else {}
    by_uid: dict[str, list[ClusterView]] = {}
    for view in views:
        if view.is_reachable and known.get(view.name, view.uid) == view.uid:
            by_uid.setdefault(view.uid, []).append(view)
    yield from (group for group in by_uid.values() if len(group) > 1)


def _owner(spec: FleetSpec, group: Sequence[ClusterView]) -> ClusterName | None:
    """The one name that kfleet uses; None if it is not settled."""
    names = {cluster.name for cluster in spec.clusters}
    recorded = [view.name for view in group if view.inventory and view.inventory.cluster == view.name]
    present = [view.name for view in group if view.name in names]
    managing = [name for name in present if spec.manager and name == spec.manager.name]
    return next((some[0] for some in (recorded, managing, present) if len(some) == 1), None)


def _beside(name: ClusterName, owner: ClusterName | None, others: Iterable[ClusterName]) -> tuple[ClusterName, ...]:
    return (owner,) if owner else tuple(other for other in others if other != name)
