"""How server-side apply merges the lists and maps of each kind: who writes one item of an atomic one owns all of it."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.kueue.kinds import OLDEST, V1BETA2_SINCE, KueueVersion


class Merge(StrEnum):
    ATOMIC = "one owner for the whole"
    KEYED = "one owner per item, found by its key"
    SET = "one owner per value"


@dataclass(frozen=True, slots=True)
class MergedField:
    kind: str
    path: str
    merge: Merge
    key: str = ""
    since: KueueVersion = OLDEST
    until: KueueVersion | None = None


_CHECKS = "spec.admissionChecksStrategy.admissionChecks"
_SELECTOR = "spec.podSetUpdates.nodeSelector"
_CLUSTERS_ORDERED = KueueVersion(0, 19)

MERGED_FIELDS = (
    MergedField("ClusterQueue", "spec.resourceGroups", Merge.ATOMIC),
    MergedField("ClusterQueue", "spec.namespaceSelector", Merge.ATOMIC),
    MergedField("ClusterQueue", _CHECKS, Merge.ATOMIC, until=V1BETA2_SINCE),
    MergedField("ClusterQueue", _CHECKS, Merge.KEYED, key="name", since=V1BETA2_SINCE),
    MergedField("ClusterQueue", f"{_CHECKS}[].onFlavors", Merge.SET, since=V1BETA2_SINCE),
    MergedField("Cohort", "spec.resourceGroups", Merge.ATOMIC),
    MergedField("MultiKueueConfig", "spec.clusters", Merge.SET, until=_CLUSTERS_ORDERED),
    MergedField("MultiKueueConfig", "spec.clusters", Merge.ATOMIC, since=_CLUSTERS_ORDERED),
    MergedField("ProvisioningRequestConfig", "spec.managedResources", Merge.SET),
    MergedField("ProvisioningRequestConfig", _SELECTOR, Merge.ATOMIC, until=V1BETA2_SINCE),
    MergedField("ProvisioningRequestConfig", _SELECTOR, Merge.KEYED, key="key", since=V1BETA2_SINCE),
    MergedField("ResourceFlavor", "spec.nodeLabels", Merge.ATOMIC),
    MergedField("ResourceFlavor", "spec.nodeTaints", Merge.ATOMIC),
    MergedField("ResourceFlavor", "spec.tolerations", Merge.ATOMIC),
    MergedField("Topology", "spec.levels", Merge.ATOMIC),
)


def merged_fields(kind: str, version: KueueVersion) -> tuple[MergedField, ...]:
    return tuple(
        one
        for one in MERGED_FIELDS
        if one.kind == kind and one.since <= version and (one.until is None or version < one.until)
    )
