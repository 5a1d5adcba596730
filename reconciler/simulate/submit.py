"""Jobs that are added to a twin, as the Workloads that Kueue would make of them. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from reconciler.admission.jobs import read_submission
from reconciler.admission.model import PodSet, Submission
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.masking import masked_object

SUFFIX = "submitted"
PRIORITY_CLASS = "WorkloadPriorityClass"


@dataclass(frozen=True, slots=True)
class AddedJob:
    """A job that is submitted to one cluster."""

    cluster: ClusterName
    submission: Submission
    count: int = 1


@dataclass(frozen=True, slots=True)
class AddedWorkloads:
    """The workloads of the jobs, and what about them could not be known."""

    workloads: tuple[Manifest, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()


def read_job(manifest: Manifest) -> Submission | str:
    """The job of a document, or why it cannot be simulated."""
    found = read_submission(manifest)
    if found is None:
        return f"{as_text(manifest.get('kind')) or 'a document'} is not a kind of job that Kueue queues"
    if not found.queue:
        return f"{found.title}: it has no label kueue.x-k8s.io/queue-name, so Kueue does not queue it"
    if not found.pod_sets:
        return f"{found.title}: its pods are in other objects"
    return found


def added_workloads(jobs: Iterable[AddedJob], classes: Iterable[Manifest]) -> AddedWorkloads:
    values = {as_text(at(one, "metadata", "name")): at(one, "value") for one in classes}
    listed = list(jobs)
    notes = [
        f"{one.submission.title}: no {PRIORITY_CLASS} {one.submission.priority_class}: its priority is 0 here"
        for one in listed
        if one.submission.priority_class and not isinstance(values.get(one.submission.priority_class), int)
    ]
    workloads = [found for one in listed for found in _workloads(one, values.get(one.submission.priority_class))]
    return AddedWorkloads(tuple(workloads), tuple(notes))


def _workloads(job: AddedJob, priority: object) -> Iterator[Manifest]:
    submission, total = job.submission, job.count * job.submission.copies
    content: dict[str, object] = {
        "queueName": submission.queue,
        "podSets": [_pod_set(one) for one in submission.pod_sets],
    }
    if isinstance(priority, int):
        reference = {"group": GROUP, "kind": PRIORITY_CLASS, "name": submission.priority_class}
        content |= {"priority": priority, "priorityClassRef": reference}
    for number in range(1, total + 1):
        tail = f"-{number}" if total > 1 else ""
        metadata = {"name": f"{submission.name or 'job'}-{SUFFIX}{tail}", "namespace": submission.namespace}
        head = {"apiVersion": f"{GROUP}/{CANONICAL}", "kind": "Workload", "metadata": metadata}
        yield masked_object("Workload", {**head, "spec": content})


def _pod_set(one: PodSet) -> Manifest:
    pod = {"restartPolicy": "Never", **one.pod}
    template = {"metadata": {}, "spec": pod}
    least = {} if one.least is None else {"minCount": one.least}
    return {"name": one.name or "main", "count": one.count, **least, "template": template}
