"""MultiKueueClusters that are written by hand have names of their own: which Cluster of the fleet each of them is."""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.model import FleetSpec

Members = Mapping[str, ClusterName]


def foreign_members(spec: FleetSpec, manifests: Iterable[Manifest]) -> Mapping[str, str]:
    """The Secret of each MultiKueueCluster whose name is not one of a Cluster; empty for a file or a profile."""
    known = {cluster.name for cluster in spec.clusters}
    found: dict[str, str] = {}
    for manifest in manifests:
        name = as_text(at(manifest, "metadata", "name"))
        if manifest.get("kind") == "MultiKueueCluster" and name not in known:
            source = as_map(at(manifest, "spec", "clusterSource", "kubeConfig") or at(manifest, "spec", "kubeConfig"))
            found[name] = "" if source.get("locationType") == "Path" else as_text(source.get("location"))
    return found


def members_by_secret(spec: FleetSpec, secrets: Mapping[str, str]) -> Members:
    """Clusters whose `credentials.secret` is the Secret of a MultiKueueCluster."""
    owners = {cluster.credentials.secret: cluster.name for cluster in spec.clusters if cluster.credentials.secret}
    return {name: owners[secret] for name, secret in secrets.items() if secret in owners}


def with_cluster_names(manifest: Manifest, members: Members) -> Manifest:
    """A manifest of the manager with the names of Clusters wherever Kueue has those of MultiKueueClusters."""

    def renamed(names: Any) -> list[str]:
        return [members.get(as_text(name), as_text(name)) for name in as_list(names)]

    kind, metadata = manifest.get("kind"), as_map(manifest.get("metadata"))
    spec, status = as_map(manifest.get("spec")), as_map(manifest.get("status"))
    if not members:
        return manifest
    if kind == "MultiKueueCluster" and metadata.get("name") in members:
        return {**manifest, "metadata": {**metadata, "name": members[as_text(metadata.get("name"))]}}
    if kind == "MultiKueueConfig":
        return {**manifest, "spec": {**spec, "clusters": renamed(spec.get("clusters"))}}
    if kind == "Workload":
        winner = as_text(status.get("clusterName"))
        named = {
            **({"clusterName": members.get(winner, winner)} if winner else {}),
            **(
                {"nominatedClusterNames": renamed(nominated)}
                if (nominated := status.get("nominatedClusterNames"))
                else {}
            ),
        }
        return {**manifest, "status": {**status, **named}} if named else manifest
    return manifest
