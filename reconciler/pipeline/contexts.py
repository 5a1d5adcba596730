"""Reads clusters that need not be in a fleet: the contexts of a kubeconfig, for `kfleet import` and `kfleet doctor`."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.importer.model import ObservedContexts, StoredVersions
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP, KINDS, Kind
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.multikueue.model import SeenCredential, read_credential
from reconciler.objects import ApiEndpoint, ClusterName, Gap, Manifest
from reconciler.pipeline.objects import observe_cluster, unreachable
from reconciler.pipeline.observe import remembering
from reconciler.snapshot.model import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import Cluster
from reconciler.spec.parse import parse_fleet

_PARALLEL = 16
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class _Observed(NamedTuple):
    """One cluster: its objects, its address, and the logins of its MultiKueueClusters by their names."""

    objects: ClusterObjects
    server: ApiEndpoint | None = None
    credentials: Mapping[str, SeenCredential] = {}
    served: frozenset[KindKey] | None = None
    stored: Mapping[str, StoredVersions] = {}
    gaps: tuple[Gap, ...] = ()


def observe_contexts(
    contexts: Mapping[ClusterName, str],
    kubeconfig: str,
    timeout: timedelta,
    kinds: tuple[KindKey, ...],
    *,
    is_thorough: bool = False,
) -> ObservedContexts:
    """Read all contexts at the same time. One that cannot be reached is a gap, and delays no other.

    A thorough look also reads the jobs of workloads, the kinds that are served, and the versions of definitions.
    """
    clusters = [_cluster(name, context, kubeconfig) for name, context in contexts.items()]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        seen = list(pool.map(lambda cluster: _observe(cluster, timeout, kinds, is_thorough=is_thorough), clusters))
    names = [one.objects.name for one in seen]
    return ObservedContexts(
        objects=FleetObjects(taken_at=datetime.now(UTC), clusters={one.objects.name: one.objects for one in seen}),
        contexts=dict(contexts),
        servers={name: one.server for name, one in zip(names, seen, strict=True) if one.server},
        credentials={
            (name, member): credential
            for name, one in zip(names, seen, strict=True)
            for member, credential in one.credentials.items()
        },
        served={one.objects.name: one.served for one in seen if one.served is not None},
        stored={one.objects.name: one.stored for one in seen},
        beside=tuple(gap for one in seen for gap in one.gaps),
    )


def _cluster(name: ClusterName, context: str, kubeconfig: str) -> Cluster:
    """A cluster of a fleet of its own: what a Cluster says is read the same way everywhere."""
    access = f"{{context: {_quoted(context)}" + (f", kubeconfig: {_quoted(kubeconfig)}}}" if kubeconfig else "}")
    head = "apiVersion: kfleet.dev/v1alpha1\n"
    text = (
        f"{head}kind: Fleet\nmetadata: {{name: contexts}}\n---\n"
        f"{head}kind: Cluster\nmetadata: {{name: {_quoted(name)}}}\nspec: {{role: standalone, access: {access}}}\n"
    )
    return parse_fleet(FleetFiles("the kubeconfig", "", {"fleet/contexts.yaml": text.encode()})).clusters[0]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _observe(cluster: Cluster, timeout: timedelta, kinds: tuple[KindKey, ...], *, is_thorough: bool) -> _Observed:
    try:
        client = open_cluster(cluster, timeout=timeout)
    except ClusterError as error:
        return _Observed(unreachable(cluster, error.problem))
    try:
        once = remembering(client)
        objects = observe_cluster(cluster, once, kinds, has_jobs=is_thorough)
        if not objects.is_reachable:
            return _Observed(objects)
        credentials, unread = _credentials(objects, client)
        found = _Observed(objects, client.endpoint, credentials)
        return _with_definitions(found._replace(gaps=unread), once) if is_thorough else found
    finally:
        client.close()


def _credentials(objects: ClusterObjects, client: ApiServer) -> tuple[Mapping[str, SeenCredential], tuple[Gap, ...]]:
    """The logins in Secrets. Few accounts may read them, and without them clusters are recognized by name."""
    found: dict[str, SeenCredential] = {}
    unread: dict[str, str] = {}
    for name, path in _login_paths(objects):
        try:
            found[name] = read_credential(client.find(path))
        except ClusterError as error:
            unread[name] = error.problem
    what = f"the logins of {', '.join(unread)}"
    return found, (Gap(objects.name, what, next(iter(unread.values()))),) if unread else ()


def _login_paths(objects: ClusterObjects) -> Iterator[tuple[str, str]]:
    for entry in objects.of(GROUP, "MultiKueueCluster"):
        source = at(to_canonical(entry).manifest, "spec", "clusterSource", "kubeConfig")
        location = as_text(at(source, "location"))
        if location and at(source, "locationType") != "Path":
            name = as_text(at(entry, "metadata", "name"))
            yield name, f"/api/v1/namespaces/{objects.namespace}/secrets/{location}"


def _with_definitions(found: _Observed, client: ApiServer) -> _Observed:
    """Add the kinds that are served, and the versions of Kueue's definitions. Few accounts may read the latter."""
    name = found.objects.name
    served = frozenset((kind.group, kind.kind) for kind in client.discover())
    present = [kind for kind in KINDS if (GROUP, kind.name) in served]

    def read(kind: Kind) -> StoredVersions | None:
        return _versions(client.find(f"{_DEFINITIONS}/{kind.plural}.{GROUP}"))

    try:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            stored = dict(zip([kind.name for kind in present], pool.map(read, present), strict=True))
    except ClusterError as error:
        gap = Gap(name, f"the stored versions of CustomResourceDefinition.{GROUP}", error.problem)
        return found._replace(served=served, gaps=(*found.gaps, gap))
    return found._replace(served=served, stored={kind: one for kind, one in stored.items() if one})


def _versions(definition: Manifest | None) -> StoredVersions | None:
    if definition is None:
        return None
    served = (one for one in map(as_map, as_list(at(definition, "spec", "versions"))) if one.get("served"))
    stored = tuple(map(as_text, as_list(at(definition, "status", "storedVersions"))))
    return StoredVersions(stored, tuple(as_text(one.get("name")) for one in served))
