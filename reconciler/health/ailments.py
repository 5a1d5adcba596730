"""What ails the objects of a fleet, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.desired import Desired, DesiredObject
from reconciler.health.dead_ends import DeadEnd, find_dead_ends
from reconciler.kueue.health import explain
from reconciler.kueue.reading import as_map
from reconciler.objects import Manifest, Ref
from reconciler.prediction import ClusterView

CONDITION = "Active"
HELD = {"Hold", "HoldAndDrain"}
KINDS = {"ClusterQueue", "LocalQueue", "AdmissionCheck", "MultiKueueCluster"}


@dataclass(frozen=True, slots=True)
class Ailment:
    """An object that does not do its work; `reason` is empty where Kueue has not looked at it yet."""

    ref: Ref
    reason: str
    message: str
    meaning: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        words = " ".join(part for part in (self.meaning or self.message, self.remedy) if part)
        return f"{self.ref}: {self.reason or 'not looked at yet'}: {words}"


def find_ailments(desired: Desired, views: Sequence[ClusterView]) -> Iterator[Ailment]:
    """The wanted objects that are there and not well, and what MultiKueue misses on workers without saying so.

    What is not there is the plan's matter. A queue that the fleet wants to stand still is well when it does.
    """
    for view in views:
        entries = desired.of_cluster(view.name)
        stopped = {entry.ref.name for entry in entries if entry.ref.kind == "ClusterQueue" and _is_stopped(entry)}
        for entry in entries:
            live = view.live.get(entry.ref)
            ailment = _judge(entry.ref, live) if entry.ref.kind in KINDS and live is not None else None
            if ailment and not _is_wished(ailment, entry, stopped):
                yield ailment
    wanted = frozenset(entry.ref for entry in desired.objects)
    yield from (_no_way_in(gap) for gap in find_dead_ends(views, wanted))


def _no_way_in(gap: DeadEnd) -> Ailment:
    meaning = f"Jobs that come through it are sent to {gap.worker}, where there is no LocalQueue of its name."
    remedy = "Create it there, in a namespace of the same name; Kueue itself never says so."
    return Ailment(gap.ref, "MissingOnWorker", "", meaning, remedy)


def _is_stopped(entry: DesiredObject) -> bool:
    return as_map(entry.manifest.get("spec")).get("stopPolicy") in HELD


def _is_wished(ailment: Ailment, entry: DesiredObject, stopped: set[str]) -> bool:
    """Whether the fleet itself stops the queue, or the one behind it."""
    is_behind = as_map(entry.manifest.get("spec")).get("clusterQueue") in stopped
    is_idle = ailment.reason == "ClusterQueueIsInactive" and is_behind
    return is_idle or (ailment.reason == "Stopped" and _is_stopped(entry))


def _judge(ref: Ref, live: Manifest) -> Ailment | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    active = next((entry for entry in conditions if entry.get("type") == CONDITION), None)
    if active is None:
        return Ailment(ref, "", "Kueue has set no condition; is its controller running?")
    reason, message = str(active.get("reason", "")), str(active.get("message", ""))
    known = explain(ref.kind, reason)
    if active.get("status") == "True" and (known is None or known.is_healthy):
        return None
    if known is None:
        return Ailment(ref, reason, message)
    return Ailment(ref, reason, message, f"{known.meaning} ({message})" if message else known.meaning, known.remedy)
