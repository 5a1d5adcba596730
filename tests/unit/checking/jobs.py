"""Jobs of all kinds, as people write them."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
LEAST = "kueue.x-k8s.io/job-min-parallelism"


def asking(name: str = "main", **resources: Any) -> Document:
    """A container with requests; `limits` are given by that name. Nobody may ask for GPUs without a limit."""
    limits = resources.pop("limits", None)
    if "gpu" in resources:
        limits = {"nvidia.com/gpu": resources["gpu"], **(limits or {})}
    asked: Document = {"requests": {_named(key): value for key, value in resources.items()}} if resources else {}
    return {"name": name, "image": "none", "resources": asked | ({"limits": limits} if limits else {})}


def _named(key: str) -> str:
    return {"gpu": "nvidia.com/gpu", "storage": "ephemeral-storage"}.get(key, key)


def pod_spec(*containers: Document, **more: Any) -> Document:
    return {"restartPolicy": "Never", "containers": list(containers or (asking(cpu="1"),)), **more}


def job(name: str, pod: Document, queue: str | None = None, **spec: Any) -> Document:
    """A Job in the queue of its own name, unless told otherwise; an empty queue is no label."""
    annotations, labels = spec.pop("annotations", {}), spec.pop("labels", {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, queue, labels, annotations),
        "spec": {"template": {"spec": pod}, **spec},
    }


def pod(name: str, content: Document) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(name), "spec": content}


def deployment(name: str, content: Document, replicas: int, kind: str = "Deployment") -> Document:
    template = {"metadata": {"labels": {"app": name}}, "spec": {**content, "restartPolicy": "Always"}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(name), "spec": {**spec, **more}}


def job_set(name: str, **replicated: tuple[int, int, Document]) -> Document:
    """Replicas, parallelism and pod by the name of a replicated job."""
    jobs = [
        {
            "name": key,
            "replicas": replicas,
            "template": {"spec": {"parallelism": parallelism, "completions": parallelism, "template": {"spec": pod}}},
        }
        for key, (replicas, parallelism, pod) in replicated.items()
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata(name),
        "spec": {"replicatedJobs": jobs},
    }


def ray_job(name: str, head: Document, worker: Document, replicas: int) -> Document:
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": head}},
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": replicas,
                "minReplicas": 0,
                "maxReplicas": replicas,
                "rayStartParams": {},
                "template": {"spec": worker},
            }
        ],
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata(name),
        "spec": {
            "entrypoint": "python main.py",
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": cluster,
        },
    }


def pytorch_job(name: str, **roles: tuple[int, Document]) -> Document:
    specs = {
        role: {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": pod}}
        for role, (replicas, pod) in roles.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata(name),
        "spec": {"pytorchReplicaSpecs": specs},
    }


def mini_cluster(name: str, size: int, **spec: Any) -> Document:
    return {
        "apiVersion": "flux-framework.org/v1alpha2",
        "kind": "MiniCluster",
        "metadata": {"name": name, "namespace": "jobs"},
        "spec": {"size": size, "jobLabels": {QUEUE: name}, **spec},
    }


def metadata(
    name: str,
    queue: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Document:
    wanted = name if queue is None else queue
    return {
        "name": name,
        "namespace": "jobs",
        "labels": {**({QUEUE: wanted} if wanted else {}), **(labels or {})},
        "annotations": dict(annotations or {}),
    }
