"""Whether the queues of MiniClusters would take them: what `kfleet check` says, as remarks of lint."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.admission.decide import check
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import AdmissionIssue, AdmissionReason, Verdict
from reconciler.admission.state import FleetState, offline_fleet
from reconciler.kueue.reading import PRIORITY_LABEL, QUEUE_LABEL, at
from reconciler.lint.model import Remark, View
from reconciler.render.model import DesiredObject
from reconciler.spec.files import FieldPath

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


def check_queues(view: View, mini_clusters: Iterable[DesiredObject]) -> Iterator[Remark]:
    fleet = offline_fleet(view.spec, view.desired)
    for entry in mini_clusters:
        yield from _check_queue(entry, fleet)


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
