"""Observes everything on a cluster that decides whether a job is admitted, and single jobs for `kfleet why`.

Single jobs are kinds that own no workload, and the pods of one namespace.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.admission.jobs import FORMS, downsynced_frameworks
from reconciler.admission.state import AdmissionFacts, ClusterState, FleetState, admission_settings, build_state
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import (
    CONFIG_KEY,
    ConfigurationError,
    assumed_settings,
    read_configuration,
    read_settings,
)
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME, Kind, first_version
from reconciler.kueue.reading import as_text, at
from reconciler.kueue_config.observe import CONFIG_MAP, find_configuration, find_deployment, release_of
from reconciler.objects import ApiKind, ClusterName, Manifest
from reconciler.pipeline.objects import find_members
from reconciler.pipeline.observe import Connections
from reconciler.snapshot.model import FleetObjects, KindKey
from reconciler.spec.enums import Role
from reconciler.spec.members import Members, with_cluster_names
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.state.observe import by_kind

KINDS = (
    "LocalQueue",
    "ClusterQueue",
    "Cohort",
    "ResourceFlavor",
    "AdmissionCheck",
    "MultiKueueConfig",
    "MultiKueueCluster",
    "WorkloadPriorityClass",
)
NAMESPACES = "/api/v1/namespaces"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_PARALLEL = 16

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class ObservedAdmission:
    """The content of a cluster; `problem` is set if it could not be observed, and then nothing is known.

    `configuration` is the text of Kueue's own and `release` the tag of its image, empty if they cannot be found.
    `pod_priorities` is None if kfleet may not list them: few accounts may.
    """

    manifests: tuple[Manifest, ...] = ()
    pod_priorities: frozenset[str] | None = None
    configuration: str = ""
    problem: str = ""
    release: str = ""


def observe_admission(
    clusters: Iterable[Cluster], clients: Mapping[ClusterName, ClusterClient]
) -> Mapping[ClusterName, ObservedAdmission]:
    """Observe all clusters concurrently."""
    listed = [cluster for cluster in clusters if cluster.name in clients]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        looks = pool.map(lambda cluster: _look_at(cluster, clients[cluster.name]), listed)
        return {cluster.name: look for cluster, look in zip(listed, looks, strict=True)}


def _look_at(cluster: Cluster, client: ClusterClient) -> ObservedAdmission:
    try:
        served = _newest(client.discover())
        with ThreadPoolExecutor(len(KINDS)) as pool:
            kinds = (served[name] for name in _kinds(cluster) if name in served)
            found = pool.map(lambda kind: tuple(_list(client, kind)), kinds)
            manifests = [manifest for listed in found for manifest in listed]
            # Only to name jobs whose end would let another one in.
            manifests += (
                _if_allowed(lambda: list(_list(client, served["Workload"]))) or [] if "Workload" in served else []
            )
        namespaces = [{**one, "apiVersion": "v1", "kind": "Namespace"} for one in client.list(NAMESPACES)]
        priorities = _if_allowed(lambda: frozenset(_names(client.list(PRIORITY_CLASSES))))
        config_map = _if_allowed(lambda: find_configuration(client, cluster.kueue.namespace))
        mounted = as_text(at(config_map, "metadata", "name")) or CONFIG_MAP
        deployment = _if_allowed(lambda: find_deployment(client, cluster.kueue.namespace, mounted))
    except ClusterError as error:
        return ObservedAdmission(problem=error.problem)
    problem = "" if "ClusterQueue" in served else "it has no Kueue"
    text = as_text(at(config_map, "data", CONFIG_KEY))
    return ObservedAdmission((*manifests, *namespaces), priorities, text, problem, release_of(deployment))


def _kinds(cluster: Cluster) -> Iterator[str]:
    """A worker dispatches nothing, and kfleet's account there may not read the kinds for it."""
    return (name for name in KINDS if cluster.role is not Role.WORKER or not name.startswith("MultiKueue"))


