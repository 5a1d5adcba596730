"""The ClusterQueues of all clusters, and the same joined by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.quota_tree import FlavorResource, NodeKind, NodeName
from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.kueue.workloads import HELD, condition_of
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import ZERO, Quantity, total
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.places import clusters_of_queue
from reconciler.view.live import LiveCluster, first_line, name_of
from reconciler.view.model import Backing, PoolEntry, QueueEntry, QueueResource
from reconciler.view.quotas import ClusterQuotas, shares

Pools = tuple[PoolEntry, ...] | None


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What the queues of one cluster have in common. `nodes` has the count of each flavor, or None if not observed."""

    live: LiveCluster
    quotas: ClusterQuotas
    tenants: Mapping[str, tuple[str, ...]]
    pools: Mapping[str, tuple[str, ...]] | None = None
    nodes: Mapping[str, int] | None = None
    local_queues: Mapping[str, tuple[str, ...]] | None = field(default=None)


def queue_entries(spec: FleetSpec, live: LiveCluster, quotas: ClusterQuotas, pools: Pools) -> Iterator[QueueEntry]:
    """The queues of a cluster: those that it has, or, if it was not observed, those that it should have."""
    tenants = _tenants(spec)
    if live.queues is None:
        yield from (_unseen(live.name, queue, tenants) for queue in _declared(spec, live.name))
        return
    context = ClusterContext(
        live=live,
        quotas=quotas,
        tenants=tenants,
        pools=_pools(live.name, pools),
        nodes=_nodes(live),
        local_queues=_local_queues(live),
    )
    for name in sorted(live.queues):
        yield _entry(context, name, live.queues[name])


def _entry(context: ClusterContext, name: str, queue: Manifest) -> QueueEntry:
    active = condition_of(queue, "Active")
    stopped, status = as_text(at(queue, "spec", "stopPolicy")), as_map(queue.get("status"))
    path = context.quotas.path_of(name)[:-1]
    cohort = as_text(at(queue, "spec", "cohortName"))
    is_active = active.get("status") == "True" if active else None
    why = f"{active.get('reason')}: {first_line(active.get('message'))}"
    return QueueEntry(
        id=f"{context.live.name}/{name}",
        cluster=context.live.name,
        name=name,
        cohort=cohort,
        cohort_path=tuple(one.name for one in path) or ((cohort,) if cohort else ()),
        stopped=stopped if stopped in HELD else "",
        is_active=is_active,
        inactive_reason=why if is_active is False else "",
        tenants=context.tenants.get(name, ()),
        local_queues=None if context.local_queues is None else context.local_queues.get(name, ()),
        dispatch=context.live.dispatch[name],
        strategy=as_text(at(queue, "spec", "queueingStrategy")),
        # Kueue leaves out a count of 0 in none of its versions; before it has seen a queue there is no status at all.
        pending=_count(status, "pendingWorkloads"),
        reserving=_count(status, "reservingWorkloads"),
        admitted=_count(status, "admittedWorkloads"),
        resources=tuple(_resources(context, name, queue)),
    )


def _unseen(cluster: ClusterName, queue: Queue, tenants: Mapping[str, tuple[str, ...]]) -> QueueEntry:
    return QueueEntry(
        id=f"{cluster}/{queue.name}",
        cluster=cluster,
        name=queue.name,
        cohort=queue.cohort,
        cohort_path=(queue.cohort,) if queue.cohort else (),
        stopped="",
        is_active=None,
        inactive_reason="",
        tenants=tenants.get(queue.name, ()),
        local_queues=None,
        dispatch=Dispatch.NONE,
        strategy="",
        pending=None,
        reserving=None,
        admitted=None,
        resources=None,
    )


def _resources(context: ClusterContext, name: str, queue: Manifest) -> Iterator[QueueResource]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in map(as_map, as_list(at(group, "flavors"))):
            for quota in map(as_map, as_list(flavor.get("resources"))):
                pair = FlavorResource(as_text(flavor.get("name")), as_text(quota.get("name")))
                yield _resource(context, name, pair, quota)


