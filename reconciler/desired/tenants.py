"""Namespaces and LocalQueues of the teams."""

from collections.abc import Iterator, Mapping

from reconciler.desired.model import DesiredObject
from reconciler.desired.shape import desired_object, kueue_manifest, without_empty
from reconciler.spec.choices import Dispatch, Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue, Tenant


def tenant_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """The same namespaces and LocalQueues wherever the team's queue is: MultiKueue finds its way by their names.

    Jobs that KubeStellar carries find a namespace on the worker, and no queue.
    """
    queues = {queue.name: queue for queue in spec.queues}
    labels = _namespace_labels(spec)
    seen: dict[tuple[str, str], DesiredObject] = {}
    for tenant in spec.tenants:
        for cluster in clusters_of_queue(spec, queues.get(tenant.queue)):
            for namespace in tenant.namespaces:
                if not is_builtin(namespace) and (cluster.name, namespace) not in seen:
                    seen[cluster.name, namespace] = _namespace(cluster, namespace, tenant, labels[namespace])
                if cluster.role is Role.MANAGER or not is_carried(queues.get(tenant.queue)):
                    yield desired_object(cluster, _local_queue(tenant, namespace), tenant.document)
    yield from seen.values()


def clusters_of_queue(spec: FleetSpec, queue: Queue | None) -> tuple[Cluster, ...]:
    """Where a queue is: on the clusters that run its jobs, and on the manager that takes them in."""
    if queue is None:
        return ()
    runs = spec.selected(queue.clusters)
    manager = spec.manager
    is_sent = queue.dispatch is not Dispatch.NONE and manager is not None and manager not in runs
    return (manager, *runs) if is_sent and manager else runs


def is_carried(queue: Queue | None) -> bool:
    return queue is not None and queue.dispatch is Dispatch.KUBESTELLAR


def is_builtin(namespace: str) -> bool:
    """Namespaces that every cluster brings. kfleet uses them, but never owns them: it could come to delete them."""
    return namespace == "default" or namespace.startswith("kube-")


def _namespace_labels(spec: FleetSpec) -> Mapping[str, Mapping[str, str]]:
    """Each namespace with the labels that all of its teams ask for."""
    found: dict[str, dict[str, str]] = {}
    for tenant in spec.tenants:
        for namespace in tenant.namespaces:
            found.setdefault(namespace, {}).update(tenant.namespace_labels)
    return found


def _namespace(cluster: Cluster, name: str, tenant: Tenant, labels: Mapping[str, str]) -> DesiredObject:
    metadata = without_empty({"name": name, "labels": dict(labels)})
    return desired_object(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, tenant.document)


def _local_queue(tenant: Tenant, namespace: str) -> dict[str, object]:
    weight = tenant.fair_sharing_weight
    content = {
        "clusterQueue": tenant.queue,
        "stopPolicy": "" if tenant.stop_policy is StopPolicy.NONE else tenant.stop_policy.value,
        "fairSharing": {} if weight is None else {"weight": str(weight)},
    }
    return kueue_manifest("LocalQueue", tenant.local_queue, without_empty(content), namespace)