def _names(manifests: Iterable[Manifest]) -> Iterator[str]:
    return (as_text(at(one, "metadata", "name")) for one in manifests)


def _if_allowed(look: Callable[[], Seen]) -> Seen | None:
    try:
        return look()
    except ClusterError as error:
        if not error.is_forbidden:
            raise
        return None


def _newest(kinds: Iterable[ApiKind]) -> dict[str, ApiKind]:
    """Return the kinds of Kueue, each in the newest served version."""
    found: dict[str, ApiKind] = {}
    for kind in kinds:
        known = KIND_BY_NAME.get(kind.kind) if kind.group == GROUP else None
        if known and (kind.kind not in found or _rank(known, kind) < _rank(known, found[kind.kind])):
            found[kind.kind] = kind
    return found


def _rank(known: Kind, kind: ApiKind) -> int:
    versions = [serving.api_version for serving in known.servings]
    return versions.index(kind.version) if kind.version in versions else len(versions)


def _list(client: ClusterClient, kind: ApiKind) -> Iterable[Mapping[str, Any]]:
    """Convert to the canonical version, which omits the status: the status is kept separately."""
    for one in client.list(kind.collection()):
        manifest = to_canonical({**one, "apiVersion": kind.api_version, "kind": kind.kind}).manifest
        yield {**manifest, "status": one.get("status") or {}}


def live_fleet(spec: FleetSpec, connections: Connections) -> FleetState:
    """Return every cluster as it is; nothing is assumed about one that cannot be observed."""
    looks = observe_admission(spec.clusters, connections.clients)
    lost = {name: look.problem for name, look in looks.items() if look.problem}
    seen = [cluster for cluster in spec.clusters if cluster.name in looks and cluster.name not in lost]
    dispatching = [one for cluster in seen for one in looks[cluster.name].manifests if cluster.role is Role.MANAGER]
    members = find_members(spec, connections.clients, dispatching)
    return FleetState(
        {cluster.name: _state(cluster, looks[cluster.name], members) for cluster in seen},
        spec.manager.name if spec.manager else None,
        {**{gap.cluster: gap.why for gap in connections.gaps}, **lost},
        downsynced_frameworks(spec.fleet.kubestellar.kinds),
    )


def _state(cluster: Cluster, look: ObservedAdmission, members: Members) -> ClusterState:
    """Return the Configuration of the running Kueue; if it cannot be found, that of the fleet."""
    try:
        content, settings = read_configuration(look.configuration), read_settings(look.configuration)
    except ConfigurationError:
        content, settings = cluster.kueue.configuration, assumed_settings(cluster.kueue.configuration)
    facts = AdmissionFacts(
        admission_settings(settings, content, cluster.kueue.namespace),
        first_version(look.release, cluster.kueue.version),
        pod_priorities=look.pod_priorities,
        is_live=True,
    )
    named = members if cluster.role is Role.MANAGER else {}
    return build_state(cluster.name, (with_cluster_names(one, named) for one in look.manifests), facts)


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
        lists = list(pool.map(lambda kind: _list_in(client, kind, namespace), listed))
    yield from (one for one in found if one is not None)
    yield from (one for entries in lists for one in entries)


def _find(client: ClusterClient, kind: ApiKind, namespace: str, name: str) -> Manifest | None:
    try:
        found = client.find(kind.path(namespace, name))
    except ClusterError:
        return None
    return None if found is None else _typed(found, kind)


def _list_in(client: ClusterClient, kind: ApiKind, namespace: str) -> Iterable[Manifest]:
    try:
        return tuple(_typed(entry, kind) for entry in client.list(kind.collection(namespace)))
    except ClusterError:
        return ()


def _typed(entry: Manifest, kind: ApiKind) -> Manifest:
    return {**entry, "apiVersion": kind.api_version, "kind": kind.kind}
