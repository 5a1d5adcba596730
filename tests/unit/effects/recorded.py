"""A snapshot of a cluster with these objects, as `kfleet snapshot` would have recorded it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from reconciler.objects import ClusterName, Manifest, group_of
from reconciler.snapshot.masking import masked_body
from reconciler.snapshot.recording import ClusterRecording, RecordedAnswer, Recording, Request
from tests.builders import namespace_object

TAKEN = datetime(2026, 11, 18, 16, 0, tzinfo=UTC)
KUEUE, CORE = "kueue.x-k8s.io", ""
# Plural and kind by group and version, and whether the kind is namespaced.
SERVED: dict[tuple[str, str], dict[str, tuple[str, bool]]] = {
    (CORE, "v1"): {
        "namespaces": ("Namespace", False),
        "configmaps": ("ConfigMap", True),
        "secrets": ("Secret", True),
        "serviceaccounts": ("ServiceAccount", True),
        "nodes": ("Node", False),
        "pods": ("Pod", True),
    },
    ("batch", "v1"): {"jobs": ("Job", True)},
    ("apps", "v1"): {"deployments": ("Deployment", True)},
    ("rbac.authorization.k8s.io", "v1"): {
        "roles": ("Role", True),
        "rolebindings": ("RoleBinding", True),
        "clusterroles": ("ClusterRole", False),
        "clusterrolebindings": ("ClusterRoleBinding", False),
    },
    (KUEUE, "v1beta2"): {
        "clusterqueues": ("ClusterQueue", False),
        "cohorts": ("Cohort", False),
        "localqueues": ("LocalQueue", True),
        "resourceflavors": ("ResourceFlavor", False),
        "admissionchecks": ("AdmissionCheck", False),
        "topologies": ("Topology", False),
        "workloads": ("Workload", True),
        "workloadpriorityclasses": ("WorkloadPriorityClass", False),
        "multikueueconfigs": ("MultiKueueConfig", False),
        "multikueueclusters": ("MultiKueueCluster", False),
        "provisioningrequestconfigs": ("ProvisioningRequestConfig", False),
    },
}


def recording_of(**clusters: Iterable[Manifest]) -> Recording:
    return Recording(
        taken_at=TAKEN,
        fleet="demo",
        clusters={
            ClusterName(name): ClusterRecording(
                server=f"https://{name}.example:6443", answers=dict(_answers(name, objects))
            )
            for name, objects in clusters.items()
        },
    )


def _answers(name: str, objects: Iterable[Manifest]) -> Iterable[tuple[Request, RecordedAnswer]]:
    listed = [namespace_object("kube-system", uid=f"uid-of-{name}"), namespace_object("kueue-system"), *objects]
    for path, is_core in (("/api", True), ("/apis", False)):
        groups = [_group(key, kinds) for key, kinds in SERVED.items() if (key[0] == CORE) is is_core]
        yield Request(path=path, is_discovery=True), _answer({"kind": "APIGroupDiscoveryList", "items": groups})
    for (group, version), kinds in SERVED.items():
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for plural, (kind, _) in kinds.items():
            items = [one for one in listed if (group_of(one), one["kind"]) == (group, kind)]
            body = {"kind": f"{kind}List", "apiVersion": root, "metadata": {}, "items": items}
            path = f"{root}/{plural}"
            yield Request(path=path), _answer(masked_body(path, body))


def _group(key: tuple[str, str], kinds: dict[str, tuple[str, bool]]) -> dict[str, Any]:
    resources = [
        {"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced" if is_namespaced else "Cluster"}
        for plural, (kind, is_namespaced) in kinds.items()
    ]
    return {"metadata": {"name": key[0]}, "versions": [{"version": key[1], "resources": resources}]}


def _answer(body: Any) -> RecordedAnswer:
    return RecordedAnswer(200, body)
