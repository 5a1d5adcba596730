"""Observes Kueue's own Configuration where the spec sets a part of it, or where a rollout was not finished."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import CONFIG_KEY
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue_config.model import APPLIED, PREVIOUS, RESTARTED, SeenConfiguration
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.spec.model import Cluster, FleetSpec

CONFIG_MAP = "kueue-manager-config"
DEPLOYMENT = "kueue-controller-manager"
WHAT = "the Configuration of Kueue"
_PARALLEL = 16


@dataclass(frozen=True, slots=True)
class ObservedConfigurations:
    seen: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def observe_configurations(spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient]) -> ObservedConfigurations:
    """Observe all clusters concurrently: two requests per cluster whose spec sets something, one per other cluster."""
    clusters = [cluster for cluster in spec.clusters if cluster.name in clients]
    if not clusters:
        return ObservedConfigurations()
    with ThreadPoolExecutor(_PARALLEL) as pool:
        answers = list(pool.map(lambda cluster: _look_at(cluster, clients[cluster.name]), clusters))
    seen = {answer.cluster: answer for answer in answers if isinstance(answer, SeenConfiguration)}
    return ObservedConfigurations(seen, tuple(answer for answer in answers if isinstance(answer, Gap)))


def find_configuration(client: ClusterClient, namespace: str) -> Manifest | None:
    """The ConfigMap with Kueue's Configuration: by its usual name, or by its key if Helm gave it another name."""
    root = f"/api/v1/namespaces/{namespace}/configmaps"
    usual = client.find(f"{root}/{CONFIG_MAP}")
    found = (entry for entry in ([usual] if usual else client.list(root)) if _text(entry))
    return next(found, None)


def find_deployment(client: ClusterClient, namespace: str, config_map: str) -> Manifest | None:
    """Kueue's Deployment: by its usual name, or by the ConfigMap it mounts if Helm gave it another name."""
    root = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    usual = client.find(f"{root}/{DEPLOYMENT}")
    return next((entry for entry in ([usual] if usual else client.list(root)) if config_map in _mounted(entry)), None)


def containers_of(deployment: Manifest | None) -> Iterable[Manifest]:
    return as_list(at(deployment, "spec", "template", "spec", "containers"))


def arguments_of(deployment: Manifest | None) -> list[str]:
    return [as_text(entry) for one in containers_of(deployment) for entry in as_list(at(one, "args"))]


def release_of(deployment: Manifest | None) -> str:
    """The tag of the image: `…/kueue:v0.19.0`."""
    images = [as_text(at(one, "image")).partition("@")[0].rpartition("/")[2] for one in containers_of(deployment)]
    return next((image.partition(":")[2] for image in images if image.startswith("kueue:")), "")


def _look_at(cluster: Cluster, client: ClusterClient) -> SeenConfiguration | Gap | None:
    """None if the spec sets nothing and no rollout is open; then an error is not a gap either."""
    namespace, is_asked = cluster.kueue.namespace, bool(cluster.kueue.configuration)
    try:
        found = find_configuration(client, namespace)
        if not is_asked and not at(found, "metadata", "annotations", PREVIOUS):
            return None
        if found is None:
            why = f"no ConfigMap in {namespace} has the key {CONFIG_KEY}; is spec.kueue.namespace right?"
            return Gap(cluster.name, WHAT, why)
        name = as_text(at(found, "metadata", "name"))
        deployment = find_deployment(client, namespace, name)
    except ClusterError as error:
        return Gap(cluster.name, WHAT, error.problem) if is_asked else None
    if deployment is None:
        why = f"no Deployment in {namespace} mounts the ConfigMap {name}, so kfleet cannot restart Kueue"
        return Gap(cluster.name, WHAT, why)
    return _seen(cluster, found, deployment)


def _seen(cluster: Cluster, found: Manifest, deployment: Manifest) -> SeenConfiguration:
    metadata = found["metadata"]
    return SeenConfiguration(
        cluster=cluster.name,
        namespace=cluster.kueue.namespace,
        name=as_text(metadata["name"]),
        text=_text(found),
        uid=as_text(metadata.get("uid")),
        version=as_text(metadata.get("resourceVersion")),
        deployment=as_text(at(deployment, "metadata", "name")),
        release=release_of(deployment),
        has_gate_flag=any("--feature-gates" in argument for argument in arguments_of(deployment)),
        metadata=metadata,
        started_for=as_text(_pod_annotation(deployment, APPLIED)),
        started_ago=_age(as_text(_pod_annotation(deployment, RESTARTED))),
    )


def _pod_annotation(deployment: Manifest, name: str) -> object:
    return at(deployment, "spec", "template", "metadata", "annotations", name)


def _age(mark: str) -> timedelta:
    """The age of a timestamp that kfleet wrote; a text in another form counts as very old."""
    try:
        return datetime.now(UTC) - datetime.fromisoformat(mark)
    except (ValueError, TypeError):
        return timedelta.max


def _text(config_map: Manifest) -> str:
    return as_text(at(config_map, "data", CONFIG_KEY))


def _mounted(deployment: Manifest) -> set[str]:
    volumes = as_list(at(deployment, "spec", "template", "spec", "volumes"))
    return {as_text(at(volume, "configMap", "name")) for volume in volumes}
