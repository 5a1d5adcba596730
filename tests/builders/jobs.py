"""Jobs of all kinds, as users write them."""

from collections.abc import Mapping
from typing import Any

from tests.builders.fleet import Document

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
LEAST = "kueue.x-k8s.io/job-min-parallelism"
MINI_CLUSTER_API = "flux-framework.org/v1alpha2"
NAMESPACE = "jobs"
_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
_LONG_NAMES = {"gpu": "nvidia.com/gpu", "storage": "ephemeral-storage"}


def asking(name: str = "main", **resources: Any) -> Document:
    """A container with requests; `limits` are given by that name. The API server takes no GPUs without a limit."""
    limits = resources.pop("limits", None)
    if "gpu" in resources:
        limits = {"nvidia.com/gpu": resources["gpu"], **(limits or {})}
    requests = {_LONG_NAMES.get(key, key): value for key, value in resources.items()}
    content = {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}
    return {"name": name, "image": "none", "resources": content}


def pod_spec(*containers: Document, **more: Any) -> Document:
    return {"restartPolicy": "Never", "containers": list(containers or (asking(cpu="1"),)), **more}


def requirement(key: str, operator: str, *values: str) -> Document:
    """What a node affinity asks of the labels of a node."""
    return {"key": key, "operator": operator, "values": list(values)}


def node_affinity(*terms: list[Document]) -> Document:
    """Requirements, all of one of these terms."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def job(
    name: str,
    pod: Document | None = None,
    *,
    namespace: str = NAMESPACE,
    queue: str | None = None,
    seconds: int | None = None,
    **spec: Any,
) -> Document:
    """A Job in the queue of its own name, unless another is given; an empty queue is no label.

    In a sandbox its pods run for some seconds; `labels` and `annotations` are those of the Job.
    """
    own = metadata(name, queue, spec.pop("labels", {}), spec.pop("annotations", {}), namespace)
    template: Document = {"spec": pod_spec() if pod is None else pod}
    if seconds is not None:
        template["metadata"] = {"annotations": {_DELAY: f"{seconds}s"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": own, "spec": {"template": template, **spec}}


def main_job(name: str, namespace: str, *, cpu: str = "1", seconds: int = 3600) -> Document:
    """A Job for the LocalQueue `main` of a namespace, whose pod runs for some time."""
    return job(name, pod_spec(asking(cpu=cpu)), namespace=namespace, queue="main", seconds=seconds, suspend=True)


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


def mini_cluster(
    name: str,
    size: int,
    *,
    namespace: str = NAMESPACE,
    queue: str | None = None,
    version: str = MINI_CLUSTER_API,
    **spec: Any,
) -> Document:
    """A MiniCluster whose Job goes to the queue of its own name, unless another is given; an empty one is no label."""
    chosen = name if queue is None else queue
    labels = {"jobLabels": {QUEUE_NAME: chosen}} if chosen else {}
    return {
        "apiVersion": version,
        "kind": "MiniCluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": size, **labels, **spec},
    }


def metadata(
    name: str,
    queue: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
) -> Document:
    chosen = name if queue is None else queue
    return {
        "name": name,
        "namespace": namespace,
        "labels": {**({QUEUE_NAME: chosen} if chosen else {}), **(labels or {})},
        "annotations": dict(annotations or {}),
    }
