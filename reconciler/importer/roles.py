"""The role of each cluster: a MultiKueueConfig makes a manager, and the clusters that it leads to are its workers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.importer.model import ObservedContexts
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName
from reconciler.snapshot.model import ClusterObjects
from reconciler.spec.enums import Role


@dataclass(frozen=True, slots=True)
class FoundRoles:
    """The roles, the cluster of each MultiKueueCluster by its manager and name, and what could not be recognized."""

    roles: Mapping[ClusterName, Role]
    members: Mapping[tuple[ClusterName, str], ClusterName]
    notes: tuple[str, ...] = ()

    @property
    def managers(self) -> tuple[ClusterName, ...]:
        return tuple(name for name, role in self.roles.items() if role is Role.MANAGER)

    def workers_of(self, manager: ClusterName) -> tuple[ClusterName, ...]:
        return tuple(dict.fromkeys(cluster for (of, _), cluster in self.members.items() if of == manager))


def find_roles(seen: ObservedContexts) -> FoundRoles:
    """Recognize the roles; of several fleets in one kubeconfig each has its manager."""
    managers = [cluster for cluster in seen.reachable if cluster.of(GROUP, "MultiKueueConfig")]
    roles = {cluster.name: Role.MANAGER if cluster in managers else Role.STANDALONE for cluster in seen.reachable}
    others = [cluster for cluster in seen.reachable if cluster not in managers]
    members: dict[tuple[ClusterName, str], ClusterName] = {}
    notes: list[str] = []
    for manager in managers:
        unknown: list[str] = []
        for entry in manager.of(GROUP, "MultiKueueCluster"):
            name = as_text(at(entry, "metadata", "name"))
            found = _member(name, manager, others, seen)
            if found is None:
                unknown.append(name)
            else:
                members[manager.name, name] = found
                roles[found] = Role.WORKER
        notes += _notes(manager, others, unknown, roles)
    return FoundRoles(roles, members, tuple(notes))


def _member(
    name: str, manager: ClusterObjects, others: list[ClusterObjects], seen: ObservedContexts
) -> ClusterName | None:
    """The cluster of a MultiKueueCluster: by the address or certificate authority in its Secret, or by its name."""
    credential = seen.credentials.get((manager.name, name))
    endpoint = credential.endpoint if credential else None
    servers = {other.name: seen.servers[other.name] for other in others if other.name in seen.servers}
    if endpoint is not None:
        by_address = [known for known, own in servers.items() if own.server.rstrip("/") == endpoint.server.rstrip("/")]
        by_authority = [known for known, own in servers.items() if own.ca and own.ca.strip() == endpoint.ca.strip()]
        for found in (by_address, by_authority):
            if len(found) == 1:
                return found[0]
    return next((other.name for other in others if name in (other.name, seen.contexts[other.name])), None)


def _notes(
    manager: ClusterObjects,
    others: list[ClusterObjects],
    unknown: list[str],
    roles: dict[ClusterName, Role],
) -> Iterator[str]:
    if unknown:
        names = ", ".join(unknown)
        yield (
            f"{manager.name}: no context is recognized as the cluster of MultiKueueCluster {names}: add its --context, "
            "or set the role of its Cluster to worker in clusters.yaml"
        )
    submits = {_address(entry) for entry in manager.of(GROUP, "LocalQueue")}
    for other in others:
        if roles[other.name] is Role.STANDALONE and unknown:
            shared = submits & {_address(entry) for entry in other.of(GROUP, "LocalQueue")}
            if shared:
                # MultiKueue finds the queue of a job on a worker by its namespace and name.
                roles[other.name] = Role.WORKER
                yield f"{other.name}: is a worker, because it has the same LocalQueues as {manager.name}"


def _address(entry: object) -> tuple[str, str]:
    return as_text(at(entry, "metadata", "namespace")), as_text(at(entry, "metadata", "name"))
