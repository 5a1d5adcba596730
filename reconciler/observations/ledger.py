"""The ledger between runs: a ConfigMap on the manager, or on the first cluster of a fleet without one."""

from dataclasses import dataclass

from reconciler.capacity.model import EMPTY, Ledger
from reconciler.capacity.record import ledger_content, read_ledger
from reconciler.errors import ClusterError
from reconciler.ports import ClusterPort

FIELD_MANAGER = "kfleet"


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    namespace: str
    fleet: str

    @property
    def name(self) -> str:
        return f"kfleet-{self.fleet}-ledger"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"


@dataclass(frozen=True, slots=True)
class Kept:
    """The ledger that was found. Without one, what the objects of the clusters remember stands in for it.

    One that `is_unread` may lie there and say something else: who writes must not take it for an empty one.
    """

    ledger: Ledger = EMPTY
    is_there: bool = False
    problem: str = ""
    is_unread: bool = False


def find_ledger(port: ClusterPort, place: LedgerPlace) -> Kept:
    try:
        found = port.find(place.path)
        return Kept() if found is None else Kept(read_ledger(found), is_there=True)
    except ClusterError as error:
        return Kept(problem=error.problem, is_unread=True)
    except ValueError as error:
        return Kept(problem=f"ConfigMap {place.namespace}/{place.name} {error}; it is written anew")


def keep_ledger(port: ClusterPort, place: LedgerPlace, ledger: Ledger) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": place.name, "namespace": place.namespace},
        **ledger_content(ledger),
    }
    port.apply_at(place.path, manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)
