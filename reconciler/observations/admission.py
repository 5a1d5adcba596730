"""Looks at everything on a cluster that decides whether a job is admitted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.errors import ClusterError
from reconciler.kueue.configuration import CONFIG_KEY
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME, Kind
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import ClusterName, Manifest
from reconciler.observations.configuration import CONFIG_MAP, find_configuration, find_deployment, release_of
from reconciler.ports import ApiKind, ClusterPort
from reconciler.spec.choices import Role
from reconciler.spec.model import Cluster

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
FORBIDDEN = 403
_PARALLEL = 16

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class AdmissionLook:
    """What a cluster holds; `problem` says why it could not be seen, and nothing is known then.

    `configuration` is the text of Kueue's own and `release` the tag of its image, empty where they cannot be found, and
    `pod_priorities` are None where they may not be listed: all are known to few.
    """

    manifests: tuple[Manifest, ...] = ()
    pod_priorities: frozenset[str] | None = None
    configuration: str = ""
    problem: str = ""
    release: str = ""


def observe_admission(
    clusters: Iterable[Cluster], ports: Mapping[ClusterName, ClusterPort]
) -> Mapping[ClusterName, AdmissionLook]:
    """All clusters at once."""
    listed = [cluster for cluster in clusters if cluster.name in ports]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        looks = pool.map(lambda cluster: _look_at(cluster, ports[cluster.name]), listed)
        return {cluster.name: look for cluster, look in zip(listed, looks, strict=True)}


def _look_at(cluster: Cluster, port: ClusterPort) -> AdmissionLook:
    try:
        served = _newest(port.discover())
        with ThreadPoolExecutor(len(KINDS)) as pool:
            kinds = (served[name] for name in _kinds(cluster) if name in served)
            found = pool.map(lambda kind: tuple(_list(port, kind)), kinds)
            manifests = [manifest for listed in found for manifest in listed]
        namespaces = [{**one, "apiVersion": "v1", "kind": "Namespace"} for one in port.list(NAMESPACES)]
        priorities = _if_allowed(lambda: frozenset(_names(port.list(PRIORITY_CLASSES))))
        config_map = _if_allowed(lambda: find_configuration(port, cluster.kueue.namespace))
        mounted = as_text(at(config_map, "metadata", "name")) or CONFIG_MAP
        deployment = _if_allowed(lambda: find_deployment(port, cluster.kueue.namespace, mounted))
    except ClusterError as error:
        return AdmissionLook(problem=error.problem)
    problem = "" if "ClusterQueue" in served else "it has no Kueue"
    text = as_text(at(config_map, "data", CONFIG_KEY))
    return AdmissionLook((*manifests, *namespaces), priorities, text, problem, release_of(deployment))


def _kinds(cluster: Cluster) -> Iterator[str]:
    """A worker sends nothing, and kfleet's account there may not look at what would."""
    return (name for name in KINDS if cluster.role is not Role.WORKER or not name.startswith("MultiKueue"))


def _names(manifests: Iterable[Manifest]) -> Iterator[str]:
    return (as_text(at(one, "metadata", "name")) for one in manifests)


def _if_allowed(look: Callable[[], Seen]) -> Seen | None:
    try:
        return look()
    except ClusterError as error:
        if error.status != FORBIDDEN:
            raise
        return None


def _newest(kinds: Iterable[ApiKind]) -> dict[str, ApiKind]:
    """The kinds of Kueue, each in the newest version that is served."""
    found: dict[str, ApiKind] = {}
    for kind in kinds:
        known = KIND_BY_NAME.get(kind.kind) if kind.group == GROUP else None
        if known and (kind.kind not in found or _rank(known, kind) < _rank(known, found[kind.kind])):
            found[kind.kind] = kind
    return found


def _rank(known: Kind, kind: ApiKind) -> int:
    versions = [serving.api_version for serving in known.servings]
    return versions.index(kind.version) if kind.version in versions else len(versions)


def _list(port: ClusterPort, kind: ApiKind) -> Iterable[Mapping[str, Any]]:
    """In the canonical version, which leaves the status out: that stays beside it."""
    for one in port.list(kind.collection()):
        manifest = to_canonical({**one, "apiVersion": kind.api_version, "kind": kind.kind}).manifest
        yield {**manifest, "status": one.get("status") or {}}
