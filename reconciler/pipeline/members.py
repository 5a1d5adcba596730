"""The part of `observe` that finds out which Cluster a hand-written MultiKueueCluster of the manager is."""

from collections.abc import Iterable, Mapping

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.multikueue.model import read_credential
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.members import Members, foreign_members, members_by_secret
from reconciler.spec.model import FleetSpec


def find_members(
    spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient], manifests: Iterable[Manifest]
) -> Members:
    """By `credentials.secret` of the Cluster, or else by the server in the Secret, of which nothing else is kept.

    A Secret that may not be read, or leads to no Cluster, leaves the name as it is.
    """
    secrets = foreign_members(spec, manifests)
    found = dict(members_by_secret(spec, secrets))
    manager = spec.manager
    client = clients.get(manager.name) if manager else None
    if manager is None or client is None:
        return found
    for name, secret in secrets.items():
        path = f"/api/v1/namespaces/{manager.kueue.namespace}/secrets/{secret}"
        if name not in found and secret and (cluster := _by_server(client, path, clients)):
            found[name] = cluster
    return found


def _by_server(client: ClusterClient, path: str, clients: Mapping[ClusterName, ClusterClient]) -> ClusterName | None:
    try:
        endpoint = read_credential(client.find(path)).endpoint
    except ClusterError:
        return None
    if endpoint is None:
        return None
    own = {name: other.endpoint for name, other in clients.items() if other is not client}
    by_address = [name for name, one in own.items() if one.server.rstrip("/") == endpoint.server.rstrip("/")]
    by_authority = [name for name, one in own.items() if one.ca and one.ca.strip() == endpoint.ca.strip()]
    return next((found[0] for found in (by_address, by_authority) if len(found) == 1), None)
