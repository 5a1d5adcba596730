"""Flavors, cohorts and queues of a cluster, and the namespaces, LocalQueues and RoleBindings of its tenants."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.capacity.quota import Quota, QuotaTable
from reconciler.kueue.reading import as_text, at
from reconciler.quantity import ZERO
from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, without_empty
from reconciler.skypilot.render import with_provisioning
from reconciler.spec.enums import Dispatch, Drain, Role, StopPolicy
from reconciler.spec.model import Cluster, Flavor, FleetSpec, Member, Queue, Tenant
from reconciler.spec.places import clusters_of_queues, is_only_downsynced
from reconciler.spec.selectors import DRAIN_ON_DELETE

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
# Stored on the object, because the Queue document is gone when kfleet deletes the ClusterQueue.
DRAIN = DRAIN_ON_DELETE


def flavor_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """One ResourceFlavor on each cluster that the flavor selects."""
    is_downsynced = is_only_downsynced(spec)
    for flavor in spec.flavors:
        for cluster in spec.selected(flavor.clusters):
            if not is_downsynced(flavor, cluster):
                yield desired_object(cluster, resource_flavor(flavor), flavor.document)


def queue_objects(spec: FleetSpec, quota: QuotaTable) -> Iterator[DesiredObject]:
    """The ClusterQueue on each cluster that runs the queue's jobs."""
    namespaces = namespaces_of_queues(spec)
    for queue in spec.queues:
        for cluster in spec.selected(queue.clusters) if queue.dispatch is not Dispatch.KUBESTELLAR else ():
            groups = resource_groups(quota.of(queue, cluster.name))
            checked = with_provisioning(spec, queue)
            manifest = cluster_queue(checked, cluster, groups, namespaces.get(queue.name, ()))
            made = desired_object(cluster, manifest, queue.document)
            yield replace(made, unseen=quota.unseen_of(queue, [cluster]))


def cohort_objects(spec: FleetSpec, queues: Iterable[DesiredObject]) -> Iterator[DesiredObject]:
    """A Cohort for each cohort name that a queue uses and no document declares, so that kfleet can prune it."""
    declared = {
        (cluster.name, entry.manifest["metadata"]["name"])
        for entry in spec.objects
        if entry.manifest["kind"] == "Cohort"
        for cluster in spec.targeted(entry.targets)
    }
    clusters = {cluster.name: cluster for cluster in spec.clusters}
    for queue in queues:
        name = queue.manifest["spec"].get("cohortName")
        key = (queue.ref.cluster, name)
        if name and key not in declared:
            declared.add(key)
            yield desired_object(clusters[queue.ref.cluster], kueue_manifest("Cohort", name, {}), queue.document)


def namespaces_of_queues(spec: FleetSpec) -> Mapping[str, tuple[str, ...]]:
    """The namespaces that submit to each queue: those of its tenants and of native LocalQueues."""
    found: dict[str, set[str]] = {}
    for tenant in spec.tenants:
        found.setdefault(tenant.queue, set()).update(tenant.namespaces)
    for entry in spec.objects:
        if entry.manifest["kind"] == "LocalQueue":
            queue = as_text(at(entry.manifest, "spec", "clusterQueue"))
            namespace = as_text(at(entry.manifest, "metadata", "namespace")) or "default"
            found.setdefault(queue, set()).add(namespace)
    return {queue: tuple(sorted(namespaces)) for queue, namespaces in found.items()}


