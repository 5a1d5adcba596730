"""Which shape of its objects the manager's KubeStellar takes, by the definitions that are installed there."""

from collections.abc import Mapping

from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_map, at
from reconciler.links import ManagedClusters
from reconciler.objects import ClusterName, Manifest
from reconciler.ports import ClusterPort
from reconciler.spec import FleetSpec
from reconciler.spec.choices import Dispatch
from reconciler.spec.kubestellar import Collectors, PolicyShape

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUP = "control.kubestellar.io"
_MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


def observe_shape(spec: FleetSpec, ports: Mapping[ClusterName, ClusterPort]) -> PolicyShape | None:
    """None where nobody asks for it, or the definition cannot be read: then the spec says which release it is."""
    is_asked = any(queue.dispatch is Dispatch.KUBESTELLAR for queue in spec.queues)
    port = ports.get(spec.manager.name) if spec.manager else None
    if not is_asked or port is None:
        return None
    try:
        policies, collectors, transforms = (
            port.find(f"{_DEFINITIONS}/{plural}.{_GROUP}")
            for plural in ("bindingpolicies", "statuscollectors", "customtransforms")
        )
    except ClusterError:
        return None
    return read_shape(policies, collectors is not None, transforms is not None) if policies else None


def has_policies(port: ClusterPort) -> bool:
    """Whether KubeStellar is there: a question that needs no right of its own."""
    try:
        return port.find(f"/apis/{_GROUP}/v1alpha1") is not None
    except ClusterError:
        return False


def observe_inventory(port: ClusterPort) -> ManagedClusters:
    try:
        found = [as_map(one.get("metadata")) for one in port.list(_MANAGED)]
    except ClusterError as error:
        return ManagedClusters(problem=error.problem)
    return ManagedClusters({one["name"]: as_map(one.get("labels")) for one in found})


def read_shape(definition: Manifest, has_collectors: bool, has_transforms: bool) -> PolicyShape:  # noqa: FBT001  (facts)
    versions = [as_map(one) for one in as_list(at(definition, "spec", "versions"))]
    version = next((one for one in versions if one.get("storage")), {})
    spec = as_map(at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties"))
    clause = as_map(at(spec, "downsync", "items", "properties"))
    collectors = next((one for one in (Collectors.FLAT, Collectors.NESTED) if one.value in clause), Collectors.NOWHERE)
    return PolicyShape(
        is_singleton_in_clause="wantSingletonReportedState" in clause,
        has_create_only="createOnly" in clause,
        collectors=collectors if has_collectors else Collectors.NOWHERE,
        has_status_collectors=has_collectors,
        has_custom_transforms=has_transforms,
    )
