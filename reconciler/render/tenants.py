"""Namespaces and LocalQueues of the tenants, and RoleBindings of their members."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, without_empty
from reconciler.spec.enums import Dispatch, Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Member, Queue, Tenant
from reconciler.spec.places import clusters_of_queues

RBAC = "rbac.authorization.k8s.io"
ROLES = {"user": "kueue-batch-user-role", "admin": "kueue-batch-admin-role"}


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


def member_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """A RoleBinding per role in each namespace of a tenant, on the clusters where its jobs are submitted."""
    places = clusters_of_queues(spec)
    for tenant in spec.tenants:
        for cluster in submission_clusters(places.get(tenant.queue, ())):
            for namespace in tenant.namespaces:
                for role in ROLES:
                    if members := [one for one in tenant.members if one.role == role]:
                        yield desired_object(cluster, _binding(tenant, namespace, role, members), tenant.document)


def submission_clusters(clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
    """The manager if the queue is there, because it dispatches the jobs; otherwise every cluster of the queue."""
    return tuple(cluster for cluster in clusters if cluster.role is Role.MANAGER) or clusters


def _binding(tenant: Tenant, namespace: str, role: str, members: list[Member]) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"kfleet-{tenant.name}-{role}", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLES[role]},
        "subjects": [_subject(member, namespace) for member in members],
    }


def _subject(member: Member, namespace: str) -> dict[str, str]:
    if member.kind == "ServiceAccount":
        return {"kind": member.kind, "name": member.name, "namespace": member.namespace or namespace}
    return {"apiGroup": RBAC, "kind": member.kind, "name": member.name}
