"""Which shape of its objects the manager's KubeStellar takes, by the definitions that are installed there."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from reconciler.clients.access import open_cluster
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.reading import as_list, as_map, at
from reconciler.multikueue.model import ManagedClusters
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.enums import Dispatch
from reconciler.spec.kubestellar import ADMISSION_GROUP, API_GROUP, Collectors, PolicyShape
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import downsynced_queues

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MANAGED = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
NAME = ClusterName("its")


def observe_shape(spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient]) -> PolicyShape | None:
    """None if no queue needs it or the definition cannot be read; then the spec says which release it is."""
    is_asked = any(queue.dispatch is Dispatch.KUBESTELLAR for queue in spec.queues)
    client = clients.get(spec.manager.name) if spec.manager else None
    if not is_asked or client is None:
        return None
    try:
        policies, collectors, transforms = (
            client.find(f"{_DEFINITIONS}/{plural}.{API_GROUP}")
            for plural in ("bindingpolicies", "statuscollectors", "customtransforms")
        )
        admission = client.find(f"/apis/{ADMISSION_GROUP}/v1")
    except ClusterError:
        return None
    if not policies:
        return None
    shape = read_shape(policies, collectors is not None, transforms is not None)
    return replace(shape, has_guard=_has_guard(admission))


def _has_guard(served: Manifest | None) -> bool:
    return any(at(one, "name") == "validatingadmissionpolicies" for one in as_list(at(served, "resources")))


def has_policies(client: ClusterClient) -> bool:
    """Whether KubeStellar is there. Only the API server's own 404 says no; the question needs no right of its own."""
    return client.find(f"/apis/{API_GROUP}/v1alpha1") is not None


def observe_inventory(client: ClusterClient) -> ManagedClusters:
    try:
        found = [as_map(one.get("metadata")) for one in client.list(_MANAGED)]
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


def look_at_inventory(
    spec: FleetSpec,
    clients: Mapping[ClusterName, ApiServer],
    opener: Callable[[Cluster, ApiServer | None], ApiServer] = open_cluster,
) -> ManagedClusters | None:
    """None if the spec does not say how to reach it, or no job is downsynced."""
    access, manager = spec.fleet.inventory, spec.manager
    if access is None or manager is None or not downsynced_queues(spec):
        return None
    try:
        with closing(opener(replace(manager, name=NAME, access=access), clients.get(manager.name))) as client:
            return observe_inventory(client)
    except ClusterError as error:
        return ManagedClusters(problem=error.problem)
