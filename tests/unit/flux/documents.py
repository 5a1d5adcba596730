"""MiniClusters as people write them."""

from typing import Any

from reconciler.desired import Desired, compute_desired
from reconciler.objects import Manifest
from tests.unit.desired.fleets import spec_of

Document = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
OLD, CURRENT = "flux-framework.org/v1alpha1", "flux-framework.org/v1alpha2"
FLAVOR = (
    "kind: Flavor\nmetadata: {name: cpu}\n"
    "spec: {nodeLabels: {pool: cpu}, capacity: {source: static, resources: {cpu: 16}}}\n"
)
RESEARCH = "kind: Queue\nmetadata: {name: research}\nspec: {quota: [{flavor: cpu, resources: {cpu: 50%}}]}\n"
TENANT = "kind: Tenant\nmetadata: {name: astro}\nspec: {namespaces: [astro], queue: research, localQueue: jobs}\n"


def mini_cluster(version: str = CURRENT, **spec: Any) -> Document:
    content = {"size": 2, "containers": [{"image": "lammps"}], **spec}
    metadata = {"name": "lammps", "namespace": "astro"}
    return {"apiVersion": version, "kind": "MiniCluster", "metadata": metadata, "spec": content}


def text(*, targets: str = "workers", labels: str = "") -> str:
    """One for a fleet, with or without labels for its Job."""
    annotations = f"annotations: {{kfleet.dev/clusters: {targets}}}"
    return (
        f"apiVersion: {CURRENT}\nkind: MiniCluster\nmetadata: {{name: lammps, namespace: astro, {annotations}}}\n"
        f"spec:\n  size: 2\n  containers: [{{image: lammps}}]\n{labels}"
    )


def made(*documents: str) -> tuple[Desired, dict[str, Manifest]]:
    """Everything that a fleet wants, and its MiniClusters by cluster."""
    desired = compute_desired(spec_of(*documents))
    found = {entry.ref.cluster: entry.manifest for entry in desired.objects if entry.ref.kind == "MiniCluster"}
    return desired, {str(name): manifest for name, manifest in found.items()}
