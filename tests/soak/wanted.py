"""What the commits of a walk say: a small fleet whose parts come, go and change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import (
    Document,
    cluster_document,
    fleet_document,
    main_tenant,
    observed_flavor,
    open_queue,
)

MANAGER = "manager"
WORKERS = ("worker1", "worker2")
NODE_CPUS = 32
MULTIKUEUE, KUBESTELLAR = "multikueue", "kubestellar"
# Queues that the manager sends to workers; each is a team with a namespace of its own.
SENT = ("alpha", "beta")
# A queue whose jobs are submitted on the worker itself.
LOCAL = "local"
LOCAL_CPUS = 4
EXTRA = "extra"
# Another name of a cluster that the fleet has already.
SECOND = "second"


@dataclass(frozen=True, slots=True)
class Access:
    """How kfleet reaches a cluster, and how the manager's Kueue does: faults are for kfleet alone."""

    kubeconfig: Path
    server: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """One commit. A queue that `is_draining` evicts its jobs where it changes its dispatch.

    A fleet that `is_dissolved` has no manager: each of its clusters is on its own. Where it `is_swapped` the access of
    each worker leads to the other one.
    """

    workers: tuple[str, ...] = WORKERS
    drains: Mapping[str, bool | str] = field(default_factory=dict)
    share: int = 40
    flavor: str = "cpu"
    has_extra: bool = False
    dispatch: str = MULTIKUEUE
    is_draining: bool = False
    manager: str = MANAGER
    second_name_of: str = ""
    is_dissolved: bool = False
    is_swapped: bool = False

    @property
    def queues(self) -> tuple[str, ...]:
        return (*SENT, LOCAL, *((EXTRA,) if self.has_extra else ()))

    @property
    def open_workers(self) -> tuple[str, ...]:
        return tuple(worker for worker in self.workers if not self.drains.get(worker))

    @property
    def is_downsynced(self) -> bool:
        """Whether KubeStellar brings jobs to workers."""
        return self.dispatch == KUBESTELLAR

    @property
    def is_evicting(self) -> bool:
        return self.is_draining or "evict" in self.drains.values()

    @property
    def servers(self) -> tuple[str, ...]:
        """The workers that the flavor is of."""
        everyone = (MANAGER, *self.workers)
        own = everyone if self.is_dissolved else tuple(name for name in everyone if name != self.manager)
        return (*own, SECOND) if self.second_name_of else own

    def documents(self, fleet: str, accesses: Mapping[str, Access]) -> list[Document]:
        flavor = f"{fleet}-{self.flavor}"
        return [
            fleet_document(fleet, policy={"prune": {"maxDeletes": 1000, "maxPercent": 100}}),
            *(self._cluster(name, accesses) for name in (MANAGER, *self.workers)),
            *self._second_name(accesses),
            observed_flavor(flavor, "nodes", clusters={"names": list(self.servers)}),
            *(self._queue(fleet, name, flavor) for name in self.queues),
            *(main_tenant(f"{fleet}-{name}", f"{fleet}-{name}") for name in self.queues),
        ]

    def _cluster(self, name: str, accesses: Mapping[str, Access]) -> Document:
        context = dict(zip(WORKERS, reversed(WORKERS), strict=True)).get(name, name) if self.is_swapped else name
        access = accesses[context]
        found = {"kubeconfig": str(access.kubeconfig), "context": context}
        if self.is_dissolved or name == self.manager:
            return cluster_document(name, "standalone" if self.is_dissolved else "manager", access=found)
        drain = self.drains.get(name, False)
        return cluster_document(name, access=found, credentials={"server": access.server}, drain=drain)

    def _second_name(self, accesses: Mapping[str, Access]) -> list[Document]:
        if not self.second_name_of:
            return []
        found = {"kubeconfig": str(accesses[self.second_name_of].kubeconfig), "context": self.second_name_of}
        return [cluster_document(SECOND, access=found)]

    def _queue(self, fleet: str, name: str, flavor: str) -> Document:
        """Two queues that share a cohort, one of which may take back what it lent; the others are on their own."""
        quota = {"cpu": f"{self.share}%" if name in SENT else str(LOCAL_CPUS)}
        if name not in SENT or self.is_dissolved:
            return open_queue(f"{fleet}-{name}", flavor, quota, dispatch="none")
        preemption = {"reclaimWithinCohort": "Any"} if name == SENT[1] else {}
        more: Document = {"preemption": preemption} if preemption else {}
        more |= {"drainOnDelete": True} if self.is_draining else {}
        return open_queue(f"{fleet}-{name}", flavor, quota, dispatch=self.dispatch, cohort=fleet, **more)
