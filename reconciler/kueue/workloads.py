"""Workloads of a queue: the quota that they hold, by which a queue is in use, and the order of waiting ones."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from reconciler.kueue.configuration import ConfigurationError, read_configuration
from reconciler.kueue.kinds import FINALIZER
from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.objects import Manifest
from reconciler.quantity import ZERO, Quantity

HELD = frozenset({"Hold", "HoldAndDrain"})
Amounts = Mapping[str, Quantity]
BY_CREATION = "Creation"
USAGE_BASED = "UsageBasedAdmissionFairSharing"
# Why Kueue evicted a workload of a queue that stopped.
_STOPPED = frozenset({"ClusterQueueStopped", "LocalQueueStopped"})
_LAST = datetime.max.replace(tzinfo=UTC)


def holding_count(queue: Manifest) -> int:
    """Return how many workloads hold quota of a ClusterQueue, or through a LocalQueue, as Kueue counts them."""
    counts = (at(queue, "status", name) for name in ("reservingWorkloads", "admittedWorkloads"))
    return max(int(count or 0) for count in counts)


def is_stopped(queue: Manifest) -> bool:
    """Whether a queue has stopped admitting, and its Kueue has observed that."""
    if at(queue, "metadata", "deletionTimestamp"):
        return True
    active = condition_of(queue, "Active")
    is_seen = active.get("observedGeneration") == at(queue, "metadata", "generation")
    return at(queue, "spec", "stopPolicy") in HELD and is_seen and active.get("status") == "False"


def is_opening(live: Manifest | None, wanted: Manifest) -> bool:
    """Whether a stopped queue should admit workloads again."""
    return at(live, "spec", "stopPolicy") in HELD and at(wanted, "spec", "stopPolicy") not in HELD


def is_unattended(queue: Manifest) -> bool:
    """Whether no Kueue has ever observed a queue, so that no workload can have been admitted."""
    return not condition_of(queue, "Active") and FINALIZER not in as_list(at(queue, "metadata", "finalizers"))


def has_condition(manifest: Manifest, name: str) -> bool:
    return condition_of(manifest, name).get("status") == "True"


def is_tried(workload: Manifest) -> bool:
    """Whether Kueue has tried a waiting workload in vain.

    Unless its queue is strict, Kueue tries it again only after an event in its cohorts: quota that becomes free, or a
    change of a queue. Until then it waits, even where it would fit.
    """
    return condition_of(workload, "QuotaReserved").get("status") == "False"


def is_backing_off(workload: Manifest) -> bool:
    """Whether Kueue does not try a workload until a time that it has set, or until a check lets it try again.

    One that a stopped queue evicted is tried as soon as that queue is open.
    """
    requeued = condition_of(workload, "Requeued")
    return requeued.get("status") == "False" and requeued.get("reason") not in _STOPPED


def has_begun(copy: Manifest) -> bool:
    """Whether a copy of a manager's workload was started on its worker: its job exists there, or it was evicted."""
    return bool(at(copy, "metadata", "ownerReferences")) or has_condition(copy, "Evicted")


def queue_of(workload: Manifest) -> str:
    """Return the ClusterQueue whose quota a workload holds; empty if it holds none, or no longer does."""
    return "" if has_condition(workload, "Finished") else as_text(at(workload, "status", "admission", "clusterQueue"))


def flavors_of(workload: Manifest) -> frozenset[str]:
    """Return the flavors whose quota a workload holds."""
    return frozenset(usage_of(workload))


def usage_of(workload: Manifest) -> Mapping[str, Amounts]:
    """Return the amount that a workload holds of each flavor."""
    found: dict[str, dict[str, Quantity]] = {}
    for assignment in as_list(at(workload, "status", "admission", "podSetAssignments")) if queue_of(workload) else ():
        amounts = as_map(at(assignment, "resourceUsage"))
        for resource, flavor in _assigned(assignment):
            held = found.setdefault(flavor, {})
            held[resource] = held.get(resource, ZERO) + (quantity_at(amounts.get(resource)) or ZERO)
    return found


def _assigned(assignment: Manifest) -> Iterator[tuple[str, str]]:
    for resource, flavor in as_map(at(assignment, "flavors")).items():
        if as_text(flavor):
            yield resource, as_text(flavor)


def condition_of(manifest: Manifest, name: str) -> Mapping[str, object]:
    conditions = (as_map(entry) for entry in as_list(at(manifest, "status", "conditions")))
    return next((entry for entry in conditions if entry.get("type") == name), {})


def in_queue_order(workloads: Iterable[Manifest], *, is_by_eviction: bool = True) -> list[Manifest]:
    """Sort by priority, then by time, then by uid.

    `is_by_eviction` is waitForPodsReady.requeuingStrategy.timestamp of Kueue's Configuration, which is Eviction
    unless it is set.
    """

    def key(workload: Manifest) -> tuple[int, datetime, str]:
        time = order_time(workload, is_by_eviction=is_by_eviction)
        return -priority_of(workload), time or _LAST, as_text(at(workload, "metadata", "uid"))

    return sorted(workloads, key=key)


def priority_of(workload: Manifest) -> int:
    value = at(workload, "spec", "priority")
    return value if isinstance(value, int) else 0


def order_time(workload: Manifest, *, is_by_eviction: bool) -> datetime | None:
    """The creation; or the eviction by an admission check, or because the pods were not ready in time."""
    evicted = condition_of(workload, "Evicted")
    reasons = {"AdmissionCheck", "PodsReadyTimeout"} if is_by_eviction else {"AdmissionCheck"}
    if evicted.get("status") == "True" and evicted.get("reason") in reasons:
        return read_time(evicted.get("lastTransitionTime"))
    return read_time(at(workload, "metadata", "creationTimestamp"))


def is_ordered_by_eviction(configuration: str) -> bool:
    """By the text of Kueue's Configuration; a text that is missing or not valid counts as the default."""
    try:
        content = read_configuration(configuration) if configuration else {}
    except ConfigurationError:
        return True
    return as_text(at(content, "waitForPodsReady", "requeuingStrategy", "timestamp")) != BY_CREATION


def has_known_order(queue: Manifest) -> bool:
    """Admission fair sharing orders by past usage, which no object shows."""
    return as_text(at(queue, "spec", "admissionScope", "admissionMode")) != USAGE_BASED


def read_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) and value else None
    except ValueError:
        return None
