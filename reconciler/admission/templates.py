"""The requests of a pod, in the units in which Kueue counts quota."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.admission.model import PodSet
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at, pod_amounts
from reconciler.objects import Manifest
from reconciler.quantity import unit_of

LEAST = f"{GROUP}/job-min-parallelism"
GROUP_SIZE = f"{GROUP}/pod-group-total-count"
MAIN = "main"
# KubeRay's own containers, which are in no manifest.
SUBMITTER = {"resources": {"requests": {"cpu": "500m", "memory": "200Mi"}}}
AUTOSCALER = {"resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests of one pod: milli for cpu, whole units for everything else."""
    return {name: -(-amount.nanos // unit_of(name).nanos) for name, amount in pod_amounts(pod).items()}


def of_job(manifest: Manifest) -> Iterator[PodSet]:
    content = as_map(manifest.get("spec"))
    least = as_text(at(manifest, "metadata", "annotations", LEAST))
    yield pod_set(MAIN, _pods_of_job(content), content.get("template"), int(least) if least.isdecimal() else None)


def of_cron_job(manifest: Manifest) -> Iterator[PodSet]:
    return of_job(as_map(at(manifest, "spec", "jobTemplate")))


def of_pod(manifest: Manifest) -> Iterator[PodSet]:
    """Return one pod, or as many as its group has: the others are assumed to be alike."""
    size = as_text(at(manifest, "metadata", "annotations", GROUP_SIZE))
    yield pod_set(MAIN, int(size) if size.isdecimal() else 1, manifest)


def of_each_replica(manifest: Manifest) -> Iterator[PodSet]:
    yield pod_set(MAIN, 1, at(manifest, "spec", "template"))


def of_stateful_set(manifest: Manifest) -> Iterator[PodSet]:
    yield pod_set(MAIN, number(at(manifest, "spec", "replicas")), at(manifest, "spec", "template"))


def of_leader_worker_set(manifest: Manifest) -> Iterator[PodSet]:
    """Return one group: its leader is like the workers if it has no template of its own."""
    template = as_map(at(manifest, "spec", "leaderWorkerTemplate"))
    size = number(template.get("size"))
    if template.get("leaderTemplate"):
        yield pod_set("leader", 1, template.get("leaderTemplate"))
        size -= 1
    if size > 0:
        yield pod_set("worker", size, template.get("workerTemplate"))


def of_job_set(manifest: Manifest) -> Iterator[PodSet]:
    for entry in as_list(at(manifest, "spec", "replicatedJobs")):
        content = as_map(at(entry, "template", "spec"))
        count = number(at(entry, "replicas")) * _pods_of_job(content)
        yield pod_set(as_text(at(entry, "name")), count, content.get("template"))


def of_ray_job(manifest: Manifest) -> Iterator[PodSet]:
    """Return the Ray cluster, and the pod that submits the job to it, unless the job is submitted in another way."""
    mode = at(manifest, "spec", "submissionMode") or "K8sJobMode"
    beside = [SUBMITTER] if mode == "SidecarMode" else []
    yield from _of_ray(as_map(at(manifest, "spec", "rayClusterSpec")), beside)
    if mode == "K8sJobMode":
        own = at(manifest, "spec", "submitterPodTemplate")
        yield pod_set("submitter", 1, own or {"spec": {"containers": [SUBMITTER]}})


def of_ray_cluster(manifest: Manifest) -> Iterator[PodSet]:
    return _of_ray(as_map(manifest.get("spec")), [])


def of_ray_service(manifest: Manifest) -> Iterator[PodSet]:
    return _of_ray(as_map(at(manifest, "spec", "rayClusterConfig")), [])


def _of_ray(content: Mapping[str, Any], beside: Sequence[Mapping[str, Any]]) -> Iterator[PodSet]:
    head = as_map(at(content, "headGroupSpec", "template"))
    if content.get("enableInTreeAutoscaling") is True:
        own = at(content, "autoscalerOptions", "resources")
        beside = [*beside, {"resources": own} if own else AUTOSCALER]
    pod = as_map(head.get("spec"))
    yield pod_set("head", 1, {**head, "spec": {**pod, "containers": [*as_list(pod.get("containers")), *beside]}})
    for group in as_list(content.get("workerGroupSpecs")):
        count = number(at(group, "replicas")) * max(number(at(group, "numOfHosts")), 1)
        yield pod_set(as_text(at(group, "groupName")), count, at(group, "template"))


def of_replica_specs(manifest: Manifest) -> Iterator[PodSet]:
    """The jobs of Kubeflow have their pods in a map by role, below a field that has a different name in each kind."""
    content = as_map(manifest.get("spec"))
    field = next((name for name in content if name.endswith("ReplicaSpecs")), "")
    for role, entry in as_map(content.get(field)).items():
        yield pod_set(role.lower(), number(at(entry, "replicas")), at(entry, "template"))


def of_nothing(_manifest: Manifest) -> Iterator[PodSet]:
    """Kinds whose pods are in other objects."""
    return iter(())


def pod_set(name: str, count: int, template: Any, least: int | None = None) -> PodSet:
    pod = as_map(at(template, "spec"))
    return PodSet(
        name=name,
        count=count,
        requests=requests_of(pod),
        pod=pod,
        annotations=as_map(at(template, "metadata", "annotations")),
        least=least,
    )


def number(value: Any, default: int = 1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _pods_of_job(content: Mapping[str, Any]) -> int:
    parallelism = number(content.get("parallelism"))
    return min(parallelism, number(content.get("completions"), parallelism))
