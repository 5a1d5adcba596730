"""KF015 and KF016: jobs among the native objects."""

from collections.abc import Iterator, Mapping

from reconciler.kueue.reading import as_text, at
from reconciler.kueue.resources import QUEUE_LABEL
from reconciler.lint.model import Remark
from reconciler.lint.remarks import misnamed
from reconciler.lint.view import View
from reconciler.objects import group_of
from reconciler.spec.document import FieldPath
from reconciler.spec.model import NativeObject

LABELS: FieldPath = ("metadata", "labels")
# The path of the label that Kueue reads, for each kind of job. MiniClusters have separate rules.
JOBS: Mapping[tuple[str, str], FieldPath] = {
    ("batch", "Job"): LABELS,
    ("batch", "CronJob"): ("spec", "jobTemplate", "metadata", "labels"),
    ("jobset.x-k8s.io", "JobSet"): LABELS,
    ("kubeflow.org", "MPIJob"): LABELS,
    ("kubeflow.org", "PyTorchJob"): LABELS,
    ("kubeflow.org", "TFJob"): LABELS,
    ("kubeflow.org", "XGBoostJob"): LABELS,
    ("kubeflow.org", "PaddleJob"): LABELS,
    ("kubeflow.org", "JAXJob"): LABELS,
    ("trainer.kubeflow.org", "TrainJob"): LABELS,
    ("ray.io", "RayJob"): LABELS,
    ("ray.io", "RayCluster"): LABELS,
    ("ray.io", "RayService"): LABELS,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): LABELS,
    ("workload.codeflare.dev", "AppWrapper"): LABELS,
}


def check_jobs(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        path = JOBS.get((group_of(entry.manifest), entry.document.kind))
        if path is None:
            continue
        queue = as_text(at(entry.manifest, *map(str, path), QUEUE_LABEL))
        if queue:
            yield from _check_queue(view, entry, (*path, QUEUE_LABEL), queue)
        else:
            problem = f"the {entry.document.kind} has no label {QUEUE_LABEL}: it runs at once and bypasses every queue"
            yield Remark("KF015", entry.document, path, problem, "label it with the name of a LocalQueue")


def _check_queue(view: View, entry: NativeObject, path: FieldPath, queue: str) -> Iterator[Remark]:
    namespace = entry.document.namespace or "default"
    for cluster in view.spec.targeted(entry.targets):
        known = view.of(cluster.name, "LocalQueue")
        if (namespace, queue) not in known:
            names = [name for there, name in known if there == namespace]
            problem = f"there is no LocalQueue {namespace}/{queue} in the fleet"
            hint = "the job would wait forever"
            remark = Remark(
                rule="KF016", document=entry.document, path=path, problem=problem, hint=hint, cluster=cluster.name
            )
            yield misnamed(remark, queue, names)
