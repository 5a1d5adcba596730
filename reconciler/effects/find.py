"""The effects of a plan. Pure: the spec, the plan and the live objects of the clusters decide."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.admission.state import ClusterState
from reconciler.effects.evictions import AGAIN, Hit, find_admissions, find_evicted, find_stranded
from reconciler.effects.model import Effects, Impact, QuotaEffect, WorkloadEffect, is_relevant, is_scheduled
from reconciler.effects.reclaimable import find_reclaimable
from reconciler.effects.states import NEEDED, ChangedCluster, owner_of, read_change
from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    available,
    potential,
)
from reconciler.kueue.reading import as_text, at, quantity_of
from reconciler.kueue.workloads import queue_of
from reconciler.objects import ClusterName, Gap, Manifest, Ref
from reconciler.plan.model import Change, ClusterPlan, Plan
from reconciler.quantity import Quantity
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.model import FleetSpec

_ORDER = tuple(Impact)
# A running workload loses its quota, or may lose it at any time.
LOSING = frozenset({Impact.EVICTED, Impact.PREEMPTED, Impact.RECLAIMABLE})
SCHEDULING = "what the scheduler does next"
Tenants = Mapping[str, tuple[str, ...]]


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
    unlisted = {gap.kind for gap in objects.gaps}
    missing = [kind for group, kind in NEEDED if (group, kind) in unlisted]
    return f"{', '.join(missing)} could not be listed" if missing else ""


def _workload_effects(
    cluster: ChangedCluster, hits: Iterable[Hit], tenants: Mapping[str, str]
) -> Iterator[WorkloadEffect]:
    """The worst effect of each workload."""
    seen: set[str] = set()
    for hit in sorted(hits, key=lambda one: _ORDER.index(one.impact)):
        uid = _uid(hit)
        if uid not in seen:
            seen.add(uid)
            yield _workload_effect(cluster, hit, tenants)


def _hits(cluster: ChangedCluster) -> tuple[tuple[Hit, ...], str]:
    """All effects on workloads, and why some may be missing."""
    evicted = tuple(find_evicted(cluster))
    uids = frozenset(map(_uid, evicted))
    admissions = find_admissions(cluster, uids)
    found = (*evicted, *find_stranded(cluster), *admissions.hits, *find_reclaimable(cluster))
    return tuple(_for_good(found)), admissions.unknown


def _for_good(hits: Sequence[Hit]) -> Iterator[Hit]:
    """A running workload that loses its quota, and could not be admitted again, has one row that says both."""
    never = {_uid(hit) for hit in hits if hit.impact is Impact.NEVER}
    lost = {_uid(hit) for hit in hits if hit.impact in LOSING}
    for hit in hits:
        if hit.impact in LOSING and _uid(hit) in never:
            yield replace(hit, why=f"{hit.why}; {AGAIN}")
        elif hit.impact is not Impact.NEVER or _uid(hit) not in lost:
            yield hit


def _uid(hit: Hit) -> str:
    return as_text(at(hit.workload, "metadata", "uid"))


def _workload_effect(cluster: ChangedCluster, hit: Hit, tenants: Mapping[str, str]) -> WorkloadEffect:
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


def quota_effects(cluster: ChangedCluster, tenants: Tenants) -> Iterator[QuotaEffect]:
    """The queues whose own quota, or whose reach through their cohort, the plan changes."""
    before, after = cluster.before.tree, cluster.after.tree
    if before is None or after is None:
        return
    for node in sorted(_queues(before) | _queues(after)):
        for pair in sorted(_pairs(before, node) | _pairs(after, node)):
            found = _quota_effect(cluster, before, after, node, pair, tenants)
            if _numbers(found, is_after=False) != _numbers(found, is_after=True):
                yield found


def _quota_effect(
    cluster: ChangedCluster,
    before: QuotaTree,
    after: QuotaTree,
    node: NodeName,
    pair: FlavorResource,
    tenants: Tenants,
) -> QuotaEffect:
    used = cluster.before.usage[node].get(pair, 0) if node in before.nodes else 0
    return QuotaEffect(
        cluster=cluster.name,
        queue=node.name,
        tenants=tenants.get(node.name, ()),
        flavor=pair.flavor,
        resource=pair.name,
        nominal_before=_nominal(before, node, pair),
        nominal_after=_nominal(after, node, pair),
        most_before=_most(before, node, pair),
        most_after=_most(after, node, pair),
        lent_before=_lendable(before, node, pair),
        lent_after=_lendable(after, node, pair),
        free_before=_free(cluster.before, node, pair),
        free_after=_free(cluster.after, node, pair),
        in_use=quantity_of(pair.name, used),
    )


def _numbers(effect: QuotaEffect, *, is_after: bool) -> tuple[Quantity | None, Quantity, Quantity]:
    if is_after:
        return effect.nominal_after, effect.most_after, effect.lent_after
    return effect.nominal_before, effect.most_before, effect.lent_before


def _queues(tree: QuotaTree) -> set[NodeName]:
    return {name for name in tree.nodes if name.kind is NodeKind.QUEUE}


def _pairs(tree: QuotaTree, node: NodeName) -> set[FlavorResource]:
    return set(tree.nodes[node].quotas) if node in tree.nodes else set()


def _nominal(tree: QuotaTree, node: NodeName, pair: FlavorResource) -> Quantity | None:
    quota = tree.nodes[node].quotas.get(pair) if node in tree.nodes else None
    return None if quota is None else quantity_of(pair.name, quota.nominal)


def _most(tree: QuotaTree, node: NodeName, pair: FlavorResource) -> Quantity:
    has_quota = node in tree.nodes and pair in tree.nodes[node].quotas
    return quantity_of(pair.name, potential(tree, node, pair) if has_quota else 0)


def _free(state: ClusterState, node: NodeName, pair: FlavorResource) -> Quantity:
    tree = state.tree
    has_quota = tree is not None and node in tree.nodes and pair in tree.nodes[node].quotas
    amount = max(0, available(tree, node, pair, state.usage)) if tree is not None and has_quota else 0
    return quantity_of(pair.name, amount)


def _lendable(tree: QuotaTree, node: NodeName, pair: FlavorResource) -> Quantity:
    """What the cohort may take of an idle queue; without a cohort that is nothing."""
    if node not in tree.nodes or tree.nodes[node].parent is None:
        return quantity_of(pair.name, 0)
    quota = tree.nodes[node].quotas.get(pair, NO_QUOTA)
    limit = quota.nominal if quota.lending_limit is None else min(quota.lending_limit, quota.nominal)
    return quantity_of(pair.name, limit)
