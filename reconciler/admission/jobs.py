"""Every kind of job that Kueue can queue, and the fields that Kueue reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.admission import templates
from reconciler.admission.model import PodSet, Submission
from reconciler.flux.render import FLUX_GROUP, MINI_CLUSTER, NOT_DOWNSYNCED, operator_job
from reconciler.kueue.reading import PRIORITY_LABEL, QUEUE_LABEL, as_list, as_map, as_text, at
from reconciler.objects import Manifest, group_of
from reconciler.spec.settings import CLUSTER_LABEL, DownsyncKind

POD = "pod"
DEPLOYMENT = "deployment"
STATEFUL_SET = "statefulset"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io/leaderworkerset"
# For these, Kueue gates each pod separately; nothing suspends the job as a whole.
GATED_PODS = frozenset((POD, DEPLOYMENT, STATEFUL_SET, LEADER_WORKER_SET))

PodSets = Callable[[Manifest], Iterator[PodSet]]


@dataclass(frozen=True, slots=True)
class JobForm:
    """`framework` is the name of the integration. With `has_copies`, Kueue creates one Workload for each replica."""

    framework: str
    pod_sets: PodSets
    has_copies: bool = False


_KUBEFLOW = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
FORMS: Mapping[tuple[str, str], JobForm] = {
    ("batch", "Job"): JobForm("batch/job", templates.of_job),
    ("batch", "CronJob"): JobForm("batch/job", templates.of_cron_job),
    ("", "Pod"): JobForm(POD, templates.of_pod),
    ("apps", "Deployment"): JobForm(DEPLOYMENT, templates.of_each_replica, has_copies=True),
    ("apps", "StatefulSet"): JobForm(STATEFUL_SET, templates.of_stateful_set),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): JobForm(
        LEADER_WORKER_SET, templates.of_leader_worker_set, has_copies=True
    ),
    ("jobset.x-k8s.io", "JobSet"): JobForm("jobset.x-k8s.io/jobset", templates.of_job_set),
    ("ray.io", "RayJob"): JobForm("ray.io/rayjob", templates.of_ray_job),
    ("ray.io", "RayCluster"): JobForm("ray.io/raycluster", templates.of_ray_cluster),
    ("ray.io", "RayService"): JobForm("ray.io/rayservice", templates.of_ray_service),
    **{
        ("kubeflow.org", kind): JobForm(f"kubeflow.org/{kind.lower()}", templates.of_replica_specs)
        for kind in _KUBEFLOW
    },
    ("trainer.kubeflow.org", "TrainJob"): JobForm("trainer.kubeflow.org/trainjob", templates.of_nothing),
    ("workload.codeflare.dev", "AppWrapper"): JobForm("workload.codeflare.dev/appwrapper", templates.of_nothing),
    (FLUX_GROUP, MINI_CLUSTER): JobForm("batch/job", lambda manifest: templates.of_job(operator_job(manifest))),
}
NO_PODS = "its pods are in other objects, so only its queue is checked"
ALIKE = "all pods of its group are assumed to be alike"


def downsynced_frameworks(kinds: Iterable[DownsyncKind]) -> frozenset[str]:
    """Return the integrations whose jobs KubeStellar downsyncs, given the kinds that it supports."""
    named = {FORMS[key].framework for one in kinds if (key := (one.group, one.kind)) in FORMS}
    return frozenset(named - GATED_PODS)


def read_submission(manifest: Manifest) -> Submission | None:
    """Return what Kueue would read in it; None if it is not a kind of job."""
    key = (group_of({"apiVersion": "", **manifest}), as_text(manifest.get("kind")))
    form = FORMS.get(key)
    if form is None:
        return None
    metadata = as_map(manifest.get("metadata"))
    labels = _labels(manifest)
    pod_sets = tuple(form.pod_sets(manifest))
    found = Submission(
        kind=as_text(manifest.get("kind")),
        namespace=as_text(metadata.get("namespace")) or "default",
        name=as_text(metadata.get("name")) or as_text(metadata.get("generateName")),
        framework=form.framework,
        queue=as_text(labels.get(QUEUE_LABEL)),
        priority_class=as_text(labels.get(PRIORITY_LABEL)),
        pod_sets=pod_sets,
        copies=templates.number(at(manifest, "spec", "replicas")) if form.has_copies else 1,
        managed_by=as_text(at(manifest, "spec", "managedBy")),
        cannot_be_sent=NOT_DOWNSYNCED if manifest.get("kind") == MINI_CLUSTER else "",
        placed_on="" if metadata.get("uid") else as_text(labels.get(CLUSTER_LABEL)),
        is_running=bool(metadata.get("uid")) and _is_running(manifest),
        notes=tuple(_notes(form, pod_sets)),
    )
    return found if found.queue else _by_its_pods(found, manifest)


def _is_running(manifest: Manifest) -> bool:
    """Whether some of its pods run, by the status of a Job or of a Pod."""
    status = as_map(manifest.get("status"))
    return bool(status.get("active") or status.get("ready")) or status.get("phase") == "Running"


def _labels(manifest: Manifest) -> Mapping[str, object]:
    """Return what Kueue reads: the object itself, or the Job that is created from it."""
    if manifest.get("kind") == MINI_CLUSTER:
        return as_map(at(manifest, "spec", "jobLabels"))
    if manifest.get("kind") == "CronJob":
        return as_map(at(manifest, "spec", "jobTemplate", "metadata", "labels"))
    return as_map(at(manifest, "metadata", "labels"))


def _notes(form: JobForm, pod_sets: tuple[PodSet, ...]) -> Iterator[str]:
    if form.pod_sets is templates.of_nothing:
        yield NO_PODS
    if form.framework == POD and pod_sets[0].count > 1:
        yield ALIKE


def _by_its_pods(found: Submission, manifest: Manifest) -> Submission:
    """If only the pods have the label, Kueue queues each pod separately, provided that it manages pods."""
    labels = as_map(at(manifest, "spec", "template", "metadata", "labels"))
    if QUEUE_LABEL not in labels:
        return found
    each = tuple(replace(one, count=1, least=None) for one in found.pod_sets)
    pods = found.copies * sum(one.count for one in found.pod_sets)
    note = f"only its pods have the queue label, so each pod is queued separately: set it on the {found.kind}"
    return replace(
        found,
        framework=POD,
        queue=as_text(labels[QUEUE_LABEL]),
        priority_class=as_text(labels.get(PRIORITY_LABEL)),
        pod_sets=each,
        copies=pods,
        notes=(*found.notes, note),
    )


def priority_of_pods(submission: Submission) -> str:
    """Return the first class that a pod names, which applies if the job itself names none."""
    named = (as_text(one.pod.get("priorityClassName")) for one in submission.pod_sets)
    return next(filter(None, named), "")


def tolerations_of(pod_set: PodSet) -> tuple[Mapping[str, object], ...]:
    return tuple(as_map(one) for one in as_list(pod_set.pod.get("tolerations")))
