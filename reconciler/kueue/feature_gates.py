"""Feature gates with which a release of Kueue does not start: those that it no longer has, and those that are locked.

From the sources of Kueue 0.14.0, 0.16.2 and 0.19.0. A gate that went between two of them is known to be gone in the
later one only, so nothing is said about the releases between.
"""

from collections.abc import Iterator, Mapping

from reconciler.kueue.kinds import KueueVersion
from reconciler.objects import Manifest

# The first release whose sources were read and that does not have the gate.
_GONE: Mapping[str, KueueVersion] = {
    "ConfigurableResourceTransformations": KueueVersion(0, 16),
    "ExposeFlavorsInLocalQueue": KueueVersion(0, 16),
    "FlavorFungibilityImplicitPreferenceDefault": KueueVersion(0, 16),
    "ManagedJobsNamespaceSelector": KueueVersion(0, 16),
    "ProvisioningACC": KueueVersion(0, 16),
    "DynamicResourceAllocation": KueueVersion(0, 19),
    "LendingLimit": KueueVersion(0, 19),
    "LocalQueueDefaulting": KueueVersion(0, 19),
    "MultiKueueBatchJobWithManagedBy": KueueVersion(0, 19),
    "SanitizePodSets": KueueVersion(0, 19),
    "TASProfileLeastFreeCapacity": KueueVersion(0, 19),
}
# The release since which the gate has this value and no other.
_LOCKED: Mapping[str, tuple[KueueVersion, bool]] = {
    "HierarchicalCohorts": (KueueVersion(0, 17), True),
    "ObjectRetentionPolicies": (KueueVersion(0, 17), True),
    "PropagateBatchJobLabelsToWorkload": (KueueVersion(0, 17), True),
    "MultiKueueRedoAdmissionOnEvictionInWorker": (KueueVersion(0, 18), True),
    "MultiKueueWaitForWorkloadAdmitted": (KueueVersion(0, 18), True),
    "SkipFinalizersForPodsSuspendedByParent": (KueueVersion(0, 18), True),
    "ManagedJobsNamespaceSelectorAlwaysRespected": (KueueVersion(0, 19), True),
    "MultiKueueAllowInsecureKubeconfigs": (KueueVersion(0, 19), False),
}


def refused_gates(gates: Manifest, target: KueueVersion) -> Iterator[str]:
    """Return why a release does not start with these feature gates, one sentence per gate."""
    for name, value in gates.items():
        gone = _GONE.get(name)
        if gone is not None and target >= gone:
            yield f"featureGates.{name}: Kueue {gone} and newer do not know it"
        locked = _LOCKED.get(name)
        if locked is not None and target >= locked[0] and value is not locked[1]:
            yield f"featureGates.{name}: is locked to {str(locked[1]).lower()} since Kueue {locked[0]}"
