"""What the reasons of Kueue's `Active` conditions mean, and what to do about them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    kind: str
    reason: str
    is_healthy: bool
    meaning: str
    remedy: str = ""


REASONS = (
    Reason("ClusterQueue", "Ready", True, "The queue admits workloads."),
    Reason(
        "ClusterQueue",
        "Terminating",
        False,
        "The queue is being deleted and waits for its admitted workloads to end.",
        "Wait, or set stopPolicy HoldAndDrain to evict them.",
    ),
    Reason(
        "ClusterQueue",
        "Stopped",
        False,
        "The queue's stopPolicy holds it.",
        "Set stopPolicy to None when it shall admit again.",
    ),
    Reason(
        "ClusterQueue",
        "FlavorNotFound",
        False,
        "The queue lists a ResourceFlavor that does not exist; it admits nothing, on its other flavors neither.",
        "Create the flavor that the message names, or take it out of resourceGroups.",
    ),
    Reason(
        "ClusterQueue",
        "AdmissionCheckNotFound",
        False,
        "The queue names an AdmissionCheck that does not exist.",
        "Create the check that the message names, or take it out of admissionChecksStrategy.",
    ),
    Reason(
        "ClusterQueue",
        "AdmissionCheckInactive",
        False,
        "An AdmissionCheck of the queue is not active.",
        "Look at the Active condition of the check that the message names; it says what its controller misses.",
    ),
    Reason(
        "ClusterQueue",
        "MultipleMultiKueueAdmissionChecks",
        False,
        "Two MultiKueue checks stand on one queue, and Kueue cannot obey both.",
        "Keep one; give its MultiKueueConfig the clusters of the other.",
    ),
    Reason(
        "ClusterQueue",
        "MultiKueueAdmissionCheckAppliedPerFlavor",
        False,
        "The MultiKueue check is limited to some flavors, which Kueue cannot do.",
        "Remove onFlavors from the check, or give the other flavors a queue of their own.",
    ),
    Reason(
        "ClusterQueue",
        "MultiKueueWithProvisioningRequest",
        False,
        "A MultiKueue and a ProvisioningRequest check stand on one queue.",
        "Move the ProvisioningRequest check to the queues of the worker clusters.",
    ),
    Reason(
        "ClusterQueue",
        "TopologyNotFound",
        False,
        "A flavor of the queue names a Topology that does not exist.",
        "Create the Topology that the message names, or the flavor again without topologyName.",
    ),
    Reason(
        "ClusterQueue",
        "NotFound",
        False,
        "Kueue has not taken up the queue yet.",
        "Wait a moment; if it stays, look whether Kueue's controller runs.",
    ),
    Reason(
        "ClusterQueue",
        "Unknown",
        False,
        "Kueue does not admit and gives no reason.",
        "Look into the log of Kueue's controller.",
    ),
    Reason("LocalQueue", "Ready", True, "The queue takes workloads and passes them on."),
    Reason(
        "LocalQueue",
        "Stopped",
        False,
        "The queue's own stopPolicy holds it.",
        "Set stopPolicy to None when it shall take workloads again.",
    ),
    Reason(
        "LocalQueue",
        "ClusterQueueIsInactive",
        False,
        "The ClusterQueue behind it admits nothing.",
        "Look at the Active condition of that ClusterQueue.",
    ),
    Reason(
        "LocalQueue",
        "ClusterQueueDoesNotExist",
        False,
        "The ClusterQueue behind it does not exist.",
        "Create it; the name in a LocalQueue cannot be changed, only the LocalQueue made again.",
    ),
    Reason("AdmissionCheck", "Active", True, "The check's controller works."),
    Reason(
        "AdmissionCheck",
        "SomeActiveClusters",
        False,
        "Some worker clusters of the check cannot be used; workloads go to the others.",
        "Look at the Active conditions of the MultiKueueClusters that the message names.",
    ),
    Reason(
        "AdmissionCheck",
        "NoUsableClusters",
        False,
        "No worker cluster of the check can be used, so that nothing is dispatched.",
        "Create the missing MultiKueueClusters and mend the inactive ones; the message names both.",
    ),
    Reason(
        "AdmissionCheck",
        "BadConfig",
        False,
        "The MultiKueueConfig that the check refers to is missing or cannot be read.",
        "Create it, or correct spec.parameters of the check.",
    ),
    Reason(
        "AdmissionCheck",
        "BadParametersRef",
        False,
        "The ProvisioningRequestConfig that the check refers to is missing or of another kind.",
        "Create it, or correct spec.parameters of the check.",
    ),
    Reason("MultiKueueCluster", "Active", True, "The manager is connected to the worker cluster."),
    Reason(
        "MultiKueueCluster",
        "BadKubeConfig",
        False,
        "The kubeconfig cannot be loaded.",
        "Look that the Secret is in Kueue's namespace and has the key kubeconfig, or that the file is there.",
    ),
    Reason(
        "MultiKueueCluster",
        "InsecureKubeConfig",
        False,
        "The kubeconfig uses something that Kueue does not allow.",
        "Use an inline CA with a token or client certificate; no files, exec, basic auth or skipped verification.",
    ),
    Reason(
        "MultiKueueCluster",
        "BadClusterProfile",
        False,
        "The ClusterProfile cannot be used.",
        "Look that it exists in Kueue's namespace and that Kueue's Configuration has an access provider for it.",
    ),
    Reason(
        "MultiKueueCluster",
        "BadRestConfig",
        False,
        "A client for the worker cluster cannot be made from its credentials.",
        "Look at the server address and the credentials that the message names.",
    ),
    Reason(
        "MultiKueueCluster",
        "MultiKueueClusterProfileFeatureDisabled",
        False,
        "The cluster is given by a ClusterProfile, but Kueue's feature gate for it is off.",
        "Switch the gate MultiKueueClusterProfile on, or use a kubeConfig.",
    ),
    Reason(
        "MultiKueueCluster",
        "ClientConnectionFailed",
        False,
        "The worker cluster does not answer, or a job kind that the manager watches is missing or forbidden there.",
        "Look at network, RBAC and CRDs of the worker for every framework that the manager's Kueue has enabled.",
    ),
)
_BY_NAME = {(one.kind, one.reason): one for one in REASONS}


def explain(kind: str, reason: str) -> Reason | None:
    """What a reason of an `Active` condition means; None for one that this table does not know."""
    return _BY_NAME.get((kind, reason))