def cluster_queue(
    queue: Queue, cluster: Cluster, groups: list[dict[str, Any]], namespaces: tuple[str, ...]
) -> dict[str, Any]:
    content = without_empty(
        {
            "cohortName": queue.cohort,
            "queueingStrategy": queue.queueing_strategy,
            "stopPolicy": _stop_policy(queue, cluster),
            "preemption": dict(queue.preemption),
            "flavorFungibility": dict(queue.flavor_fungibility),
            "resourceGroups": groups,
            "admissionChecksStrategy": _admission_checks(queue, groups),
            "fairSharing": without_empty({"weight": _text(queue.fair_sharing_weight)}),
            "admissionScope": dict(queue.admission_scope),
        }
    )
    selector = _namespace_selector(queue, namespaces)
    manifest = kueue_manifest(
        "ClusterQueue", queue.name, content | ({} if selector is None else {"namespaceSelector": selector})
    )
    if queue.drain_on_delete:
        manifest["metadata"]["annotations"] = {DRAIN: "true"}
    return manifest


def resource_groups(entries: Iterable[Quota]) -> list[dict[str, Any]]:
    """Resource groups as Kueue requires them: each flavor and resource in one group, each flavor with all resources.

    Entries that share a resource are one group. A resource that an entry does not have gets a quota of 0.
    """
    groups: list[list[Quota]] = []
    for entry in entries:
        if not entry.nominal:
            continue
        touching = [group for group in groups if any(entry.nominal.keys() & other.nominal.keys() for other in group)]
        merged = [*(quota for group in touching for quota in group), entry]
        groups = [
            merged if touching and group is touching[0] else group for group in groups if group not in touching[1:]
        ]
        groups += [] if touching else [merged]
    return [_group(group) for group in groups]


def _group(entries: list[Quota]) -> dict[str, Any]:
    covered = list(dict.fromkeys(name for entry in entries for name in entry.nominal))
    return {
        "coveredResources": covered,
        "flavors": [
            {"name": entry.flavor, "resources": [_resource(entry, name) for name in covered]} for entry in entries
        ],
    }


def _resource(entry: Quota, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "nominalQuota": str(entry.nominal.get(name, ZERO)),
        **({"borrowingLimit": str(entry.borrowing[name])} if name in entry.borrowing else {}),
        **({"lendingLimit": str(entry.lending[name])} if name in entry.lending else {}),
    }


def resource_flavor(flavor: Flavor) -> dict[str, Any]:
    content = {
        "nodeLabels": dict(flavor.node_labels),
        "nodeTaints": [dict(taint) for taint in flavor.node_taints],
        "tolerations": [dict(toleration) for toleration in flavor.tolerations],
        "topologyName": flavor.topology_name,
    }
    manifest = kueue_manifest("ResourceFlavor", flavor.name, without_empty(content))
    # As most people write one: an empty spec would be a change of a flavor that was made without.
    return manifest if manifest["spec"] else {name: value for name, value in manifest.items() if name != "spec"}


def _stop_policy(queue: Queue, cluster: Cluster) -> str:
    if cluster.is_drained:
        return held(cluster, queue.stop_policy).value
    return "" if queue.stop_policy is StopPolicy.NONE else queue.stop_policy.value


def held(cluster: Cluster, wanted: StopPolicy) -> StopPolicy:
    """The stop policy of a queue on a drained cluster: it evicts if the cluster's drain or the queue itself does."""
    is_evicting = cluster.drain is Drain.EVICT or wanted is StopPolicy.HOLD_AND_DRAIN
    return StopPolicy.HOLD_AND_DRAIN if is_evicting else StopPolicy.HOLD


def _admission_checks(queue: Queue, groups: list[dict[str, Any]]) -> dict[str, Any]:
    """The checks of a queue for the flavors of this cluster. A check without any of these flavors is omitted."""
    present = {flavor["name"] for group in groups for flavor in group["flavors"]}
    checks = []
    for check in queue.admission_checks:
        flavors = [name for name in check.on_flavors if name in present]
        if flavors or not check.on_flavors:
            checks.append(without_empty({"name": check.name, "onFlavors": flavors}))
    return without_empty({"admissionChecks": checks})


