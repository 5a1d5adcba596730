"""The fleet, with indexes for everything that rules look up repeatedly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.kinds import GROUP, OLDEST, KueueVersion
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Ref
from reconciler.render.model import Desired, DesiredObject
from reconciler.render.served_version import offline_api
from reconciler.spec.document import Document, FieldPath
from reconciler.spec.model import Cluster, FleetSpec

Address = tuple[str, str]
Objects = Mapping[Address, DesiredObject]
NO_OBJECTS: Objects = {}
WITH_QUOTA = ("ClusterQueue", "Cohort")
INDEXED_GROUPS = ("", GROUP)


@dataclass(frozen=True, slots=True)
class PlacedQuota:
    """One quota of a ClusterQueue or a Cohort, and its path in the manifest."""

    path: FieldPath
    flavor: str
    name: str
    quota: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """`objects` has a cluster's objects of a kind by namespace and name; `unknown` the flavors without a capacity.

    `quotas` are those of ClusterQueues and Cohorts.
    """

    spec: FleetSpec
    desired: Desired
    manager: Cluster | None
    clusters: Mapping[ClusterName, Cluster]
    versions: Mapping[ClusterName, KueueVersion]
    clusters_of_queue: Mapping[str, tuple[Cluster, ...]]
    clusters_of_flavor: Mapping[str, tuple[Cluster, ...]]
    objects: Mapping[tuple[ClusterName, str], Objects]
    unknown: frozenset[tuple[ClusterName, str]]
    quotas: Mapping[Ref, tuple[PlacedQuota, ...]]

    def of(self, cluster: ClusterName, kind: str) -> Objects:
        return self.objects.get((cluster, kind), NO_OBJECTS)

    def every(self, *kinds: str) -> Iterator[DesiredObject]:
        """Return the objects of these kinds on all clusters, in the order of the fleet."""
        for cluster in self.clusters:
            for kind in kinds:
                yield from self.of(cluster, kind).values()


def build_view(spec: FleetSpec, desired: Desired) -> View:
    objects: dict[tuple[ClusterName, str], dict[Address, DesiredObject]] = {}
    for entry in desired.objects:
        ref = entry.ref
        if ref.group not in INDEXED_GROUPS:
            continue
        objects.setdefault((ref.cluster, ref.kind), {})[ref.namespace, ref.name] = entry
    return View(
        spec=spec,
        desired=desired,
        manager=spec.manager,
        clusters={cluster.name: cluster for cluster in spec.clusters},
        versions={cluster.name: offline_api(cluster).version for cluster in spec.clusters},
        clusters_of_queue={queue.name: spec.selected(queue.clusters) for queue in spec.queues},
        clusters_of_flavor={flavor.name: spec.selected(flavor.clusters) for flavor in spec.flavors},
        objects=objects,
        unknown=frozenset((gap.cluster, gap.flavor) for gap in desired.gaps if gap.flavor),
        quotas={entry.ref: tuple(_placed_quotas(entry)) for entry in desired.objects if entry.ref.kind in WITH_QUOTA},
    )


def is_supported(version: KueueVersion) -> bool:
    return version >= OLDEST


def documents_of(spec: FleetSpec) -> Iterator[Document]:
    yield spec.fleet.document
    for nouns in (spec.clusters, spec.flavors, spec.queues, spec.tenants, spec.master_queues, spec.objects):
        yield from (noun.document for noun in nouns)


def is_native(entry: DesiredObject) -> bool:
    """Whether the document is the object itself, so that its fields are those of the object."""
    return entry.document.kind == entry.ref.kind and entry.document.group == entry.ref.group


def is_kueue(document: Document) -> bool:
    return document.group == GROUP


def _placed_quotas(entry: DesiredObject) -> Iterator[PlacedQuota]:
    for number, group in enumerate(as_list(at(entry.manifest, "spec", "resourceGroups"))):
        for position, flavor in enumerate(as_list(at(group, "flavors"))):
            for index, quota in enumerate(as_list(at(flavor, "resources"))):
                path = ("spec", "resourceGroups", number, "flavors", position, "resources", index)
                yield PlacedQuota(path, as_text(at(flavor, "name")), as_text(at(quota, "name")), as_map(quota))


def flavors_of(entry: DesiredObject) -> dict[str, FieldPath]:
    """Return the flavors that a ClusterQueue or a Cohort names, each with its path."""
    return {
        as_text(at(flavor, "name")): ("spec", "resourceGroups", number, "flavors", position, "name")
        for number, group in enumerate(as_list(at(entry.manifest, "spec", "resourceGroups")))
        for position, flavor in enumerate(as_list(at(group, "flavors")))
    }
