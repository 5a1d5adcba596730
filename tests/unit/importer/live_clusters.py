"""Live clusters on paper: what an import reads."""

from collections.abc import Mapping
from datetime import UTC, datetime

from reconciler.importer.compose import compose
from reconciler.importer.model import ImportedFleet, ImportRequest, ObservedContexts
from reconciler.multikueue.model import SeenCredential
from reconciler.objects import ApiEndpoint, ClusterName, Manifest, group_of
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.builders import Document

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
HOME = "home"
CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, ray.io/rayjob]}
"""


def on_paper(
    clusters: Mapping[str, tuple[Manifest, ...]],
    logins: Mapping[tuple[str, str], str] | None = None,
    kueue: str = "v0.19.0",
) -> ObservedContexts:
    """`logins` are the addresses in the Secrets of MultiKueueClusters, by cluster and name."""
    seen = {ClusterName(name): _cluster(ClusterName(name), objects, kueue) for name, objects in clusters.items()}
    return ObservedContexts(
        objects=FleetObjects(taken_at=NOW, clusters=seen),
        contexts={name: f"context-of-{name}" for name in seen},
        servers={name: ApiEndpoint(f"https://{name}:6443") for name in seen},
        credentials={
            (ClusterName(cluster), member): SeenCredential(endpoint=ApiEndpoint(server))
            for (cluster, member), server in (logins or {}).items()
        },
    )


def _cluster(name: ClusterName, objects: tuple[Manifest, ...], kueue: str) -> ClusterObjects:
    by_kind: dict[tuple[str, str], list[Manifest]] = {}
    for manifest in objects:
        by_kind.setdefault((group_of(manifest), manifest["kind"]), []).append(manifest)
    listed = {key: tuple(entries) for key, entries in by_kind.items()}
    return ClusterObjects(name=name, role=Role.STANDALONE, kueue=kueue, configuration=CONFIGURATION, objects=listed)


def imported(*objects: Manifest, is_taken: bool = False, **others: tuple[Manifest, ...]) -> ImportedFleet:
    seen = on_paper({HOME: objects, **others})
    return compose(seen, ImportRequest(fleet="research", takes_claimed=is_taken))


def documents(made: ImportedFleet) -> dict[str, Document]:
    """Every document by its kind and name; a second one of that name by its clusters too."""
    found: dict[str, Document] = {}
    for text in made.files.values():
        for value in fast_yaml.safe_load_all(text):
            metadata = value["metadata"]
            key = f"{value['kind']}/{metadata['name']}"
            clusters = metadata.get("annotations", {}).get("kfleet.dev/clusters", "")
            found[f"{key} for {clusters}" if key in found else key] = value
    return found


def namespace(name: str, **metadata: object) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}
