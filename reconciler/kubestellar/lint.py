"""KF077, KF078 and KF210: native objects of a fleet whose jobs KubeStellar downsyncs."""

from collections.abc import Iterator

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View, about, is_native
from reconciler.objects import group_of
from reconciler.spec.places import downsynced_queues
from reconciler.spec.settings import API_GROUP, CHECK_CONTROLLER, CLUSTER_LABEL

RULES = (
    Rule(
        "KF078",
        Severity.WARNING,
        "job does not name the cluster where it runs",
        "KubeStellar downsyncs a job with the label at once, before it has quota; kfleet sets it when it has",
    ),
    Rule(
        "KF210",
        Severity.WARNING,
        "check of KubeStellar has a queue that kfleet serves",
        "kfleet places only jobs of Queues with dispatch: kubestellar: other queues stay inactive, unless kueue-ks "
        "itself runs there",
    ),
    Rule(
        "KF077",
        Severity.WARNING,
        "transform removes the field that suspends its kind",
        "the copy on the worker stays suspended for ever",
    ),
)


def check_native_objects(view: View) -> Iterator[Remark]:
    if downsynced_queues(view.spec):
        yield from _check_labels(view)
    yield from _check_transforms(view)
    yield from _check_checks(view)


def _check_labels(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        if CLUSTER_LABEL in as_map(at(entry.manifest, "metadata", "labels")):
            problem = "says where a job with quota runs, and is set by kfleet"
            path = ("metadata", "labels", CLUSTER_LABEL)
            yield Remark("KF078", entry.document, path, problem, "remove the label; kfleet chooses the cluster")


def _check_transforms(view: View) -> Iterator[Remark]:
    suspending = {(kind.group, kind.plural): f"$.{kind.suspend}" for kind in view.spec.fleet.kubestellar.kinds}
    for entry in view.spec.objects:
        if (entry.document.kind, group_of(entry.manifest)) != ("CustomTransform", API_GROUP):
            continue
        spec = as_map(entry.manifest.get("spec"))
        meant = suspending.get((as_text(spec.get("apiGroup")), as_text(spec.get("resource"))))
        removed = [as_text(one) for one in as_list(spec.get("remove"))]
        wrong = [number for number, one in enumerate(removed) if one.endswith("suspend") and one != meant]
        if meant and wrong and meant not in removed:
            problem = f"{removed[wrong[0]]} does not suspend {spec['resource']}: their copies stay suspended"
            yield Remark("KF077", entry.document, ("spec", "remove", wrong[0]), problem, f"write {meant}")


def _check_checks(view: View) -> Iterator[Remark]:
    """Report native ones: the checks that a Queue creates are served."""
    for entry in view.every("AdmissionCheck"):
        if is_native(entry) and at(entry.manifest, "spec", "controllerName") == CHECK_CONTROLLER:
            problem = f"kfleet serves no native check of {CHECK_CONTROLLER}: queues with it stay inactive"
            hint = "write the queue as a Queue with dispatch: kubestellar, or silence this where kueue-ks runs"
            yield about(entry, "KF210", ("spec", "controllerName"), problem, hint)
