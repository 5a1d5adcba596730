"""The order in which objects of a cluster are written; they are deleted in the reverse of it."""

from reconciler.objects import Ref

# Nothing is written before what it refers to. A kind that is not named here comes last.
WAVES: tuple[tuple[str, ...], ...] = (
    ("Namespace", "CustomResourceDefinition"),
    ("ServiceAccount", "ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    ("Topology", "WorkloadPriorityClass", "ProvisioningRequestConfig"),
    ("ResourceFlavor",),
    ("Secret", "ConfigMap"),
    ("MultiKueueCluster",),
    ("MultiKueueConfig",),
    ("AdmissionCheck",),
    ("Cohort",),
    ("ClusterQueue",),
    ("LocalQueue",),
)
_WAVE_OF_KIND = {kind: number for number, kinds in enumerate(WAVES) for kind in kinds}


def wave_of(ref: Ref) -> int:
    return _WAVE_OF_KIND.get(ref.kind, len(WAVES))
