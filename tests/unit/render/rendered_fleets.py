"""Fleets for real clusters, and what is written to each of their clusters."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.render import Rendered, Snapshot, write_offline
from reconciler.render.compute import compute_desired
from reconciler.spec.enums import Drain, Role
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from tests.builders import cluster_document, fleet_document, yaml_of
from tests.support import ROOT, SEEDS

ONLY = ClusterName("only")
OVERLAYS = ("", "dev", "prod")
EXAMPLE_NAMESPACES = ("astro", "genomics", "genomics-ci")
ONE_CLUSTER = yaml_of(fleet_document(), cluster_document(ONLY, "standalone")).encode()


def example_fleet(overlay: str = "") -> FleetSpec:
    """The fleet of this repository."""
    paths = [path for folder in ("fleet", "overlays") for path in (ROOT / folder).rglob("*.yaml")]
    content = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}
    return parse_fleet(FleetFiles("test", "", content), overlay)


def one_cluster_fleet(content: bytes) -> FleetSpec:
    """A cluster that gets every object of a file."""
    return parse_fleet(FleetFiles("test", "", {"fleet/a.yaml": ONE_CLUSTER, "fleet/b.yaml": content}))


def seed(name: str) -> FleetSpec:
    """A cluster that gets every object of a file of tests/seeds."""
    return one_cluster_fleet((SEEDS / name).read_bytes())


def at_kueue(spec: FleetSpec, version: str) -> FleetSpec:
    """The same fleet where every cluster runs this Kueue."""
    clusters = (replace(cluster, kueue=replace(cluster.kueue, version=version)) for cluster in spec.clusters)
    return replace(spec, clusters=tuple(clusters))


def with_drained_workers(spec: FleetSpec) -> FleetSpec:
    clusters = (
        replace(cluster, drain=Drain.WAIT if cluster.role is Role.WORKER else Drain.NO) for cluster in spec.clusters
    )
    return replace(spec, clusters=tuple(clusters))


def render(spec: FleetSpec) -> Mapping[ClusterName, tuple[Manifest, ...]]:
    """Every object of every cluster as it is sent."""
    rendered = Rendered(desired=compute_desired(spec), snapshot=Snapshot(spec=spec))
    return {cluster.name: write_offline(rendered, cluster.name) for cluster in spec.clusters}
