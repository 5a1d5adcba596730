"""The part of `observe` that reads single jobs: kinds that own no workload, and the pods of one namespace."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from reconciler.admission.jobs import FORMS
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.objects import ApiKind, ClusterName, Manifest
from reconciler.snapshot.model import FleetObjects, KindKey
from reconciler.state.observe import by_kind

PARALLEL = 8
# Listed in the namespace of the job: pods explain why an admitted job does not start, and ReplicaSets own some of them.
LISTED: tuple[KindKey, ...] = (("", "Pod"), ("apps", "ReplicaSet"))


def observe_named(
    objects: FleetObjects, clients: Mapping[ClusterName, ClusterClient], namespace: str, name: str
) -> dict[ClusterName, tuple[Manifest, ...]]:
    """Return the pods of the namespace, and the jobs of this name of kinds that the objects lack.

    Few accounts may read all of these kinds. One that cannot be read makes the answer shorter.
    """
    seen = [one.name for one in objects.reachable() if one.name in clients]
    with ThreadPoolExecutor(max(len(seen), 1)) as pool:
        found = pool.map(lambda one: tuple(_of_cluster(objects, clients[one], one, namespace, name)), seen)
        return dict(zip(seen, found, strict=True))


def _of_cluster(
    objects: FleetObjects, client: ClusterClient, cluster: ClusterName, namespace: str, name: str
) -> Iterator[Manifest]:
    try:
        served = by_kind(client.discover())
    except ClusterError:
        return
    known = objects.clusters[cluster].objects
    single = [served[key][0] for key in FORMS if key in served and key not in known and key not in LISTED]
    listed = [served[key][0] for key in LISTED if key in served and key not in known]
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = list(pool.map(lambda kind: _find(client, kind, namespace, name), single))
        lists = list(pool.map(lambda kind: _list(client, kind, namespace), listed))
    yield from (one for one in found if one is not None)
    yield from (one for entries in lists for one in entries)


def _find(client: ClusterClient, kind: ApiKind, namespace: str, name: str) -> Manifest | None:
    try:
        found = client.find(kind.path(namespace, name))
    except ClusterError:
        return None
    return None if found is None else _typed(found, kind)


def _list(client: ClusterClient, kind: ApiKind, namespace: str) -> Iterable[Manifest]:
    try:
        return tuple(_typed(entry, kind) for entry in client.list(kind.collection(namespace)))
    except ClusterError:
        return ()


def _typed(entry: Manifest, kind: ApiKind) -> Manifest:
    return {**entry, "apiVersion": kind.api_version, "kind": kind.kind}
