"""Builds the view from a spec and the live objects of its clusters."""

from collections.abc import Iterable, Mapping

from reconciler.objects import ClusterName, Gap
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.model import FleetSpec
from reconciler.view.clusters import cluster_entry, facts_of
from reconciler.view.jobs import job_entries
from reconciler.view.joined import joined_queues, tenant_entries
from reconciler.view.live import LiveCluster, live_clusters
from reconciler.view.model import FleetGap, FleetView, PlanFacts, PoolEntry
from reconciler.view.queues import queue_entries
from reconciler.view.quotas import ClusterQuotas, cohort_entries, read_quotas
from reconciler.why.index import build_stories

UNOBSERVED = "not observed"
NO_FACTS: Mapping[ClusterName, PlanFacts] = {}


def build_view(
    spec: FleetSpec,
    objects: FleetObjects,
    *,
    facts: Mapping[ClusterName, PlanFacts] = NO_FACTS,
    pools: tuple[PoolEntry, ...] | None = None,
    gaps: Iterable[Gap] = (),
) -> FleetView:
    """`facts` are those of a plan, `gaps` those of other observations than the objects."""
    complete = _with_all_clusters(spec, objects)
    lives = live_clusters(complete)
    quotas = {name: read_quotas(live) for name, live in lives.items()}
    queues = tuple(entry for name, live in lives.items() for entry in queue_entries(spec, live, quotas[name], pools))
    jobs = tuple(job_entries(spec, lives, complete.manager, build_stories(complete, spec)))
    return FleetView(
        fleet=spec.fleet.name,
        revision=spec.revision,
        taken_at=complete.taken_at,
        clusters=tuple(cluster_entry(spec, live, facts_of(facts, live), complete.taken_at) for live in lives.values()),
        queues=queues,
        cohorts=tuple(entry for name, live in lives.items() for entry in cohort_entries(live, quotas[name])),
        joined=tuple(joined_queues(spec, lives, queues, jobs)),
        jobs=jobs,
        pools=pools,
        tenants=tuple(tenant_entries(spec, lives, jobs)),
        gaps=tuple(_gaps(lives, quotas, gaps)),
    )


def _with_all_clusters(spec: FleetSpec, objects: FleetObjects) -> FleetObjects:
    """A cluster of the fleet that is missing in the objects was not observed."""
    known = dict(objects.clusters)
    for cluster in spec.clusters:
        if cluster.name not in known:
            gap = Gap(cluster.name, "the cluster", UNOBSERVED)
            known[cluster.name] = ClusterObjects(name=cluster.name, role=cluster.role, is_reachable=False, gaps=(gap,))
    return FleetObjects(taken_at=objects.taken_at, manager=objects.manager, clusters=known)


def _gaps(
    lives: Mapping[ClusterName, LiveCluster], quotas: Mapping[ClusterName, ClusterQuotas], others: Iterable[Gap]
) -> list[FleetGap]:
    seen = [gap for live in lives.values() for gap in live.objects.gaps]
    cycles = [Gap(name, "cohorts", quota.problem) for name, quota in quotas.items() if quota.problem]
    found = (FleetGap(gap.cluster, gap.what, gap.why) for gap in (*seen, *cycles, *others))
    return list(dict.fromkeys(found))
