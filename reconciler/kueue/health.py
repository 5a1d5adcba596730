"""The meaning of the reasons of Kueue's `Active` conditions, and the remedies."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConditionReason:
    kind: str
    reason: str
    is_healthy: bool
    meaning: str
    remedy: str = ""


REASONS = (
    ConditionReason("ClusterQueue", "Ready", True, "The queue admits workloads."),
    ConditionReason(
        "ClusterQueue",
        "Terminating",
        False,
        "The queue is being deleted and waits for its admitted workloads to finish.",
        "Wait, or set stopPolicy HoldAndDrain to evict them.",
    ),
    ConditionReason(
        "ClusterQueue",
        "Stopped",
        False,
        "The queue is stopped by its stopPolicy.",
        "Set stopPolicy to None to let it admit again.",
    ),
    ConditionReason(
        "ClusterQueue",
        "FlavorNotFound",
        False,
        "The queue lists a ResourceFlavor that does not exist; it admits nothing, not even on its other flavors.",
        "Create the flavor that the message names, or remove it from resourceGroups.",
    ),
    ConditionReason(
        "ClusterQueue",
        "AdmissionCheckNotFound",
        False,
        "The queue names an AdmissionCheck that does not exist.",
        "Create the check that the message names, or remove it from admissionChecksStrategy.",
    ),
    ConditionReason(
        "ClusterQueue",
        "AdmissionCheckInactive",
        False,
        "An AdmissionCheck of the queue is not active.",
        "See the Active condition of the check that the message names; it shows what its controller lacks.",
    ),
    ConditionReason(
        "ClusterQueue",
        "MultipleMultiKueueAdmissionChecks",
        False,
        "The queue has two MultiKueue checks, and Kueue supports one.",
        "Keep one; add the clusters of the other to its MultiKueueConfig.",
    ),
    ConditionReason(
        "ClusterQueue",
        "MultiKueueAdmissionCheckAppliedPerFlavor",
        False,
        "The MultiKueue check is limited to some flavors, which Kueue does not support.",
        "Remove onFlavors from the check, or use a separate queue for the other flavors.",
    ),
    ConditionReason(
        "ClusterQueue",
        "MultiKueueWithProvisioningRequest",
        False,
        "The queue has both a MultiKueue and a ProvisioningRequest check.",
        "Move the ProvisioningRequest check to the queues of the worker clusters.",
    ),
    ConditionReason(
        "ClusterQueue",
        "TopologyNotFound",
        False,
        "A flavor of the queue names a Topology that does not exist.",
        "Create the Topology that the message names, or recreate the flavor without topologyName.",
    ),
    ConditionReason(
        "ClusterQueue",
        "NotFound",
        False,
        "Kueue has not processed the queue yet.",
        "Wait a moment; if it persists, check whether Kueue's controller runs.",
    ),
    ConditionReason(
        "ClusterQueue",
        "Unknown",
        False,
        "Kueue does not admit and gives no reason.",
        "See the log of Kueue's controller.",
    ),
    ConditionReason("LocalQueue", "Ready", True, "The queue accepts workloads."),
    ConditionReason(
        "LocalQueue",
        "Stopped",
        False,
        "The queue is stopped by its own stopPolicy.",
        "Set stopPolicy to None to let it accept workloads again.",
    ),
    ConditionReason(
        "LocalQueue",
        "ClusterQueueIsInactive",
        False,
        "Its ClusterQueue admits nothing.",
        "See the Active condition of that ClusterQueue.",
    ),
    ConditionReason(
        "LocalQueue",
        "ClusterQueueDoesNotExist",
        False,
        "Its ClusterQueue does not exist.",
        "Create it, or recreate the LocalQueue: the name in a LocalQueue is immutable.",
    ),
    ConditionReason("AdmissionCheck", "Active", True, "The check's controller works."),
    ConditionReason(
        "AdmissionCheck",
        "SomeActiveClusters",
        False,
        "Some worker clusters of the check cannot be used; workloads go to the others.",
        "See the Active conditions of the MultiKueueClusters that the message names.",
    ),
    ConditionReason(
        "AdmissionCheck",
        "NoUsableClusters",
        False,
        "No worker cluster of the check can be used, so nothing is dispatched.",
        "Create the missing MultiKueueClusters and repair the inactive ones; the message names both.",
    ),
    ConditionReason(
        "AdmissionCheck",
        "BadConfig",
        False,
        "The MultiKueueConfig that the check refers to is missing or cannot be read.",
        "Create it, or correct spec.parameters of the check.",
    ),
    ConditionReason(
        "AdmissionCheck",
        "BadParametersRef",
        False,
        "The ProvisioningRequestConfig that the check refers to is missing or of another kind.",
        "Create it, or correct spec.parameters of the check.",
    ),
    ConditionReason("MultiKueueCluster", "Active", True, "The manager is connected to the worker cluster."),
    ConditionReason(
        "MultiKueueCluster",
        "BadKubeConfig",
        False,
        "The kubeconfig cannot be loaded.",
        "Check that the Secret is in Kueue's namespace and has the key kubeconfig, or that the file exists.",
    ),
    ConditionReason(
        "MultiKueueCluster",
        "InsecureKubeConfig",
        False,
        "The kubeconfig uses something that Kueue does not allow.",
        "Use an inline CA with a token or client certificate; no files, exec, basic auth or skipped verification.",
    ),
    ConditionReason(
        "MultiKueueCluster",
        "BadClusterProfile",
        False,
        "The ClusterProfile cannot be used.",
        "Check that it exists in Kueue's namespace and that Kueue's Configuration has an access provider for it.",
    ),
    ConditionReason(
        "MultiKueueCluster",
        "BadRestConfig",
        False,
        "A client for the worker cluster cannot be created from its credentials.",
        "Check the server address and the credentials that the message names.",
    ),
    ConditionReason(
        "MultiKueueCluster",
        "MultiKueueClusterProfileFeatureDisabled",
        False,
        "The cluster uses a ClusterProfile, but Kueue's feature gate for it is off.",
        "Enable the feature gate MultiKueueClusterProfile, or use a kubeConfig.",
    ),
    ConditionReason(
        "MultiKueueCluster",
        "ClientConnectionFailed",
        False,
        "The worker cluster does not respond, or a job kind that the manager watches is missing or forbidden there.",
        "Check network, RBAC and CRDs of the worker for every framework that the manager's Kueue has enabled.",
    ),
)
_BY_NAME = {(one.kind, one.reason): one for one in REASONS}


def explain(kind: str, reason: str) -> ConditionReason | None:
    """Return the meaning of a reason of an `Active` condition; None if this table does not have it."""
    return _BY_NAME.get((kind, reason))
