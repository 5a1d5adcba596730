"""The events of a job in order: submitted, quota, checks, admitted, sent, running, evicted, finished."""

from collections.abc import Iterator

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.text import one_line
from reconciler.why.index import ClusterIndex, Stories
from reconciler.why.model import StoryStep, Subject
from reconciler.why.queue import preempted_text
from reconciler.why.reading import address_of, condition_of, created_at, title_of

_CONDITIONS = {
    "QuotaReserved": "Kueue reserved quota in queue {queue}",
    "Admitted": "admitted",
    "PodsReady": "all its pods are ready",
    "Finished": "finished ({reason})",
}


def steps_of(stories: Stories, subject: Subject) -> tuple[StoryStep, ...]:
    """Return the events on the cluster of a job, and on the worker that has its copy."""
    index = stories.clusters[subject.cluster]
    found = [*_submitted(subject), *_of_job(subject.cluster, subject.job)]
    if subject.workload is not None:
        found += _of_workload(stories, index, subject.workload)
        found += _of_copies(stories, index, subject.workload)
    return tuple(sorted(dict.fromkeys(found), key=lambda step: step.time))


def _submitted(subject: Subject) -> Iterator[StoryStep]:
    if time := created_at(subject.job or subject.workload):
        yield StoryStep(time, subject.cluster, f"{title_of(subject.job, subject.workload)} was submitted")


def _of_job(cluster: ClusterName, job: Manifest | None) -> Iterator[StoryStep]:
    for field, what in (("startTime", "its pods may start"), ("completionTime", "the job completed")):
        if time := as_text(at(job, "status", field)):
            yield StoryStep(time, cluster, what)


def _of_workload(stories: Stories, index: ClusterIndex, workload: Manifest) -> Iterator[StoryStep]:
    queue = index.queue_of(workload)
    local = as_text(at(workload, "spec", "queueName"))
    if time := created_at(workload):
        where = f"LocalQueue {address_of(workload)[0]}/{local}" + (f", ClusterQueue {queue}" if queue else "")
        yield StoryStep(time, index.name, f"queued in {where}")
    for kind, text in _CONDITIONS.items():
        yield from _condition(index.name, workload, kind, text.format(queue=queue, reason=_why(workload, kind)))
    if what := preempted_text(workload, (index, *stories.clusters.values())):
        yield from _condition(index.name, workload, "Evicted", what)
    for one in map(as_map, as_list(at(workload, "status", "admissionChecks"))):
        said = one_line(as_text(one.get("message")))
        text = f"check {one.get('name')} is {one.get('state')}" + (f": {said}" if said else "")
        yield StoryStep(as_text(one.get("lastTransitionTime")), index.name, text)


def _why(workload: Manifest, kind: str) -> str:
    found = condition_of(workload, kind)
    return ": ".join(filter(None, (as_text(found.get("reason")), one_line(as_text(found.get("message"))))))


def _condition(cluster: ClusterName, workload: Manifest, kind: str, what: str) -> Iterator[StoryStep]:
    found = condition_of(workload, kind)
    if found.get("status") == "True":
        yield StoryStep(as_text(found.get("lastTransitionTime")), cluster, what)


def _of_copies(stories: Stories, index: ClusterIndex, workload: Manifest) -> Iterator[StoryStep]:
    for other in stories.clusters.values():
        copy = other.workloads.get(address_of(workload)) if other.name != index.name else None
        if index is stories.manager and copy is not None:
            yield from _of_workload(stories, other, copy)
            yield from _of_job(other.name, other.job_of(copy))
