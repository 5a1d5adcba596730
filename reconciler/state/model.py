"""The live state of a cluster, the predicted state of its desired objects, and clusters that are one API server.

Kueue would see one API server with two names as two workers, and each would delete the jobs of the other; kfleet would
delete under one name what it writes under the other. So kfleet uses one name and ignores the others.

Decision: kfleet uses the name that the server's own inventory has; on a new server, the manager's name. If neither
settles it, kfleet uses none. A name whose uid in the manager's inventory is that of another server is left out here:
its access is wrong, and its jobs still run there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.objects import ApiKind, ClusterName, Gap, Manifest, Ref
from reconciler.render.model import DesiredObject
from reconciler.spec.model import FleetSpec
from reconciler.state.applyset import Inventory, SetName
from reconciler.state.manual_edits import Unnamed

KindKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The observed state of a cluster. With a gap it is incomplete: an object that is missing here may still exist.

    `listed` are the kinds that were listed completely, or completely for members of the fleet. `fleets` are the names
    of other fleets that own objects which this fleet desires too, by the id of their ApplySet.
    """

    name: ClusterName
    set_name: SetName
    uid: str = ""
    served: Mapping[KindKey, tuple[ApiKind, ...]] = field(default_factory=dict, repr=False)
    live: Mapping[Ref, Manifest] = field(default_factory=dict, repr=False)
    inventory: Inventory | None = None
    gaps: tuple[Gap, ...] = ()
    listed: frozenset[KindKey] = frozenset()
    fleets: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_reachable(self) -> bool:
        return bool(self.uid)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another field manager owns with another value."""

    path: str
    manager: str


class Prediction(NamedTuple):
    """The live state of one desired object, and its state after an apply.

    `result` is the answer of the dry run. It is None if no dry run was needed (`is_settled`), if none is possible yet
    (`is_static`), and if the API server rejected the object (`problem`, with the `status` of the answer). With
    `is_unanswered` the server did not respond, so there was no dry run either. `unnamed` are fields that other managers
    set where git alone decides: the result of the dry run still contains them.
    It is a tuple because there is one per object of the fleet, and tuples are created many times faster.
    """

    entry: DesiredObject
    wanted: Manifest
    live: Manifest | None = None
    result: Manifest | None = None
    conflicts: tuple[Conflict, ...] = ()
    problem: str = ""
    is_settled: bool = False
    is_static: bool = False
    is_unanswered: bool = False
    status: int = 0
    unnamed: tuple[Unnamed, ...] = ()

    @property
    def ref(self) -> Ref:
        return self.entry.ref

    def __repr__(self) -> str:
        """Omit the contents and the server's message about them: they may be secret."""
        return f"Prediction({self.ref}, is_settled={self.is_settled}, has_problem={bool(self.problem)})"


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
