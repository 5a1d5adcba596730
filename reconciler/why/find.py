"""Finds what a user means by NAMESPACE/NAME: a job of any kind, a Workload, or a pod, on any cluster."""

from collections.abc import Iterable, Iterator

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text
from reconciler.kueue.resources import ORIGIN
from reconciler.objects import ClusterName, Manifest
from reconciler.text import suggest
from reconciler.why.dispatch import is_copy
from reconciler.why.index import Address, ClusterIndex, Stories, address_of, label_of, owner_of, prebuilt_of, uid_of
from reconciler.why.model import Subject

POD_GROUP = f"{GROUP}/pod-group-name"
MOST_OWNERS = 5


def find_subjects(stories: Stories, address: Address, cluster: ClusterName | None = None) -> tuple[Subject, ...]:
    """Return every job that the name may mean, each once. Copies on workers belong to the job of the manager."""
    found: dict[tuple[ClusterName, str], Subject] = {}
    for index in _ordered(stories):
        if cluster in (None, index.name):
            for subject in _on_cluster(index, address):
                for one in _joined(stories, index, subject) if cluster is None else (subject,):
                    found.setdefault((one.cluster, uid_of(one.workload) or uid_of(one.job)), one)
    return tuple(found.values())


def similar_names(stories: Stories, address: Address) -> str:
    """Return `; did you mean …?` for a name that is not found, or nothing."""
    names = {
        f"{namespace}/{name}"
        for index in stories.clusters.values()
        for namespace, name in (*index.workloads, *index.jobs)
    }
    return suggest("/".join(address), names)


def _ordered(stories: Stories) -> list[ClusterIndex]:
    manager = stories.manager
    return sorted(stories.clusters.values(), key=lambda index: index is not manager)


def _on_cluster(index: ClusterIndex, address: Address) -> Iterator[Subject]:
    jobs = index.jobs.get(address, ())
    for job in jobs:
        yield from _of_job(index, job)
    workload = index.workloads.get(address)
    if workload is not None:
        yield Subject(index.name, index.job_of(workload), workload)


def _of_job(index: ClusterIndex, job: Manifest, depth: int = 0) -> Iterator[Subject]:
    """A job with its Workloads; without any, Kueue may manage the owner of the job, for example the Job of a pod."""
    if workloads := _workloads(index, job):
        yield from (Subject(index.name, job, workload) for workload in workloads)
        return
    owner = index.jobs_by_uid.get(as_text(owner_of(job).get("uid")))
    if owner is not None and depth < MOST_OWNERS:
        yield from _of_job(index, owner, depth + 1)
        return
    pods = _pods_with_workloads(index, job)
    yield from pods or (Subject(index.name, job),)


def _workloads(index: ClusterIndex, job: Manifest) -> tuple[Manifest, ...]:
    """An old Kueue on a worker does not know the annotation, and creates a second Workload for the same job."""
    named = prebuilt_of(job) or label_of(job, POD_GROUP)
    prebuilt = index.workloads.get((address_of(job)[0], named)) if named else None
    return (prebuilt,) if prebuilt is not None else index.workloads_of_job.get(uid_of(job), ())


def _pods_with_workloads(index: ClusterIndex, job: Manifest) -> tuple[Subject, ...]:
    """Kueue queues each pod of a Deployment and of similar kinds separately."""
    pods: Iterable[Manifest] = index.pods_of_job.get(uid_of(job), ())
    owned = [one for entries in index.jobs.values() for one in entries if owner_of(one).get("uid") == uid_of(job)]
    pods = (*pods, *(pod for one in owned for pod in index.pods_of_job.get(uid_of(one), ())))
    return tuple(Subject(index.name, pod, one) for pod in pods for one in _workloads(index, pod))


def _joined(stories: Stories, index: ClusterIndex, subject: Subject) -> Iterable[Subject]:
    manager = stories.manager
    if manager is None or not is_copy(stories, index, subject.job, subject.workload):
        return (subject,)
    if subject.workload is not None and label_of(subject.workload, ORIGIN):
        original = manager.workloads[address_of(subject.workload)]
        return (Subject(manager.name, manager.job_of(original), original),)
    return tuple(_on_cluster(manager, address_of(subject.job)))
