"""The queue label of MiniClusters: where their namespace has one LocalQueue only, they go through that one."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.flux.minicluster import is_mini_cluster
from reconciler.kueue.reading import QUEUE_LABEL, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import clusters_of_queues


@dataclass(frozen=True, slots=True)
class Labelled:
    """A manifest with its queue label; `note` says where the label came from, if it was not written."""

    manifest: Manifest
    note: str = ""


def with_queue(manifest: Manifest, spec: FleetSpec, cluster: Cluster) -> Labelled:
    """Everything but a MiniCluster without a label comes back as it is."""
    content = as_map(manifest.get("spec"))
    labels = as_map(content.get("jobLabels"))
    if not is_mini_cluster(manifest) or QUEUE_LABEL in labels:
        return Labelled(manifest)
    namespace = as_text(at(manifest, "metadata", "namespace")) or "default"
    names = sorted(set(_local_queues(spec, cluster, namespace)))
    if len(names) != 1:
        return Labelled(manifest)
    given = {**content, "jobLabels": {**labels, QUEUE_LABEL: names[0]}}
    note = f"goes through {names[0]}, the only LocalQueue of namespace {namespace}"
    return Labelled({**manifest, "spec": given}, note)


def _local_queues(spec: FleetSpec, cluster: Cluster, namespace: str) -> Iterator[str]:
    places = clusters_of_queues(spec)
    for tenant in spec.tenants:
        if namespace in tenant.namespaces and cluster in places.get(tenant.queue, ()):
            yield tenant.local_queue
    for entry in spec.objects:
        is_here = (as_text(at(entry.current, "metadata", "namespace")) or "default") == namespace
        if entry.current["kind"] == "LocalQueue" and is_here and cluster in spec.targeted(entry.targets):
            yield as_text(at(entry.current, "metadata", "name"))
