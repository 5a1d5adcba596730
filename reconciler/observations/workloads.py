"""What Workloads and queues say about what runs where."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

ORIGIN = f"{GROUP}/multikueue-origin"
HELD = {"Hold", "HoldAndDrain"}

Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SentWorkload:
    """A workload of the manager that has not ended: the queue that admitted it, and the cluster that it went to."""

    address: Address
    queue: str
    cluster: str


@dataclass(frozen=True, slots=True)
class RemoteLook:
    """A worker: its queues, the fleet's own among them, and which copies of the manager's workloads hold quota."""

    queues: Mapping[str, Manifest] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    local_queues: Mapping[Address, str] = field(default_factory=dict)
    reserving: frozenset[Address] = frozenset()
    problem: str = ""


def read_sent(workloads: Iterable[Manifest]) -> Iterator[SentWorkload]:
    for workload in workloads:
        if not _has(workload, "Finished"):
            queue = as_text(at(workload, "status", "admission", "clusterQueue"))
            yield SentWorkload(_address(workload), queue, as_text(at(workload, "status", "clusterName")))


def read_remote(
    queues: Iterable[Manifest],
    own: frozenset[str],
    local_queues: Mapping[Address, str],
    workloads: Iterable[Manifest],
) -> RemoteLook:
    reserving = frozenset(_address(entry) for entry in workloads if _is_reserving(entry, own))
    return RemoteLook({queue["metadata"]["name"]: queue for queue in queues}, own, local_queues, reserving)


def is_stopped(queue: Manifest) -> bool:
    """Whether a queue lets nothing in any more, and its Kueue has understood that."""
    if at(queue, "metadata", "deletionTimestamp"):
        return True
    active = next((entry for entry in _conditions(queue) if entry.get("type") == "Active"), None)
    is_seen = active is not None and active.get("observedGeneration") == at(queue, "metadata", "generation")
    return at(queue, "spec", "stopPolicy") in HELD and is_seen and as_map(active).get("status") == "False"


def is_in_use(queue: Manifest) -> bool:
    """Whether workloads hold quota of a queue, as Kueue counts them."""
    return any(at(queue, "status", count) for count in ("reservingWorkloads", "admittedWorkloads"))


def _is_reserving(workload: Manifest, queues: frozenset[str]) -> bool:
    """Whether it came from a manager, and has room in one of these queues: others are of another manager."""
    is_copy = ORIGIN in (at(workload, "metadata", "labels") or {})
    has_room = _has(workload, "QuotaReserved") or _has(workload, "Admitted")
    is_here = as_text(at(workload, "status", "admission", "clusterQueue")) in {*queues, ""}
    return is_copy and has_room and is_here and not _has(workload, "Finished")


def _has(manifest: Manifest, condition: str) -> bool:
    return any(entry.get("type") == condition and entry.get("status") == "True" for entry in _conditions(manifest))


def _conditions(manifest: Manifest) -> list[Mapping[str, object]]:
    return [as_map(entry) for entry in as_list(at(manifest, "status", "conditions"))]


def _address(manifest: Manifest) -> Address:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]
