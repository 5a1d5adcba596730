"""The part of `observe` that lists live queues, workloads, jobs and nodes, for views and effects.

It also finds out which Cluster a hand-written MultiKueueCluster of the manager is.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import CONFIG_KEY
from reconciler.kueue.kinds import GROUP, KINDS
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue_config.observe import CONFIG_MAP, find_configuration, find_deployment, release_of
from reconciler.multikueue.model import read_credential
from reconciler.objects import ApiKind, ClusterName, Gap, Manifest, group_of
from reconciler.pipeline.observe import Connections
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.members import Members, foreign_members, members_by_secret, with_cluster_names
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_queues
from reconciler.state.observe import by_kind

PARALLEL = 8
# Always listed beside the kinds of Kueue. The kinds of other jobs follow from the owners of workloads.
OTHER_KINDS: tuple[KindKey, ...] = (("", "Namespace"), ("", "Node"), ("batch", "Job"))
ADMISSION_KINDS: tuple[KindKey, ...] = (
    ("", "Namespace"),
    *(
        (GROUP, kind)
        for kind in ("ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "AdmissionCheck", "Workload")
    ),
)


class Listed(NamedTuple):
    """The objects of one kind, or why they could not be listed."""

    kind: KindKey
    objects: tuple[Manifest, ...] = ()
    problem: str = ""


class Installation(NamedTuple):
    """What runs on a cluster: its Kubernetes, its Kueue, and the Configuration of that."""

    kubernetes: str = ""
    kueue: str = ""
    configuration: str = ""


def observe_fleet_objects(spec: FleetSpec, connections: Connections) -> FleetObjects:
    """List all clusters in parallel. A cluster or kind that cannot be read is a gap, and not an empty list."""
    seen = _observe_kinds(spec, connections, spec.clusters, (*_wanted_kinds(), *_downsynced_kinds(spec)))
    return _with_cluster_names(seen, spec, connections)


def _with_cluster_names(seen: FleetObjects, spec: FleetSpec, connections: Connections) -> FleetObjects:
    """Hand-written MultiKueueClusters under the names of their Clusters: all that reads the objects joins by these."""
    manager = seen.clusters.get(seen.manager) if seen.manager else None
    if manager is None:
        return seen
    members = find_members(spec, connections.clients, manager.of(GROUP, "MultiKueueCluster"))
    if not members:
        return seen
    objects = {
        key: tuple(with_cluster_names(entry, members) for entry in entries) for key, entries in manager.objects.items()
    }
    return replace(seen, clusters={**seen.clusters, manager.name: replace(manager, objects=objects)})


def observe_queue_objects(spec: FleetSpec, connections: Connections) -> FleetObjects:
    """List only what decides about admission: kfleet's account may list these kinds wherever it writes queues.

    Clusters that git no longer names are listed too, because a plan can drain their queues.
    """
    return _observe_kinds(spec, connections, (*spec.clusters, *connections.removed), ADMISSION_KINDS, has_jobs=False)


def _observe_kinds(
    spec: FleetSpec,
    connections: Connections,
    clusters: tuple[Cluster, ...],
    kinds: tuple[KindKey, ...],
    *,
    has_jobs: bool = True,
) -> FleetObjects:
    lost = {**connections.lost, **{gap.cluster: gap.why for gap in connections.gaps}}

    def observe_one(cluster: Cluster) -> ClusterObjects:
        client = connections.clients.get(cluster.name)
        if client is None:
            return unreachable(cluster, lost.get(cluster.name, "no connection"))
        return observe_cluster(cluster, client, kinds, has_jobs=has_jobs)

    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        seen = list(pool.map(observe_one, clusters))
    return FleetObjects(
        taken_at=connections.now,
        manager=spec.manager.name if spec.manager else None,
        clusters={cluster.name: cluster for cluster in seen},
    )


def unreachable(cluster: Cluster, problem: str) -> ClusterObjects:
    gap = Gap(cluster.name, "the cluster", problem)
    namespace = cluster.kueue.namespace
    return ClusterObjects(name=cluster.name, role=cluster.role, is_reachable=False, namespace=namespace, gaps=(gap,))


def observe_cluster(
    cluster: Cluster, client: ClusterClient, kinds: tuple[KindKey, ...], *, has_jobs: bool
) -> ClusterObjects:
    """List these kinds, and with `has_jobs` also the kinds of jobs that own the listed workloads."""
    try:
        served = by_kind(client.discover())
    except ClusterError as error:
        return unreachable(cluster, error.problem)
    wanted = [served[key] for key in dict.fromkeys(kinds) if key in served]
    with ThreadPoolExecutor(PARALLEL) as pool:
        facts = pool.submit(observe_installation, client, cluster.kueue.namespace)
        first = list(pool.map(lambda versions: _list(client, versions[0]), wanted))
        owners = _owner_kinds(first) if has_jobs else ()
        more = [served[key] for key in sorted(owners) if key in served]
        listed = [*first, *pool.map(lambda versions: _list(client, versions[0]), more)]
    return ClusterObjects(
        name=cluster.name,
        role=cluster.role,
        namespace=cluster.kueue.namespace,
        objects={one.kind: one.objects for one in listed if not one.problem},
        gaps=tuple(_gaps(cluster.name, listed)),
        kubernetes=facts.result().kubernetes,
        kueue=facts.result().kueue,
        configuration=facts.result().configuration,
    )


def _downsynced_kinds(spec: FleetSpec) -> tuple[KindKey, ...]:
    """The kinds of jobs that KubeStellar downsyncs: on a worker no Workload refers to them."""
    if not downsynced_queues(spec):
        return ()
    return tuple((kind.group, kind.kind) for kind in spec.fleet.kubestellar.kinds)


def _wanted_kinds() -> Iterator[KindKey]:
    yield from ((GROUP, kind.name) for kind in KINDS)
    yield from OTHER_KINDS


def _owner_kinds(listed: Iterable[Listed]) -> set[KindKey]:
    """The kinds of jobs that own workloads and are not listed yet."""
    seen = {one.kind for one in listed}
    workloads = (entry for one in listed if one.kind == (GROUP, "Workload") for entry in one.objects)
    owners = (owner for entry in workloads for owner in as_list(at(entry, "metadata", "ownerReferences")))
    return {(group_of(owner), as_text(owner.get("kind"))) for owner in owners} - seen


def _list(client: ClusterClient, kind: ApiKind) -> Listed:
    key = (kind.group, kind.kind)
    try:
        return Listed(key, tuple(_typed(entry, kind) for entry in client.list(kind.collection())))
    except ClusterError as error:
        return Listed(key, problem=error.problem)


def _typed(entry: Manifest, kind: ApiKind) -> Manifest:
    return {**entry, "apiVersion": kind.api_version, "kind": kind.kind}


def observe_installation(client: ClusterClient, namespace: str) -> Installation:
    """Versions and Kueue's Configuration. Accounts with few permissions cannot read them; that is not a gap."""
    try:
        release = as_text(client.get("/version").get("gitVersion"))
    except ClusterError:
        release = ""
    try:
        found = find_configuration(client, namespace)
        mounted = as_text(at(found, "metadata", "name")) or CONFIG_MAP
        deployment = find_deployment(client, namespace, mounted)
    except ClusterError:
        return Installation(release)
    text = as_text(at(found, "data", CONFIG_KEY))
    return Installation(release, release_of(deployment), text)


def _gaps(cluster: ClusterName, listed: Iterable[Listed]) -> Iterator[Gap]:
    for one in listed:
        if one.problem:
            group, kind = one.kind
            yield Gap(cluster, f"{kind}.{group}" if group else kind, one.problem, kind=one.kind)


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
