"""What a cluster holds, and what its server says it would make of the wanted objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.desired import DesiredObject
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.ownership.applyset import Inventory, SetName
from reconciler.ports import ApiKind

KindKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One look at a cluster. With a gap the look is incomplete: what is not here may still be there.

    `listed` are the kinds of which everything is here, or everything of the fleet.
    """

    name: ClusterName
    set_name: SetName
    uid: str = ""
    served: Mapping[KindKey, tuple[ApiKind, ...]] = field(default_factory=dict, repr=False)
    live: Mapping[Ref, Manifest] = field(default_factory=dict, repr=False)
    inventory: Inventory | None = None
    gaps: tuple[Gap, ...] = ()
    listed: frozenset[KindKey] = frozenset()

    @property
    def is_reachable(self) -> bool:
        return bool(self.uid)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another manager owns with another value."""

    path: str
    manager: str


class Prediction(NamedTuple):
    """What one wanted object is now and would become.

    `result` is the server's own answer; it is None where nothing had to be asked (`is_settled`), where the server
    could not be asked yet (`is_static`), and where it refused (`problem`, with the `status` of its answer). A server
    that gave no answer at all (`is_unanswered`) could not be asked either.
    A tuple, because there is one for each object of the fleet, and those are made many times faster.
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

    @property
    def ref(self) -> Ref:
        return self.entry.ref

    def __repr__(self) -> str:
        """Without the contents and the server's words about them, which may be secret."""
        return f"Prediction({self.ref}, is_settled={self.is_settled}, has_problem={bool(self.problem)})"
