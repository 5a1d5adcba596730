"""Objects of Kueue as they are written in its own API, and others that clusters hold."""

from collections.abc import Mapping
from typing import Any

from tests.builders.fleet import CLUSTERS, Document, annotated

KUEUE = "kueue.x-k8s.io/v1beta2"


def native(kind: str, name: str, spec: Any = None, clusters: str = "", **metadata: Any) -> Document:
    """Without a spec where that is None; `clusters` says where it goes to in a fleet."""
    head: Document = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **metadata}}
    whole = head if spec is None else {**head, "spec": spec}
    return annotated(whole, {CLUSTERS: clusters}) if clusters else whole


def resource_flavor(name: str, **spec: Any) -> Document:
    return native("ResourceFlavor", name, spec)


def cluster_queue(name: str, *groups: Any, **spec: Any) -> Document:
    return native("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": list(groups), **spec})


def live_queue(  # each argument is a fact that one of its readers depends on
    name: str = "q",
    policy: str = "None",
    *,
    is_active: bool = True,
    seen: int = 2,
    reserving: int = 0,
    **spec: Any,
) -> Document:
    """A ClusterQueue of generation 2 as its cluster has it; `seen` is the generation that its condition is about."""
    condition = {"type": "Active", "status": str(is_active), "observedGeneration": seen}
    queue = native("ClusterQueue", name, {"stopPolicy": policy, **spec}, generation=2)
    return {**queue, "status": {"conditions": [condition], "reservingWorkloads": reserving}}


def cohort(name: str, *groups: Any, **spec: Any) -> Document:
    return native("Cohort", name, {"resourceGroups": list(groups), **spec})


def local_queue(name: str, namespace: str, queue: str, **spec: Any) -> Document:
    return native("LocalQueue", name, {"clusterQueue": queue, **spec}, namespace=namespace)


def resource_group(covered: list[Any], *flavors: Any) -> Document:
    return {"coveredResources": covered, "flavors": list(flavors)}


def flavor_quotas(name: Any, *resources: Any) -> Document:
    return {"name": name, "resources": list(resources)}


def resource_quota(name: Any, nominal: Any = "1", **limits: Any) -> Document:
    return {"name": name, "nominalQuota": nominal, **limits}


def cpu_group(nominal: Any = "1", *, of: str = "default", **limits: Any) -> Document:
    """A group of one flavor that gives one resource."""
    return resource_group(["cpu"], flavor_quotas(of, resource_quota("cpu", nominal, **limits)))


def workload(name: str, namespace: str, *, cpu: str = "1") -> Document:
    """What Kueue makes of a job, without the job."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return native("Workload", name, {"queueName": "main", "podSets": [pods]}, namespace=namespace)


def namespace_object(name: str, **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def definition(
    api_version: str, kind: str, plural: str, *, is_namespaced: bool = False, schema: Mapping[str, Any] | None = None
) -> Document:
    """A definition of a kind whose controller is not here; without a schema it takes any spec."""
    group, _, version = api_version.partition("/")
    any_spec = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or any_spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced" if is_namespaced else "Cluster",
            "versions": [served],
        },
    }
