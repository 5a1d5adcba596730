"""The first line of every answer: the true reason in one sentence, cheap enough for all jobs of a fleet."""

from reconciler.admission.decide import check
from reconciler.admission.jobs import FORMS, read_submission
from reconciler.admission.model import Answer, Verdict
from reconciler.kubestellar.model import Decision
from reconciler.kueue.reading import QUEUE_LABEL, as_text, at
from reconciler.kueue.workloads import has_condition
from reconciler.objects import ClusterName, Manifest, group_of
from reconciler.text import one_line
from reconciler.why.dispatch import (
    checks_reason,
    ended_job,
    finished_reason,
    kubestellar_reason,
    multikueue_reason,
    running_reason,
    stuck_pod,
    way_of,
)
from reconciler.why.index import ClusterIndex, Stories, condition_of, is_active, label_of, owner_of
from reconciler.why.model import State, StoryReason, Subject
from reconciler.why.queue import waiting_reason

_STATES = {
    Verdict.ADMITTED: State.WAITS,
    Verdict.WAITS: State.WAITS,
    Verdict.UNKNOWN: State.UNKNOWN,
    Verdict.NEVER: State.NEVER,
    Verdict.NOT_QUEUED: State.NOT_QUEUED,
}


def first_line(stories: Stories, cluster: ClusterName, workload: Manifest) -> str:
    """Return the state and the reason of one Workload of a cluster, as `kfleet why` prints it first."""
    return str(workload_reason(stories, cluster, workload))


def subject_reason(stories: Stories, subject: Subject, decision: Decision | None = None) -> StoryReason:
    if subject.workload is not None:
        return workload_reason(stories, subject.cluster, subject.workload, decision)
    return unqueued_reason(stories, stories.clusters[subject.cluster], subject.job or {})


def workload_reason(
    stories: Stories, cluster: ClusterName, workload: Manifest, decision: Decision | None = None
) -> StoryReason:
    index = stories.clusters.get(cluster)
    if index is None:
        return StoryReason(State.UNKNOWN, f"{cluster} was not observed ({stories.lost(cluster)})")
    if has_condition(workload, "Finished"):
        return finished_reason(index, workload)
    if not is_active(workload):
        return _deactivated(index, workload)
    if not has_condition(workload, "QuotaReserved"):
        return waiting_reason(index, workload, stories.clusters.values())
    return _with_quota(stories, index, workload, decision)


def _deactivated(index: ClusterIndex, workload: Manifest) -> StoryReason:
    evicted = condition_of(workload, "Evicted")
    said = one_line(as_text(evicted.get("message")))
    why = f" ({evicted.get('reason')}: {said})" if said else ""
    return StoryReason(State.INACTIVE, f"its Workload on {index.name} has spec.active: false{why}")


def _with_quota(stories: Stories, index: ClusterIndex, workload: Manifest, decision: Decision | None) -> StoryReason:
    queue = index.queue_of(workload)
    way = way_of(index, queue)
    is_admitted = has_condition(workload, "Admitted")
    if not is_admitted and (open_check := checks_reason(index, workload)):
        return open_check
    if way == "multikueue":
        return multikueue_reason(stories, index, workload)
    if way == "kubestellar" and not is_admitted:
        return kubestellar_reason(stories, index, workload, decision)
    if is_admitted:
        return running_reason(index, workload)
    return StoryReason(State.WAITS, f"it has quota in queue {queue} on {index.name}, and Kueue admits it next")


def unqueued_reason(stories: Stories, index: ClusterIndex, job: Manifest) -> StoryReason:
    """Return why a job has no Workload, by the rules with which Kueue decides whether it manages the job."""
    kind = as_text(job.get("kind"))
    if ended := ended_job(job):
        return StoryReason(ended, f"on {index.name}, without a Workload of Kueue")
    if (group_of({"apiVersion": "", **job}), kind) not in FORMS:
        return StoryReason(State.NOT_QUEUED, f"Kueue does not manage the kind {kind}")
    submission = read_submission(job)
    if submission is None:
        return StoryReason(State.UNKNOWN, f"the {kind} cannot be read")
    (answer,) = check(submission, stories.fleet, [index.name]).answers
    return _of_answer(index, job, answer)


def _of_answer(index: ClusterIndex, job: Manifest, answer: Answer) -> StoryReason:
    worst = next((one for one in answer.issues if one.verdict is answer.verdict), None)
    if worst is not None and worst.verdict in (Verdict.NOT_QUEUED, Verdict.NEVER):
        remedy = f"; {worst.remedy}" if worst.remedy else ""
        stuck = stuck_pod([job] if job.get("kind") == "Pod" else ())
        pods = f"; {stuck}" if stuck else ""
        return StoryReason(_STATES[worst.verdict], f"on {index.name}, {worst.problem}{remedy}{pods}")
    if owner := owner_of(job):
        text = f"Kueue manages it as part of its owner {owner.get('kind')} {owner.get('name')}"
        return StoryReason(State.NOT_QUEUED, f"on {index.name}, {text}")
    queue = label_of(job, QUEUE_LABEL)
    made = "its webhook ran before Kueue managed it" if at(job, "spec", "suspend") is False else "none exists yet"
    return StoryReason(
        State.WAITS, f"on {index.name}, Kueue has created no Workload of it for LocalQueue {queue} ({made})"
    )
