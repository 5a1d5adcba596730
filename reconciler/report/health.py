"""Finds unhealthy objects of a fleet, with a remedy for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.kueue.health import explain
from reconciler.kueue.reading import as_map
from reconciler.multikueue.preflight import MissingLocalQueue, find_missing_local_queues
from reconciler.objects import Manifest, Ref
from reconciler.render.model import Desired, DesiredObject
from reconciler.state.model import ClusterView

CONDITION = "Active"
HELD = {"Hold", "HoldAndDrain"}
KINDS = {"ClusterQueue", "LocalQueue", "AdmissionCheck", "MultiKueueCluster"}


@dataclass(frozen=True, slots=True)
class HealthIssue:
    """An unhealthy object; `reason` is empty if Kueue has not processed it yet."""

    ref: Ref
    reason: str
    message: str
    meaning: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        words = " ".join(part for part in (self.meaning or self.message, self.remedy) if part)
        return f"{self.ref}: {self.reason or 'not processed yet'}: {words}"


def find_health_issues(desired: Desired, views: Sequence[ClusterView]) -> Iterator[HealthIssue]:
    """The desired objects that exist and are unhealthy, and LocalQueues that MultiKueue needs on workers.

    The plan reports missing objects. A queue that the fleet itself stops is healthy when it is stopped.
    """
    for view in views:
        entries = desired.of_cluster(view.name)
        stopped = {entry.ref.name for entry in entries if entry.ref.kind == "ClusterQueue" and _is_stopped(entry)}
        for entry in entries:
            live = view.live.get(entry.ref)
            health_issue = _check(entry.ref, live) if entry.ref.kind in KINDS and live is not None else None
            if health_issue and not _is_intended(health_issue, entry, stopped):
                yield health_issue
    wanted = frozenset(entry.ref for entry in desired.objects)
    yield from (_missing_on_worker(gap) for gap in find_missing_local_queues(views, wanted))


def _missing_on_worker(gap: MissingLocalQueue) -> HealthIssue:
    meaning = f"MultiKueue dispatches its jobs to {gap.worker}, which has no LocalQueue of the same name."
    remedy = "Create it there, in a namespace of the same name; Kueue itself does not report this."
    return HealthIssue(gap.ref, "MissingOnWorker", "", meaning, remedy)


def _is_stopped(entry: DesiredObject) -> bool:
    return as_map(entry.manifest.get("spec")).get("stopPolicy") in HELD


def _is_intended(health_issue: HealthIssue, entry: DesiredObject, stopped: set[str]) -> bool:
    """Whether the fleet itself stops the queue, or the ClusterQueue of a LocalQueue."""
    is_behind = as_map(entry.manifest.get("spec")).get("clusterQueue") in stopped
    is_idle = health_issue.reason == "ClusterQueueIsInactive" and is_behind
    return is_idle or (health_issue.reason == "Stopped" and _is_stopped(entry))


def _check(ref: Ref, live: Manifest) -> HealthIssue | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    active = next((entry for entry in conditions if entry.get("type") == CONDITION), None)
    if active is None:
        return HealthIssue(ref, "", "Kueue has set no condition; is its controller running?")
    reason, message = str(active.get("reason", "")), str(active.get("message", ""))
    known = explain(ref.kind, reason)
    if active.get("status") == "True" and (known is None or known.is_healthy):
        return None
    if known is None:
        return HealthIssue(ref, reason, message)
    return HealthIssue(ref, reason, message, f"{known.meaning} ({message})" if message else known.meaning, known.remedy)
