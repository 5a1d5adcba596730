"""The order in which Kueue tries the waiting workloads of a ClusterQueue."""

from collections.abc import Iterable
from datetime import UTC, datetime

from reconciler.kueue.configuration import ConfigurationError, read_configuration
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import condition_of
from reconciler.objects import Manifest

BY_CREATION = "Creation"
USAGE_BASED = "UsageBasedAdmissionFairSharing"
_LAST = datetime.max.replace(tzinfo=UTC)


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
