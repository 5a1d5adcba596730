"""The clusters of the fleet: reachable, in sync, healthy, drained."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import HELD, condition_of, holding_count
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.spec.enums import Drain
from reconciler.spec.model import FleetSpec
from reconciler.view.live import LiveCluster, address_of, first_line
from reconciler.view.model import ClusterEntry, DrainState, PlanFacts, ViewGap

KINDS = ("ClusterQueue", "LocalQueue", "AdmissionCheck", "MultiKueueCluster")


def cluster_entry(spec: FleetSpec, live: LiveCluster, facts: PlanFacts | None, taken_at: datetime) -> ClusterEntry:
    seen = live.objects
    return ClusterEntry(
        name=live.name,
        role=seen.role,
        is_reachable=seen.is_reachable,
        kubernetes=seen.kubernetes,
        kueue=seen.kueue,
        drain=_drain(spec, live),
        is_in_sync=None if facts is None else facts.changes == 0,
        changes=None if facts is None else facts.changes,
        drift=None if facts is None else facts.drift,
        unhealthy=tuple(_unhealthy(live)) if seen.is_reachable else None,
        gaps=tuple(ViewGap(gap.what, gap.why) for gap in seen.gaps),
        taken_at=taken_at,
    )


def _drain(spec: FleetSpec, live: LiveCluster) -> DrainState | None:
    cluster = next((one for one in spec.clusters if one.name == live.name), None)
    if cluster is None or cluster.drain is Drain.NO:
        return DrainState.NO
    if live.queues is None:
        return None
    is_held = any(holding_count(queue) for queue in live.queues.values())
    return DrainState.DRAINING if is_held else DrainState.DRAINED


def _unhealthy(live: LiveCluster) -> Iterator[str]:
    """Objects that Kueue reports as not active, except those that a stopPolicy stops."""
    stopped = {name for name, queue in (live.queues or {}).items() if at(queue, "spec", "stopPolicy") in HELD}
    for kind in KINDS:
        for one in live.objects.of(GROUP, kind):
            active = condition_of(one, "Active")
            if active.get("status") == "False" and not _is_stopped(kind, one, stopped):
                ref = Ref(live.name, GROUP, kind, *address_of(one))
                yield f"{ref}: {active.get('reason')}: {first_line(active.get('message'))}"


def _is_stopped(kind: str, manifest: Manifest, stopped: set[str]) -> bool:
    if at(manifest, "spec", "stopPolicy") in HELD:
        return True
    return kind == "LocalQueue" and as_text(at(manifest, "spec", "clusterQueue")) in stopped


def facts_of(facts: Mapping[ClusterName, PlanFacts], live: LiveCluster) -> PlanFacts | None:
    return facts.get(live.name) if live.objects.is_reachable else None
