"""Stage 7: what Kueue says about the fleet's objects, in words that say what to do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.kueue.health import explain
from reconciler.objects import Manifest, Ref
from reconciler.prediction import ClusterView

CONDITION = "Active"
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


def find_ailments(view: ClusterView, wanted: Iterable[Ref]) -> Iterator[Ailment]:
    """The wanted objects of a cluster that are there and not well. What is not there is the plan's matter."""
    for ref in wanted:
        live = view.live.get(ref)
        if ref.kind in KINDS and live is not None and (ailment := _judge(ref, live)):
            yield ailment


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
