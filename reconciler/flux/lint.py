"""KF015, KF017, KF019 and KF035 to KF039: MiniClusters of the Flux operator."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.admission.decide import check
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import AdmissionIssue, AdmissionReason, Verdict
from reconciler.admission.state import FleetState, offline_fleet
from reconciler.flux.minicluster import CURRENT, is_mini_cluster, is_old, lost_in, to_current
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.resources import PRIORITY_LABEL, QUEUE_LABEL
from reconciler.lint.model import Remark, Rule, Severity
from reconciler.lint.view import View
from reconciler.render.model import DesiredObject
from reconciler.spec.document import Document, FieldPath

LABELS: FieldPath = ("spec", "jobLabels")
# The field to report, by problem.
FIELDS: Mapping[AdmissionReason, FieldPath] = {
    AdmissionReason.NO_LOCAL_QUEUE: (*LABELS, QUEUE_LABEL),
    AdmissionReason.NO_CLUSTER_QUEUE: (*LABELS, QUEUE_LABEL),
    AdmissionReason.NOT_SELECTED: (*LABELS, QUEUE_LABEL),
    AdmissionReason.NOT_SENT: (*LABELS, QUEUE_LABEL),
    AdmissionReason.NO_PRIORITY_CLASS: (*LABELS, PRIORITY_LABEL),
    AdmissionReason.TOO_LARGE: ("spec", "size"),
    AdmissionReason.NOT_COVERED: ("spec", "containers"),
    AdmissionReason.NO_FLAVOR: ("spec", "pod"),
}
FLUX_IN_IMAGE = "its image contained Flux, which an init container provides now: see flux.container.disable"

RULES = (
    Rule(
        "KF017",
        Severity.ERROR,
        "MiniCluster is made where it runs",
        "MultiKueue sends the Job of a MiniCluster alone, and its pods miss their ConfigMaps and their Service",
    ),
    Rule(
        "KF019",
        Severity.WARNING,
        "MiniCluster asks in its containers",
        "pod.resources becomes the overhead of the pods, and the API server refuses pods whose overhead is "
        "not that of their RuntimeClass",
    ),
    Rule(
        "KF035",
        Severity.WARNING,
        "MiniCluster names its queue",
        "kfleet adds the only LocalQueue of the namespace, which a second one would make ambiguous",
    ),
    Rule(
        "KF036",
        Severity.ERROR,
        "MiniCluster can be admitted",
        "all members start together, so that the queue must have room for size times the pod, on nodes that fit it",
    ),
    Rule(
        "KF037",
        Severity.WARNING,
        "MiniCluster is of v1alpha2",
        "the operator serves no other version; kfleet translates v1alpha1, but people read what is written",
    ),
    Rule(
        "KF038",
        Severity.ERROR,
        "nothing of a v1alpha1 MiniCluster is lost",
        "users, the web server and volumes that the operator made have no place in v1alpha2",
        can_be_silenced=False,
    ),
    Rule(
        "KF039",
        Severity.ERROR,
        "Flux operator takes the MiniCluster",
        "what it does not take it leaves lying without a Job, and says so in its own log alone",
    ),
)


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
    problem = "v1alpha1 is converted: current Flux operators do not serve it" + (f": {notes}" if notes else "")
    yield Remark("KF037", document, ("apiVersion",), problem, f"write it as {CURRENT}; {FLUX_IN_IMAGE}")
    for lost in lost_in(document.value):
        yield Remark("KF038", document, lost.path, lost.problem)


def _check_content(document: Document, content: Mapping[str, Any]) -> Iterator[Remark]:
    containers = [as_map(one) for one in as_list(content.get("containers"))]
    if not containers:
        yield Remark("KF039", document, ("spec",), "containers is empty: there is nothing to run")
    runners = [number for number, one in enumerate(containers) if one.get("runFlux") is True]
    if len(containers) > 1 and len(runners) != 1:
        problem = f"{len(runners)} of {len(containers)} containers set runFlux: the operator requires exactly one"
        yield Remark("KF039", document, ("spec", "containers"), problem, "set runFlux: true on the one that runs Flux")
    for number, one in enumerate(containers):
        if len(containers) > 1 and not (one.get("runFlux") is True or as_text(one.get("name"))):
            yield Remark("KF039", document, ("spec", "containers", number), "a container besides Flux needs a name")
    yield from _check_sizes(document, content)
    if at(content, "pod", "resources"):
        problem = "pod.resources becomes the overhead of each pod, which only a RuntimeClass may set: no pod starts"
        hint = "request it in containers[].resources"
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
        yield Remark("KF039", document, ("spec", "deadlineSeconds"), "with a deadline of 0 the Job never starts")


def _check_queue(entry: DesiredObject, fleet: FleetState) -> Iterator[Remark]:
    submission = read_submission(entry.manifest)
    if submission is None:
        return
    document, cluster = entry.document, entry.ref.cluster
    written = at(document.value, *map(str, LABELS), QUEUE_LABEL)
    if not submission.queue:
        problem = f"the MiniCluster has no label {QUEUE_LABEL}: it runs at once and bypasses every queue"
        hint = "label its Job in spec.jobLabels with the name of a LocalQueue"
        yield Remark(rule="KF015", document=document, path=LABELS, problem=problem, hint=hint, cluster=cluster)
        return
    if not written:
        problem = f"no queue is named: kfleet adds {submission.queue}, the only LocalQueue of {submission.namespace}"
        yield Remark(
            rule="KF035",
            document=document,
            path=LABELS,
            problem=problem,
            hint=f"write {QUEUE_LABEL}: {submission.queue}",
            cluster=cluster,
        )
    for answer in check(submission, fleet, [cluster]).answers:
        for issue in answer.issues:
            if issue.verdict in (Verdict.NEVER, Verdict.NOT_QUEUED) and issue.reason is not AdmissionReason.NO_WORKER:
                yield _remark(entry, issue)


def _remark(entry: DesiredObject, issue: AdmissionIssue) -> Remark:
    rule = "KF017" if issue.reason is AdmissionReason.NOT_SENT else "KF036"
    path = FIELDS.get(issue.reason, ("spec",))
    return Remark(
        rule=rule,
        document=entry.document,
        path=path,
        problem=issue.problem,
        hint=issue.remedy,
        cluster=entry.ref.cluster,
    )
