"""The effects of a plan. Pure: the spec, the plan and the live objects of the clusters decide."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.effects.admissions import find_admissions
from reconciler.effects.evictions import Hit, find_evicted, find_reclaimable, find_stranded
from reconciler.effects.model import Effects, Impact, WorkloadEffect, is_relevant, is_scheduled
from reconciler.effects.quotas import quota_effects
from reconciler.effects.states import NEEDED, ChangedCluster, owner_of, read_change
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import queue_of
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.plan.model import Change, ClusterPlan, Plan
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.model import FleetSpec

_ORDER = tuple(Impact)
SCHEDULING = "what the scheduler does next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a step between two revisions starts: what its `plan` does counts as done, and is not an effect.

    `removed` are objects that the step takes away, and `touched` the clusters whose queues it changes.
    """

    plan: Plan
    removed: tuple[Ref, ...] = ()
    touched: tuple[ClusterName, ...] = ()


def find_effects(spec: FleetSpec, plan: Plan, objects: FleetObjects, start: Start | None = None) -> Effects:
    """All effects, the most harmful first. A cluster that was not observed completely is named as unknown."""
    done = {cluster.name: _relevant(cluster) for cluster in start.plan.clusters} if start else {}
    removed = tuple(filter(is_scheduled, start.removed)) if start else ()
    changes = {cluster.name: _relevant(cluster) for cluster in plan.clusters}
    touched = [name for name, found in changes.items() if _contents(found) != _contents(done.get(name, []))]
    touched = list(dict.fromkeys((*touched, *(ref.cluster for ref in removed), *(start.touched if start else ()))))
    unknown = {name: why for name in touched if (why := _why_unknown(objects.clusters.get(name)))}
    known = [name for name in touched if name not in unknown]
    read = [
        read_change(
            objects.clusters[name],
            changes.get(name, ()),
            done.get(name, ()),
            [ref for ref in removed if ref.cluster == name],
        )
        for name in known
    ]
    queue_tenants, tenants = _tenants_of_queues(spec), _tenants_of_namespaces(spec)
    found = [_hits(cluster) for cluster in read]
    workloads = [
        one for cluster, (hits, _) in zip(read, found, strict=True) for one in _workload_effects(cluster, hits, tenants)
    ]
    quotas = [one for cluster in read for one in quota_effects(cluster, queue_tenants)]
    return Effects(
        quotas=tuple(sorted(quotas, key=lambda one: (not one.is_loss, one.cluster, one.queue))),
        workloads=tuple(sorted(workloads, key=lambda one: _ORDER.index(one.impact))),
        unknown=(
            *(Gap(name, "workloads", why) for name, why in unknown.items()),
            *(Gap(cluster.name, SCHEDULING, why) for cluster, (_, why) in zip(read, found, strict=True) if why),
        ),
    )


def _contents(changes: Iterable[Change]) -> list[tuple[object, ...]]:
    return [(one.ref, one.action, one.manifest, one.is_drained) for one in changes]


def _relevant(cluster: ClusterPlan) -> list[Change]:
    return [change for change in cluster.changes if is_relevant(change)]


def _why_unknown(objects: ClusterObjects | None) -> str:
    if objects is None or not objects.is_reachable:
        return "the cluster was not observed"
    missing = [kind for group, kind in NEEDED if any(gap.what.partition(".")[0] == kind for gap in objects.gaps)]
    return f"{', '.join(missing)} could not be listed" if missing else ""


def _workload_effects(
    cluster: ChangedCluster, hits: Iterable[Hit], tenants: Mapping[str, str]
) -> Iterator[WorkloadEffect]:
    """The worst effect of each workload."""
    seen: set[str] = set()
    for hit in sorted(hits, key=lambda one: _ORDER.index(one.impact)):
        uid = as_text(at(hit.workload, "metadata", "uid"))
        if uid not in seen:
            seen.add(uid)
            yield _effect(cluster, hit, tenants)


def _hits(cluster: ChangedCluster) -> tuple[tuple[Hit, ...], str]:
    """All effects on workloads, and why some may be missing."""
    evicted = tuple(find_evicted(cluster))
    uids = frozenset(as_text(at(hit.workload, "metadata", "uid")) for hit in evicted)
    admissions = find_admissions(cluster, uids)
    return (*evicted, *find_stranded(cluster), *admissions.hits, *find_reclaimable(cluster)), admissions.unknown


def _effect(cluster: ChangedCluster, hit: Hit, tenants: Mapping[str, str]) -> WorkloadEffect:
    namespace = as_text(at(hit.workload, "metadata", "namespace"))
    kind, name = owner_of(hit.workload)
    return WorkloadEffect(
        cluster=cluster.name,
        namespace=namespace,
        name=name,
        kind=kind,
        queue=queue_of(hit.workload) or _queue_before(cluster, hit.workload),
        tenant=tenants.get(namespace, ""),
        impact=hit.impact,
        why=hit.why,
        by=hit.by,
    )


def _queue_before(cluster: ChangedCluster, workload: Manifest) -> str:
    local = as_text(at(workload, "spec", "queueName"))
    found = cluster.before.local_queues.get((as_text(at(workload, "metadata", "namespace")), local))
    return as_text(at(found, "spec", "clusterQueue")) or local


def _tenants_of_queues(spec: FleetSpec) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for tenant in spec.tenants:
        found[tenant.queue] = (*found.get(tenant.queue, ()), tenant.name)
    return found


def _tenants_of_namespaces(spec: FleetSpec) -> Mapping[str, str]:
    return {namespace: tenant.name for tenant in spec.tenants for namespace in tenant.namespaces}
