"""The live state of a cluster, and the predicted state of its desired objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.objects import ApiKind, ClusterName, Gap, Manifest, Ref
from reconciler.render.model import DesiredObject
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