def _namespace_selector(queue: Queue, namespaces: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The selector of the queue, or else the namespaces that submit to it; None selects nothing."""
    if queue.namespace_selector is not None:
        return queue.namespace_selector.manifest()
    if not namespaces:
        return None
    return {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": list(namespaces)}]}


def _text(value: object) -> str:
    return "" if value is None else str(value)


RBAC = "rbac.authorization.k8s.io"
ROLES = {"user": "kueue-batch-user-role", "admin": "kueue-batch-admin-role"}


def tenant_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """The same namespaces and LocalQueues on every cluster of the tenant's queue: MultiKueue dispatches by name.

    For jobs that KubeStellar downsyncs there is a namespace on the worker, but no LocalQueue.
    """
    queues = {queue.name: queue for queue in spec.queues}
    places = clusters_of_queues(spec)
    labels = _namespace_labels(spec)
    seen: dict[tuple[str, str], DesiredObject] = {}
    for tenant in spec.tenants:
        for cluster in places.get(tenant.queue, ()):
            for namespace in tenant.namespaces:
                if not is_builtin(namespace) and (cluster.name, namespace) not in seen:
                    seen[cluster.name, namespace] = _namespace(cluster, namespace, tenant, labels[namespace])
                if cluster.role is Role.MANAGER or not is_downsynced(queues.get(tenant.queue)):
                    yield desired_object(cluster, _local_queue(tenant, namespace), tenant.document)
    yield from seen.values()


def is_downsynced(queue: Queue | None) -> bool:
    return queue is not None and queue.dispatch is Dispatch.KUBESTELLAR


def is_builtin(namespace: str) -> bool:
    """Namespaces that every cluster has. kfleet uses them but never owns them, because it might delete them."""
    return namespace == "default" or namespace.startswith("kube-")


def _namespace_labels(spec: FleetSpec) -> Mapping[str, Mapping[str, str]]:
    """Each namespace with the labels of all of its tenants."""
    found: dict[str, dict[str, str]] = {}
    for tenant in spec.tenants:
        for namespace in tenant.namespaces:
            found.setdefault(namespace, {}).update(tenant.namespace_labels)
    return found


def _namespace(cluster: Cluster, name: str, tenant: Tenant, labels: Mapping[str, str]) -> DesiredObject:
    metadata = without_empty({"name": name, "labels": dict(labels)})
    return desired_object(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, tenant.document)


def _local_queue(tenant: Tenant, namespace: str) -> dict[str, object]:
    weight = tenant.fair_sharing_weight
    content = {
        "clusterQueue": tenant.queue,
        "stopPolicy": "" if tenant.stop_policy is StopPolicy.NONE else tenant.stop_policy.value,
        "fairSharing": {} if weight is None else {"weight": str(weight)},
    }
    return kueue_manifest("LocalQueue", tenant.local_queue, without_empty(content), namespace)


def member_objects(spec: FleetSpec) -> Iterator[DesiredObject]:
    """A RoleBinding per role in each namespace of a tenant, on the clusters where its jobs are submitted."""
    places = clusters_of_queues(spec)
    for tenant in spec.tenants:
        for cluster in submission_clusters(places.get(tenant.queue, ())):
            for namespace in tenant.namespaces:
                for role in ROLES:
                    if members := [one for one in tenant.members if one.role == role]:
                        yield desired_object(cluster, _binding(tenant, namespace, role, members), tenant.document)


def submission_clusters(clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
    """The manager if the queue is there, because it dispatches the jobs; otherwise every cluster of the queue."""
    return tuple(cluster for cluster in clusters if cluster.role is Role.MANAGER) or clusters


def _binding(tenant: Tenant, namespace: str, role: str, members: list[Member]) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"kfleet-{tenant.name}-{role}", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLES[role]},
        "subjects": [_subject(member, namespace) for member in members],
    }


def _subject(member: Member, namespace: str) -> dict[str, str]:
    if member.kind == "ServiceAccount":
        return {"kind": member.kind, "name": member.name, "namespace": member.namespace or namespace}
    return {"apiGroup": RBAC, "kind": member.kind, "name": member.name}
