"""The Job that the Flux operator makes of a MiniCluster: what Kueue gets to see of one.

One indexed Job of the same name, whose labels are `jobLabels`, with as many pods as the cluster has members. Flux
itself comes in an init container; `pod.resources` becomes the overhead of each pod.
"""

from collections.abc import Mapping
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

NOT_DOWNSYNCED = "the ConfigMaps and the Service of a MiniCluster stay where it was made, and its pods would miss them"
_POD_FIELDS = ("nodeSelector", "tolerations", "schedulerName", "serviceAccountName", "runtimeClassName")


def operator_job(mini_cluster: Manifest) -> dict[str, Any]:
    content = as_map(mini_cluster.get("spec"))
    metadata = as_map(mini_cluster.get("metadata"))
    name = as_text(metadata.get("name"))
    size = content.get("size") if isinstance(content.get("size"), int) else 1
    pod = as_map(content.get("pod"))
    labels = {"app.kubernetes.io/name": name, **as_map(pod.get("labels"))}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
            "name": name,
            "labels": dict(as_map(content.get("jobLabels"))),
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": size,
            "parallelism": size,
            "backoffLimit": content.get("backoffLimit", 100),
            "activeDeadlineSeconds": content.get("deadlineSeconds", 31500000),
            "template": {
                "metadata": {"labels": labels, "annotations": dict(as_map(pod.get("annotations")))},
                "spec": _pod_spec(name, content, pod),
            },
        },
    }


def _pod_spec(name: str, content: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    containers = as_list(content.get("containers"))
    view = as_map(at(content, "flux", "container"))
    first = {"name": view.get("name") or "flux-view", "image": view.get("image") or "flux-view", **_resources(view)}
    return {
        "restartPolicy": "OnFailure",
        "subdomain": at(content, "network", "headlessName") or "flux-service",
        # Also where the image brings Flux: then it copies nothing, and still asks for its resources.
        "initContainers": [first],
        "containers": [_container(name, number, one) for number, one in enumerate(containers)],
        **{field: pod[field] for field in _POD_FIELDS if pod.get(field)},
        **_affinity(pod),
        **({"overhead": dict(as_map(pod["resources"]))} if pod.get("resources") else {}),
    }


def _affinity(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The operator requires a node with one of the values of each label."""
    wanted = as_map(pod.get("nodeAffinity"))
    if not wanted:
        return {}
    needs = [{"key": key, "operator": "In", "values": list(as_list(values))} for key, values in wanted.items()]
    terms = {"nodeSelectorTerms": [{"matchExpressions": needs}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _container(name: str, number: int, container: Any) -> dict[str, Any]:
    own = as_text(at(container, "name")) or (name if number == 0 else f"{name}-{number}")
    return {"name": own, "image": as_text(at(container, "image")) or "flux", **_resources(container)}


def _resources(container: Any) -> dict[str, Any]:
    asked = as_map(at(container, "resources"))
    return {"resources": dict(asked)} if asked else {}
