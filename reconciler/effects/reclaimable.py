"""Workloads above what their queue has of its own after a plan, which other queues may then reclaim."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.admission.state import ClusterState
from reconciler.effects.evictions import NEVER, Hit
from reconciler.effects.model import Impact
from reconciler.effects.states import ChangedCluster
from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    lineage,
    subtree_quota,
)
from reconciler.kueue.reading import amount_of, as_text, at
from reconciler.kueue.workloads import condition_of, has_condition, priority_of, queue_of, usage_of
from reconciler.objects import Manifest


def find_reclaimable(cluster: ChangedCluster) -> Iterator[Hit]:
    """Workloads that others may reclaim, if it is more than before, in the order in which Kueue preempts them."""
    before, after = cluster.before.tree, cluster.after.tree
    if before is None or after is None:
        return
    holding = _by_queue(cluster)
    seen: set[str] = set()
    for node, queue in after.nodes.items():
        if node.kind is not NodeKind.QUEUE or node not in before.nodes or queue.parent is None:
            continue
        for pair in sorted(cluster.before.usage[node]):
            claimants = _claimants(cluster.after, after, node, pair)
            above = _above(cluster, after, node, pair)
            has_claimants = bool(_claimants(cluster.before, before, node, pair))
            if claimants and above > (_above(cluster, before, node, pair) if has_claimants else 0):
                yield from _candidates(holding.get(node.name, ()), pair, above, claimants, seen)


def _above(cluster: ChangedCluster, tree: QuotaTree, node: NodeName, pair: FlavorResource) -> int:
    """What a queue uses now beyond the quota that it has of its own in this tree."""
    quota = tree.nodes[node].quotas.get(pair, NO_QUOTA)
    return max(0, cluster.before.usage[node].get(pair, 0) - quota.nominal)


def _by_queue(cluster: ChangedCluster) -> Mapping[str, list[Manifest]]:
    found: dict[str, list[Manifest]] = {}
    for workload in cluster.workloads:
        if queue := queue_of(workload):
            found.setdefault(queue, []).append(workload)
    return {queue: sorted(held, key=_candidate_order) for queue, held in found.items()}


def _candidate_order(workload: Manifest) -> tuple[bool, int, int, str]:
    """Kueue preempts workloads that are already evicted first, then those of low priority, then the latest ones."""
    reserved = as_text(condition_of(workload, "QuotaReserved").get("lastTransitionTime"))
    latest_first = -int("".join(filter(str.isdigit, reserved)) or 0)
    uid = as_text(at(workload, "metadata", "uid"))
    return not has_condition(workload, "Evicted"), priority_of(workload), latest_first, uid


def _claimants(state: ClusterState, tree: QuotaTree, node: NodeName, pair: FlavorResource) -> tuple[str, ...]:
    """Queues that may reclaim from this one, and that use less than their own quota.

    What a queue borrows within a cohort that itself borrows nothing can be reclaimed only from within that cohort.
    """
    cohorts = lineage(tree, node)[1:]
    top = next((one for one in cohorts if not _borrows(state, tree, one, pair)), cohorts[-1] if cohorts else node)
    found = []
    for other, entry in tree.nodes.items():
        if other == node or other.kind is not NodeKind.QUEUE or pair not in entry.quotas:
            continue
        rule = as_text(at(state.queues[other.name], "spec", "preemption", "reclaimWithinCohort")) or NEVER
        used = state.usage[other].get(pair, 0)
        if rule != NEVER and used < entry.quotas[pair].nominal and top in lineage(tree, other):
            found.append(other.name)
    return tuple(sorted(found))


def _borrows(state: ClusterState, tree: QuotaTree, node: NodeName, pair: FlavorResource) -> bool:
    return state.usage[node].get(pair, 0) > subtree_quota(tree, node, pair)


def _candidates(
    holding: Iterable[Manifest],
    pair: FlavorResource,
    above: int,
    claimants: tuple[str, ...],
    seen: set[str],
) -> Iterator[Hit]:
    for workload in holding:
        if above <= 0:
            return
        amount = usage_of(workload).get(pair.flavor, {}).get(pair.name)
        if amount is None or not amount.nanos:
            continue
        above -= amount_of(pair.name, str(amount))
        uid = as_text(at(workload, "metadata", "uid"))
        if uid not in seen:
            seen.add(uid)
            why = f"{pair.name} of flavor {pair.flavor} is then above the queue's own quota"
            yield Hit(workload, Impact.RECLAIMABLE, why, claimants)
