"""The quota of each queue before and after a plan."""

from collections.abc import Iterator, Mapping

from reconciler.admission.state import ClusterState
from reconciler.effects.model import QuotaEffect
from reconciler.effects.states import ChangedCluster
from reconciler.kueue.quota_tree import (
    NO_QUOTA,
    FlavorResource,
    NodeKind,
    NodeName,
    QuotaTree,
    available,
    potential,
)
from reconciler.kueue.resources import quantity_of
from reconciler.quantity import Quantity

Tenants = Mapping[str, tuple[str, ...]]


def quota_effects(cluster: ChangedCluster, tenants: Tenants) -> Iterator[QuotaEffect]:
    """The queues whose own quota, or whose reach through their cohort, the plan changes."""
    before, after = cluster.before.tree, cluster.after.tree
    if before is None or after is None:
        return
    for node in sorted(_queues(before) | _queues(after)):
        for pair in sorted(_pairs(before, node) | _pairs(after, node)):
            found = _effect(cluster, before, after, node, pair, tenants)
            if _numbers(found, is_after=False) != _numbers(found, is_after=True):
                yield found


def _effect(
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
