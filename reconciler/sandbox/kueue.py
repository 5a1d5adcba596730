"""Installs a real Kueue into a sandbox cluster, from the manifests of its own Go module.

The API server dials Kueue's webhooks through a Service of type ExternalName that points to localhost, so nothing needs
root or a changed name. The serving certificate that Kueue would make on its first start is made here in the same form
instead, which saves the seconds until its certificate watcher notices the new files.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.sandbox.certificates import Pair, make_authority, make_server_pair
from reconciler.sandbox.control_plane import LOOPBACK, ClusterFiles
from reconciler.sandbox.processes import Part
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxCluster

NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105  (the name of a Secret)
CONFIG_MAP = "kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
DEPLOYMENT = "kueue-controller-manager"
POD_LABELS = {"control-plane": "controller-manager"}
# The aggregated visibility API would need a Service that reaches this process on a fixed port.
GATES = "--feature-gates=VisibilityOnDemand=false"
CONVERTED_KINDS = {"ClusterQueue", "Cohort", "LocalQueue", "MultiKueueCluster", "Workload"}
FRAMEWORKS = ("batch/job",)
# The API group whose webhooks a framework brings. Webhooks of a group that no enabled framework serves stay out:
# no server would answer them.
FRAMEWORK_GROUPS = {
    "batch/job": "batch",
    "pod": "",
    "deployment": "apps",
    "statefulset": "apps",
    "jobset.x-k8s.io/jobset": "jobset.x-k8s.io",
    "kubeflow.org/pytorchjob": "kubeflow.org",
    "ray.io/rayjob": "ray.io",
}


@dataclass(frozen=True, slots=True)
class KueuePorts:
    webhook: int
    health: int
    metrics: int


def install_kueue(
    api: ApiServer,
    cluster: SandboxCluster,
    files: ClusterFiles,
    ports: KueuePorts,
    frameworks: tuple[str, ...],
) -> Part:
    """Write all that Kueue needs into the cluster, and return how to start it."""
    authority = make_authority("kueue-ca", is_rsa=True)
    serving = make_server_pair(authority, f"{SERVICE}.{NAMESPACE}.svc", is_rsa=True)
    certificates = files.folder / "kueue-certificates"
    certificates.mkdir()
    files.secret("kueue-certificates/tls.crt", serving.certificate)
    files.secret("kueue-certificates/tls.key", serving.key)
    configuration = yaml.safe_dump(_configuration(ports, certificates, frameworks), sort_keys=False)
    config_path = files.secret("kueue-config.yaml", configuration)
    clients = _ClientPatch(ports.webhook, authority.certificate)
    _create_all(api, _custom_resource_definitions(cluster.kueue, clients))
    _create_all(api, [_namespace()])
    _create_all(api, [_service(), _secret(authority, serving), _config_map(configuration)])
    _create_all(api, [*_webhooks(cluster.kueue, clients, frameworks), _deployment()])
    return _kueue_part(cluster, files, config_path, ports)


def reconfigure_kueue(api: ApiServer, version: str, files: ClusterFiles, text: str) -> None:
    """Hand Kueue another Configuration, for its next start, with the webhooks of what that enables."""
    files.secret("kueue-config.yaml", text)
    configuration = yaml.safe_load(text)
    secret = api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    clients = _ClientPatch(configuration["webhook"]["port"], b64decode(secret["data"]["ca.crt"]).decode())
    for wanted in _webhooks(version, clients, tuple(configuration["integrations"]["frameworks"])):
        api.replace({**api.get(api.path_of(wanted)), "webhooks": wanted["webhooks"]})


def _kueue_part(cluster: SandboxCluster, files: ClusterFiles, config: Path, ports: KueuePorts) -> Part:
    command = (
        str(PROGRAMS[f"kueue-{cluster.kueue}"].binary),
        f"--config={config}",
        f"--kubeconfig={files.kubeconfig}",
        GATES,
        "--zap-log-level=2",
    )
    return Part(f"{cluster.name}/kueue", command, files.log("kueue"), ports.health)


def _configuration(ports: KueuePorts, certificates: Path, frameworks: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{ports.health}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{ports.metrics}", "enableClusterQueueResources": True},
        "webhook": {"host": LOOPBACK, "port": ports.webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": SERVICE,
            "webhookSecretName": SECRET,
        },
        "integrations": {"frameworks": list(frameworks)},
        # Seconds instead of minutes, so that the loss of a worker can be watched.
        "multiKueue": {"gcInterval": "5s", "origin": "multikueue", "workerLostTimeout": "15s"},
    }


@dataclass(frozen=True, slots=True)
class _ClientPatch:
    """Where the API server finds Kueue, and which authority it trusts there."""

    port: int
    ca: str

    def client(self, path: str) -> dict[str, Any]:
        service = {"namespace": NAMESPACE, "name": SERVICE, "path": path, "port": self.port}
        return {"service": service, "caBundle": _encoded(self.ca)}


def _custom_resource_definitions(version: str, clients: _ClientPatch) -> Iterator[Manifest]:
    for definition in PROGRAMS[f"kueue-{version}"].manifests("config/components/crd/bases/*"):
        if definition["spec"]["names"]["kind"] in CONVERTED_KINDS:
            webhook = {"clientConfig": clients.client("/convert"), "conversionReviewVersions": ["v1"]}
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield definition


def _webhooks(version: str, clients: _ClientPatch, frameworks: tuple[str, ...]) -> Iterator[Manifest]:
    groups = {"kueue.x-k8s.io", *(FRAMEWORK_GROUPS[name] for name in frameworks if name in FRAMEWORK_GROUPS)}
    for configuration in PROGRAMS[f"kueue-{version}"].manifests("config/components/webhook/*"):
        kept = [
            _webhook(entry, clients)
            for entry in configuration["webhooks"]
            if groups & {group for rule in entry["rules"] for group in rule["apiGroups"]}
        ]
        name = f"kueue-{configuration['metadata']['name']}"
        yield {**configuration, "metadata": {"name": name}, "webhooks": kept}


def _webhook(entry: Mapping[str, Any], clients: _ClientPatch) -> dict[str, Any]:
    changed = {**entry, "clientConfig": clients.client(entry["clientConfig"]["service"]["path"])}
    if any("kueue.x-k8s.io" not in rule["apiGroups"] for rule in entry["rules"]):
        exempt = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", NAMESPACE],
        }
        changed["namespaceSelector"] = {"matchExpressions": [exempt]}
    return changed


def _namespace() -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _secret(authority: Pair, serving: Pair) -> Manifest:
    content = {
        "ca.crt": authority.certificate,
        "ca.key": authority.key,
        "tls.crt": serving.certificate,
        "tls.key": serving.key,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "data": {name: _encoded(text) for name, text in content.items()},
    }


def _config_map(configuration: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": {CONFIG_KEY: configuration},
    }


def _deployment() -> Manifest:
    """Kueue's Deployment as clusters have it, so that it can be restarted there: the sandbox's kubelet sees its pods.

    Its pods wait for a scheduler that does not exist. The old pod stops before the new one starts, because both would
    listen on the same ports. Its image has no tag, as if a mirror named images by digest: the fleet must say what runs.
    """
    container = {
        "name": "manager",
        "image": "kueue",
        "args": [GATES, "--config=/controller_manager_config.yaml"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "manager-config", "mountPath": f"/{CONFIG_KEY}", "subPath": CONFIG_KEY}],
    }
    template = {
        "metadata": {"labels": POD_LABELS},
        "spec": {
            "automountServiceAccountToken": False,
            "schedulerName": "none",
            "containers": [container],
            "volumes": [{"name": "manager-config", "configMap": {"name": CONFIG_MAP}}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": POD_LABELS},
            "strategy": {"type": "Recreate"},
            "template": template,
        },
    }


def _create_all(api: ApiServer, manifests: Iterable[Manifest]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(api.create, manifests))


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
