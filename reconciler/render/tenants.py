"""Namespaces and LocalQueues of the tenants."""

from collections.abc import Iterator, Mapping

from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, without_empty
from reconciler.spec.enums import Dispatch, Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue, Tenant
from reconciler.spec.places import clusters_of_queues


def tenant_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """The same namespaces and LocalQueues on every cluster of the tenant's queue: MultiKueue dispatches by name.

    For jobs that KubeStellar downsyncs there is a namespace on the worker, but no LocalQueue.
    """
    queues = {queue.name: queue for queue in spec.queues}
    places = clusters_of_queues(spec)
    labels = _namespace_labels(spec)
    seen: dict[tuple[str, str], DesiredObject] = {}
    for tenant in spec.tenants:
        for cluster in places.get(tenant.queue, ()):
            for namespace in tenant.namespaces:
                if not is_builtin(namespace) and (cluster.name, namespace) not in seen:
                    seen[cluster.name, namespace] = _namespace(cluster, namespace, tenant, labels[namespace])
                if cluster.role is Role.MANAGER or not is_downsynced(queues.get(tenant.queue)):
                    yield desired_object(cluster, _local_queue(tenant, namespace), tenant.document)
    yield from seen.values()


def is_downsynced(queue: Queue | None) -> bool:
    return queue is not None and queue.dispatch is Dispatch.KUBESTELLAR


def is_builtin(namespace: str) -> bool:
    """Namespaces that every cluster has. kfleet uses them but never owns them, because it might delete them."""
    return namespace == "default" or namespace.startswith("kube-")


def _namespace_labels(spec: FleetSpec) -> Mapping[str, Mapping[str, str]]:
    """Each namespace with the labels of all of its tenants."""
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
