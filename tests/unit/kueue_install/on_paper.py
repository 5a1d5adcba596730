"""Clusters, charts and what runs, as values."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from gzip import compress
from typing import Any

from reconciler.kueue.configuration import CONFIG_KEY
from reconciler.kueue_install.model import DEPLOYED, Definition, HelmRecord, SeenKueue, WantedKueue
from reconciler.kueue_install.records import make_target
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.builders import cluster_document, fleet_document
from tests.builders.fleet import Document

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
OURS = "kueue-system/kueue"
QUEUES, COHORTS = "clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io"
SLICES = "resource.k8s.io/v1/ResourceSlice"
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "waitForPodsReady": {"timeout": "10m"},
    "integrations": {"frameworks": ["batch/job"]},
}


def fleet(*documents: Document) -> FleetSpec:
    text = fast_yaml.safe_dump_all([fleet_document("paper"), *documents])
    return parse_fleet(FleetFiles("paper", "", {"fleet/fleet.yaml": text.encode()}))


def installed(name: str, version: str = "0.19.2", role: str = "standalone", **kueue: Any) -> Document:
    return cluster_document(name, role, kueue={"install": {"version": version}, **kueue})


def cluster(version: str = "0.19.2", *, suspend: bool = False, **kueue: Any) -> Cluster:
    document = installed("one", version, **kueue)
    return fleet({**document, "spec": {**document["spec"], "suspend": suspend}}).clusters[0]


def record(chart: str = "0.16.2", status: str = DEPLOYED, **changes: Any) -> HelmRecord:
    settings: dict[str, Any] = {"definitions": frozenset((QUEUES, COHORTS)), "written": NOW, **changes}
    return HelmRecord(revision=3, status=status, chart=chart, **settings)


def seen(release: str = "v0.16.2", **changes: Any) -> SeenKueue:
    """A Kueue that helm has installed."""
    settings: dict[str, Any] = {
        "deployment": "kueue-controller-manager" if release else "",
        "owner": OURS if release else "",
        "record": record(release.removeprefix("v")) if release else None,
        "definitions": {name: Definition(("v1beta1", "v1beta2"), OURS) for name in (QUEUES, COHORTS) if release},
        "api_versions": frozenset((SLICES,)),
        "seen_at": NOW,
    }
    return SeenKueue(cluster=ClusterName("one"), namespace="kueue-system", release=release, **settings | changes)


def definition(name: str, *versions: str) -> Manifest:
    group = name.partition(".")[2]
    spec = {"group": group, "versions": [{"name": version} for version in versions]}
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec}


def manager(*arguments: str) -> Manifest:
    template = {"spec": {"containers": [{"name": "manager", "args": ["--zap-log-level=2", *arguments]}]}}
    return {"kind": "Deployment", "metadata": {"name": "kueue-controller-manager"}, "spec": {"template": template}}


def chart(
    version: str = "0.19.2",
    configuration: Manifest | str = CONFIGURATION,
    *arguments: str,
    values: Manifest | None = None,
    served: tuple[str, ...] = ("v1beta2", "v1beta1"),
    definitions: tuple[str, ...] = (QUEUES, COHORTS),
) -> WantedKueue:
    text = configuration if isinstance(configuration, str) else fast_yaml.safe_dump(configuration)
    config_map = {"kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}, "data": {CONFIG_KEY: text}}
    crds = (definition(name, *served) for name in definitions)
    return make_target(version, values or {}, (config_map, manager(*arguments), *crds))


def helm_secret(content: Any, revision: int = 1) -> Manifest:
    """As helm writes it: packed, encoded, and encoded again by the API server."""
    packed = b64encode(b64encode(compress(json.dumps(content).encode()))).decode()
    metadata = {
        "name": f"sh.helm.release.v1.kueue.v{revision}",
        "uid": f"uid-{revision}",
        "labels": {"version": str(revision)},
        "creationTimestamp": "2026-11-19T12:00:00Z",
    }
    return {"metadata": metadata, "data": {"release": packed}}
