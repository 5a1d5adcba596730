"""KF015, KF017, KF019 and KF035 to KF039: MiniClusters of the Flux operator."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.checking import FleetState, Objection, Reason, Verdict, check, offline_fleet, read_submission
from reconciler.desired import DesiredObject
from reconciler.kueue.labels import PRIORITY_LABEL, QUEUE_LABEL
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.lint.model import Remark
from reconciler.lint.view import View
from reconciler.spec.document import Document, FieldPath
from reconciler.spec.minicluster import CURRENT, is_mini_cluster, is_old, lost_in, to_current

LABELS: FieldPath = ("spec", "jobLabels")
# Where to look in the document, by what is wrong.
FIELDS: Mapping[Reason, FieldPath] = {
    Reason.NO_LOCAL_QUEUE: (*LABELS, QUEUE_LABEL),
    Reason.NO_CLUSTER_QUEUE: (*LABELS, QUEUE_LABEL),
    Reason.NOT_SELECTED: (*LABELS, QUEUE_LABEL),
    Reason.NOT_SENT: (*LABELS, QUEUE_LABEL),
    Reason.NO_PRIORITY_CLASS: (*LABELS, PRIORITY_LABEL),
    Reason.TOO_LARGE: ("spec", "size"),
    Reason.NOT_COVERED: ("spec", "containers"),
    Reason.NO_FLAVOR: ("spec", "pod"),
}
FLUX_IN_IMAGE = "its image brought Flux along, which an init container brings now: see flux.container.disable"


def check_mini_clusters(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        if is_mini_cluster(entry.manifest):
            yield from _check_version(entry.document)
            yield from _check_content(entry.document, as_map(entry.current.get("spec")))
    made = [entry for entry in view.desired.objects if is_mini_cluster(entry.manifest)]
    if made:
        fleet = offline_fleet(view.spec, view.desired)
        for one in made:
            yield from _check_queue(one, fleet)


def _check_version(document: Document) -> Iterator[Remark]:
    if not is_old(document.value):
        return
    notes = "; ".join(to_current(document.value).notes)
    problem = "v1alpha1 is translated: no Flux operator of today serves it" + (f": {notes}" if notes else "")
    yield Remark("KF037", document, ("apiVersion",), problem, f"write it as {CURRENT}; {FLUX_IN_IMAGE}")
    for lost in lost_in(document.value):
        yield Remark("KF038", document, lost.path, lost.problem)


def _check_content(document: Document, content: Mapping[str, Any]) -> Iterator[Remark]:
    containers = [as_map(one) for one in as_list(content.get("containers"))]
    if not containers:
        yield Remark("KF039", document, ("spec",), "containers is empty: there is nothing to run")
    runners = [number for number, one in enumerate(containers) if one.get("runFlux") is True]
    if len(containers) > 1 and len(runners) != 1:
        problem = f"{len(runners)} of {len(containers)} containers say runFlux: the operator takes exactly one"
        yield Remark("KF039", document, ("spec", "containers"), problem, "set runFlux: true on the one that runs Flux")
    for number, one in enumerate(containers):
        if len(containers) > 1 and not (one.get("runFlux") is True or as_text(one.get("name"))):
            yield Remark("KF039", document, ("spec", "containers", number), "a container beside Flux needs a name")
    yield from _check_sizes(document, content)
    if at(content, "pod", "resources"):
        problem = "pod.resources becomes the overhead of each pod, which only a RuntimeClass may set: no pod starts"
        hint = "ask for it in containers[].resources"
        yield Remark("KF019", document, ("spec", "pod", "resources"), problem, hint)


def _check_sizes(document: Document, content: Mapping[str, Any]) -> Iterator[Remark]:
    size = content.get("size", 1)
    if not isinstance(size, int):
        return
    bounds = {name: content[name] for name in ("minSize", "maxSize") if isinstance(content.get(name), int)}
    if size < 1:
        yield Remark("KF039", document, ("spec", "size"), f"size is {size}: a MiniCluster has at least one member")
    if bounds.get("maxSize", 0) and bounds["maxSize"] < size:
        problem = f"maxSize {bounds['maxSize']} is less than size {size}"
        yield Remark("KF039", document, ("spec", "maxSize"), problem)
    if bounds.get("minSize", 0) > size:
        yield Remark("KF039", document, ("spec", "minSize"), f"minSize {bounds['minSize']} is more than size {size}")
    if content.get("deadlineSeconds") == 0:
        yield Remark("KF039", document, ("spec", "deadlineSeconds"), "a deadline of 0 lets the Job never start")


def _check_queue(entry: DesiredObject, fleet: FleetState) -> Iterator[Remark]:
    submission = read_submission(entry.manifest)
    if submission is None:
        return
    document, cluster = entry.document, entry.ref.cluster
    written = at(document.value, *map(str, LABELS), QUEUE_LABEL)
    if not submission.queue:
        problem = f"the MiniCluster has no label {QUEUE_LABEL}: it runs at once, past every queue"
        hint = "label its Job in spec.jobLabels with the name of a LocalQueue"
        yield Remark("KF015", document, LABELS, problem, hint, cluster)
        return
    if not written:
        problem = f"no queue is named: kfleet adds {submission.queue}, the only LocalQueue of {submission.namespace}"
        yield Remark("KF035", document, LABELS, problem, f"write {QUEUE_LABEL}: {submission.queue}", cluster)
    for answer in check(submission, fleet, [cluster]).answers:
        for objection in answer.objections:
            if objection.verdict in (Verdict.NEVER, Verdict.NOT_QUEUED) and objection.reason is not Reason.NO_WORKER:
                yield _remark(entry, objection)


def _remark(entry: DesiredObject, objection: Objection) -> Remark:
    rule = "KF017" if objection.reason is Reason.NOT_SENT else "KF036"
    path = FIELDS.get(objection.reason, ("spec",))
    return Remark(rule, entry.document, path, objection.problem, objection.remedy, entry.ref.cluster)
