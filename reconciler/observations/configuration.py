"""Looks at Kueue's own Configuration: where the spec sets a part of it, and where a rollout of it was not finished."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reconciler.errors import ClusterError
from reconciler.kueue.configuration import CONFIG_KEY
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.ports import ClusterPort
from reconciler.rollout import APPLIED, PREVIOUS, RESTARTED, SeenConfiguration
from reconciler.spec.model import Cluster, FleetSpec

CONFIG_MAP = "kueue-manager-config"
DEPLOYMENT = "kueue-controller-manager"
WHAT = "the Configuration of Kueue"
_PARALLEL = 16


@dataclass(frozen=True, slots=True)
class ConfigurationLook:
    seen: Mapping[ClusterName, SeenConfiguration] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def observe_configurations(spec: FleetSpec, ports: Mapping[ClusterName, ClusterPort]) -> ConfigurationLook:
    """Two requests per cluster whose spec sets something, one per other cluster, all clusters at once."""
    clusters = [cluster for cluster in spec.clusters if cluster.name in ports]
    if not clusters:
        return ConfigurationLook()
    with ThreadPoolExecutor(_PARALLEL) as pool:
        answers = list(pool.map(lambda cluster: _look_at(cluster, ports[cluster.name]), clusters))
    seen = {answer.cluster: answer for answer in answers if isinstance(answer, SeenConfiguration)}
    return ConfigurationLook(seen, tuple(answer for answer in answers if isinstance(answer, Gap)))


def find_configuration(port: ClusterPort, namespace: str) -> Manifest | None:
    """The ConfigMap that holds Kueue's Configuration: by its usual name, or by its key where Helm named it."""
    root = f"/api/v1/namespaces/{namespace}/configmaps"
    usual = port.find(f"{root}/{CONFIG_MAP}")
    found = (entry for entry in ([usual] if usual else port.list(root)) if _text(entry))
    return next(found, None)


def find_deployment(port: ClusterPort, namespace: str, config_map: str) -> Manifest | None:
    """By its usual name, or by what it mounts where Helm named it."""
    root = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    usual = port.find(f"{root}/{DEPLOYMENT}")
    return next((entry for entry in ([usual] if usual else port.list(root)) if config_map in _mounted(entry)), None)


def containers_of(deployment: Manifest | None) -> Iterable[Manifest]:
    return as_list(at(deployment, "spec", "template", "spec", "containers"))


def arguments_of(deployment: Manifest | None) -> list[str]:
    return [as_text(entry) for one in containers_of(deployment) for entry in as_list(at(one, "args"))]


def release_of(deployment: Manifest | None) -> str:
    """The tag of the image: `…/kueue:v0.19.0`."""
    images = [as_text(at(one, "image")).partition("@")[0].rpartition("/")[2] for one in containers_of(deployment)]
    return next((image.partition(":")[2] for image in images if image.startswith("kueue:")), "")


def _look_at(cluster: Cluster, port: ClusterPort) -> SeenConfiguration | Gap | None:
    """None where nothing is asked of it and nothing was left open; there nobody misses what cannot be seen either."""
    namespace, is_asked = cluster.kueue.namespace, bool(cluster.kueue.configuration)
    try:
        found = find_configuration(port, namespace)
        if not is_asked and not at(found, "metadata", "annotations", PREVIOUS):
            return None
        if found is None:
            why = f"no ConfigMap in {namespace} has the key {CONFIG_KEY}; is spec.kueue.namespace right?"
            return Gap(cluster.name, WHAT, why)
        name = as_text(at(found, "metadata", "name"))
        deployment = find_deployment(port, namespace, name)
    except ClusterError as error:
        return Gap(cluster.name, WHAT, error.problem) if is_asked else None
    if deployment is None:
        why = f"no Deployment in {namespace} mounts the ConfigMap {name}, so that nothing could be restarted"
        return Gap(cluster.name, WHAT, why)
    return _seen(cluster, found, deployment)


def _seen(cluster: Cluster, found: Manifest, deployment: Manifest) -> SeenConfiguration:
    metadata = found["metadata"]
    return SeenConfiguration(
        cluster.name,
        cluster.kueue.namespace,
        as_text(metadata["name"]),
        _text(found),
        as_text(metadata.get("uid")),
        as_text(metadata.get("resourceVersion")),
        as_text(at(deployment, "metadata", "name")),
        release_of(deployment),
        any("--feature-gates" in argument for argument in arguments_of(deployment)),
        metadata,
        as_text(_pod_annotation(deployment, APPLIED)),
        _age(as_text(_pod_annotation(deployment, RESTARTED))),
    )


def _pod_annotation(deployment: Manifest, name: str) -> object:
    return at(deployment, "spec", "template", "metadata", "annotations", name)


def _age(mark: str) -> timedelta:
    """Of a mark that kfleet wrote; one that it did not write says nothing."""
    try:
        return datetime.now(UTC) - datetime.fromisoformat(mark)
    except (ValueError, TypeError):
        return timedelta.max


def _text(config_map: Manifest) -> str:
    return as_text(at(config_map, "data", CONFIG_KEY))


def _mounted(deployment: Manifest) -> set[str]:
    volumes = as_list(at(deployment, "spec", "template", "spec", "volumes"))
    return {as_text(at(volume, "configMap", "name")) for volume in volumes}
