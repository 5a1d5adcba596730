"""RoleBindings of the members of tenants to the roles that Kueue ships for users and administrators."""

from collections.abc import Iterator
from typing import Any

from reconciler.render.model import DesiredObject, desired_object
from reconciler.spec.enums import Role
from reconciler.spec.model import Cluster, FleetSpec, Member, Tenant
from reconciler.spec.places import clusters_of_queues

RBAC = "rbac.authorization.k8s.io"
ROLES = {"user": "kueue-batch-user-role", "admin": "kueue-batch-admin-role"}


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