def _resource(context: ClusterContext, name: str, pair: FlavorResource, quota: Manifest) -> QueueResource:
    nominal = quantity_at(quota.get("nominalQuota")) or ZERO
    reserved = context.quotas.reserved[name].get(pair)
    loans = context.quotas.loans_of(name, pair)
    own = NodeName(NodeKind.QUEUE, name)
    lent = None if loans is None else shares(loans, pair.name, own.name, is_borrower=False)
    borrowed = None if loans is None else shares(loans, pair.name, own.name, is_borrower=True)
    return QueueResource(
        flavor=pair.flavor,
        resource=pair.name,
        nominal=nominal,
        used=context.quotas.used[name].get(pair),
        reserved=reserved,
        borrowed=None if reserved is None else _beyond(context, name, reserved, nominal),
        lent=None if lent is None else total(share.amount for share in lent),
        borrowing_limit=quantity_at(quota.get("borrowingLimit")),
        lending_limit=quantity_at(quota.get("lendingLimit")),
        borrowed_from=borrowed,
        lent_to=lent,
        backing=Backing(
            None if context.nodes is None else context.nodes.get(pair.flavor, 0),
            None if context.pools is None else context.pools.get(pair.flavor, ()),
        ),
    )


def _beyond(context: ClusterContext, name: str, reserved: Quantity, nominal: Quantity) -> Quantity:
    """A queue without a cohort borrows nothing, also if its quota was lowered below what it has admitted."""
    has_cohort = bool(at((context.live.queues or {})[name], "spec", "cohortName"))
    return reserved - nominal if has_cohort and reserved > nominal else ZERO


def _count(status: Manifest, name: str) -> int | None:
    value = status.get(name)
    if value is None and status.get("conditions"):
        return 0
    return value if isinstance(value, int) else None


def _tenants(spec: FleetSpec) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for tenant in spec.tenants:
        found[tenant.queue] = (*found.get(tenant.queue, ()), tenant.name)
    return found


def _declared(spec: FleetSpec, cluster: ClusterName) -> Iterator[Queue]:
    for queue in spec.queues:
        for one in clusters_of_queue(spec, queue):
            if one.name == cluster and has_cluster_queue(queue, one):
                yield queue


def has_cluster_queue(queue: Queue, cluster: Cluster) -> bool:
    """KubeStellar downsyncs jobs without a queue on the worker."""
    return queue.dispatch is not Dispatch.KUBESTELLAR or cluster.role is Role.MANAGER


def _pools(cluster: ClusterName, pools: Pools) -> Mapping[str, tuple[str, ...]] | None:
    if pools is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for pool in pools:
        for key in pool.feeds:
            if key.cluster == cluster:
                found[key.flavor] = (*found.get(key.flavor, ()), pool.name)
    return found


def _local_queues(live: LiveCluster) -> Mapping[str, tuple[str, ...]] | None:
    if live.local_queues is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for (namespace, name), queue in sorted(live.local_queues.items()):
        found[queue] = (*found.get(queue, ()), f"{namespace}/{name}")
    return found


def _nodes(live: LiveCluster) -> Mapping[str, int] | None:
    """How many usable nodes have the labels of each flavor."""
    nodes, flavors = live.seen("", "Node"), live.seen(GROUP, "ResourceFlavor")
    if nodes is None or flavors is None:
        return None
    labels = [as_map(at(node, "metadata", "labels")).items() for node in nodes if _is_usable(node)]
    wanted = {name_of(flavor): as_map(at(flavor, "spec", "nodeLabels")).items() for flavor in flavors}
    return {name: sum(needed <= one for one in labels) for name, needed in wanted.items()}


def _is_usable(node: Manifest) -> bool:
    return condition_of(node, "Ready").get("status") == "True" and at(node, "spec", "unschedulable") is not True
