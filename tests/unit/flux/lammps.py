"""A MiniCluster of a fleet with one queue."""

from typing import Any

from reconciler.objects import Manifest
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from tests.builders import (
    CLUSTERS,
    MINI_CLUSTER_API,
    Document,
    annotated,
    flavor,
    mini_cluster,
    queue,
    quota,
    spec_of,
    tenant,
)

OLD, CURRENT = "flux-framework.org/v1alpha1", MINI_CLUSTER_API
FLAVOR = flavor("cpu", {"cpu": 16}, nodeLabels={"pool": "cpu"})
RESEARCH = queue("research", quota("cpu", {"cpu": "50%"}))
TENANT = tenant("astro", "research", localQueue="jobs")


def lammps(version: str = CURRENT, **spec: Any) -> Document:
    """One without a queue of its own."""
    content = {"size": 2, "containers": [{"image": "lammps"}], **spec}
    return mini_cluster("lammps", namespace="astro", queue="", version=version, **content)


def fleet_lammps(*, targets: str = "workers", **spec: Any) -> Document:
    """One as a document of a fleet."""
    return annotated(lammps(**spec), {CLUSTERS: targets})


def made(*documents: Document) -> tuple[Desired, dict[str, Manifest]]:
    """Everything that a fleet wants, and its MiniClusters by cluster."""
    desired = compute_desired(spec_of(*documents))
    found = {entry.ref.cluster: entry.manifest for entry in desired.objects if entry.ref.kind == "MiniCluster"}
    return desired, {str(name): manifest for name, manifest in found.items()}
