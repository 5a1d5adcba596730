"""The job kinds that MultiKueue dispatches to workers, and the permissions that its manager needs on them there.

From Kueue's own adapters (0.16 to 0.19): the manager watches every enabled kind on every worker, and one watch that
fails makes the whole worker unusable. An adapter creates, reads and deletes jobs; adapters of elastic jobs also patch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.kinds import GROUP
from reconciler.objects import Manifest

_JOB_VERBS = ("create", "delete", "get", "list", "watch")
_WORKLOAD_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")
_READ_VERBS = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job; `is_patched` if the manager changes the size of a running job."""

    group: str
    kind: str
    plural: str
    is_patched: bool = False

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def verbs(self) -> tuple[str, ...]:
        return tuple(sorted((*_JOB_VERBS, "patch"))) if self.is_patched else _JOB_VERBS


# By the name in Kueue's Configuration. Frameworks that are missing here (deployment, sparkapplication) have no adapter
# of their own: Kueue does not watch their kinds on a worker.
FRAMEWORKS = {
    "batch/job": JobKind("batch", "Job", "jobs", is_patched=True),
    "jobset.x-k8s.io/jobset": JobKind("jobset.x-k8s.io", "JobSet", "jobsets"),
    "kubeflow.org/jaxjob": JobKind("kubeflow.org", "JAXJob", "jaxjobs"),
    "kubeflow.org/mpijob": JobKind("kubeflow.org", "MPIJob", "mpijobs"),
    "kubeflow.org/paddlejob": JobKind("kubeflow.org", "PaddleJob", "paddlejobs"),
    "kubeflow.org/pytorchjob": JobKind("kubeflow.org", "PyTorchJob", "pytorchjobs"),
    "kubeflow.org/tfjob": JobKind("kubeflow.org", "TFJob", "tfjobs"),
    "kubeflow.org/xgboostjob": JobKind("kubeflow.org", "XGBoostJob", "xgboostjobs"),
    "leaderworkerset.x-k8s.io/leaderworkerset": JobKind(
        "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets"
    ),
    "pod": JobKind("", "Pod", "pods"),
    "ray.io/raycluster": JobKind("ray.io", "RayCluster", "rayclusters", is_patched=True),
    "ray.io/rayjob": JobKind("ray.io", "RayJob", "rayjobs", is_patched=True),
    "ray.io/rayservice": JobKind("ray.io", "RayService", "rayservices", is_patched=True),
    "statefulset": JobKind("apps", "StatefulSet", "statefulsets"),
    "trainer.kubeflow.org/trainjob": JobKind("trainer.kubeflow.org", "TrainJob", "trainjobs"),
    "workload.codeflare.dev/appwrapper": JobKind("workload.codeflare.dev", "AppWrapper", "appwrappers"),
}


def job_kinds(settings: KueueSettings) -> tuple[JobKind, ...]:
    """Return the kinds that the manager's Kueue watches on every worker."""
    known = [FRAMEWORKS[name] for name in settings.frameworks if name in FRAMEWORKS]
    return tuple(dict.fromkeys((*known, *(_external(name) for name in settings.external_frameworks))))


def worker_rules(settings: KueueSettings) -> list[dict[str, Any]]:
    """Return the minimal rules of a role with which a manager of these settings can use a worker."""
    return [
        _rule(GROUP, ["workloads"], _WORKLOAD_VERBS),
        _rule(GROUP, ["workloads/status"], _STATUS_VERBS),
        *([_rule(GROUP, ["clusterqueues", "localqueues"], _READ_VERBS)] if settings.has_quota_automation else []),
        *_job_rules(job_kinds(settings)),
    ]


def missing_rights(settings: KueueSettings, rules: Iterable[Manifest]) -> Iterator[str]:
    """Return what a manager of these settings needs on a worker and these rules do not allow: `watch jobs.batch`."""
    held = tuple(rules)
    for wanted in worker_rules(settings):
        for name in wanted["resources"]:
            group = wanted["apiGroups"][0]
            lacking = [verb for verb in wanted["verbs"] if not is_allowed(held, verb, group, name)]
            if lacking:
                yield f"{', '.join(lacking)} {name}" + (f".{group}" if group else "")


def is_allowed(rules: Iterable[Manifest], verb: str, group: str, plural: str) -> bool:
    """Whether RBAC rules allow something for all objects of a kind; rules for single objects do not count."""
    return any(
        not rule.get("resourceNames")
        and {verb, "*"} & set(rule.get("verbs") or ())
        and {group, "*"} & set(rule.get("apiGroups") or ())
        and _names(plural) & set(rule.get("resources") or ())
        for rule in rules
    )


def _names(plural: str) -> set[str]:
    _, slash, subresource = plural.partition("/")
    return {plural, "*"} | ({f"*/{subresource}"} if slash else set())


def _job_rules(kinds: Iterable[JobKind]) -> Iterator[dict[str, Any]]:
    """Return one rule for the kinds of a group that need the same verbs."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for kind in kinds:
        grouped.setdefault((kind.group, kind.verbs), []).append(kind.plural)
    for (group, verbs), plurals in sorted(grouped.items()):
        yield _rule(group, sorted(plurals), verbs)


def _rule(group: str, plurals: list[str], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": plurals, "verbs": list(verbs)}


def _external(name: str) -> JobKind:
    """Parse `Kind.version.group`, with the plural that Kubernetes itself would guess."""
    kind, _, rest = name.partition(".")
    _, _, group = rest.partition(".")
    return JobKind(group, kind, _plural(kind.lower()))


def _plural(name: str) -> str:
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"
