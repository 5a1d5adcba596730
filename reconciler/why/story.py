"""Finds what a user means by NAMESPACE/NAME, and tells its whole story."""

from collections.abc import Iterable, Iterator

from reconciler.admission.fit import shown
from reconciler.admission.model import Remedy, RemedyKind
from reconciler.admission.nodes import misfit
from reconciler.admission.remedies import flavor_pairs
from reconciler.kubestellar.model import Decision, read_placed
from reconciler.kueue.health import explain
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.quota_tree import NO_QUOTA, FlavorResource, NodeKind, NodeName, QuotaTree, available, potential
from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at
from reconciler.kueue.workloads import HELD, has_condition
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.text import one_line, suggest
from reconciler.why.dispatch import is_copy, way_of, worker_answers
from reconciler.why.index import (
    Address,
    ClusterIndex,
    Stories,
    address_of,
    condition_of,
    created_at,
    is_pending,
    label_of,
    message_of,
    owner_of,
    prebuilt_of,
    priority_of,
    title_of,
    uid_of,
)
from reconciler.why.model import CheckAnswer, QueuedAhead, State, Story, StoryReason, StoryStep, Subject
from reconciler.why.queue import blocked_reason, preempted_text
from reconciler.why.reason import subject_reason
from reconciler.why.remedies import find_remedies, requested, requested_text, submission_of

POD_GROUP = f"{GROUP}/pod-group-name"
MOST_OWNERS = 5
MOST_AHEAD = 5
ENDED = (State.RUNS, State.ADMITTED, State.FINISHED, State.FAILED)
_CONDITIONS = {
    "QuotaReserved": "Kueue reserved quota in queue {queue}",
    "Admitted": "admitted",
    "PodsReady": "all its pods are ready",
    "Finished": "finished ({reason})",
}


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
        yield from _subjects_of(index, job)
    workload = index.workloads.get(address)
    if workload is not None:
        yield Subject(index.name, index.job_of(workload), workload)


def _subjects_of(index: ClusterIndex, job: Manifest, depth: int = 0) -> Iterator[Subject]:
    """A job with its Workloads; without any, Kueue may manage the owner of the job, for example the Job of a pod."""
    if workloads := _workloads(index, job):
        yield from (Subject(index.name, job, workload) for workload in workloads)
        return
    owner = index.jobs_by_uid.get(as_text(owner_of(job).get("uid")))
    if owner is not None and depth < MOST_OWNERS:
        yield from _subjects_of(index, owner, depth + 1)
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


def tell(stories: Stories, subject: Subject, decision: Decision | None = None) -> Story:
    """Return the story of one job. `decision` is the placement of a job of KubeStellar, if it was observed."""
    index, workload = stories.clusters[subject.cluster], subject.workload
    reason = subject_reason(stories, subject, decision)
    common = Story(
        cluster=subject.cluster,
        title=title_of(subject.job, workload),
        reason=reason,
        steps=steps_of(stories, subject),
        gaps=_gaps(stories),
    )
    return common if workload is None else _with_workload(stories, index, workload, common)


def _with_workload(stories: Stories, index: ClusterIndex, workload: Manifest, story: Story) -> Story:
    queue = index.queue_of(workload)
    way = way_of(index, queue)
    is_open = story.reason.state not in ENDED and story.reason.state is not State.INACTIVE
    return Story(
        cluster=story.cluster,
        title=story.title,
        reason=story.reason,
        workload="/".join(address_of(workload)),
        local_queue=f"{address_of(workload)[0]}/{at(workload, 'spec', 'queueName') or ''}",
        cluster_queue=queue,
        dispatch=way,
        runs_on=_runs_on(index, workload, way, story.reason),
        place=index.places.get(address_of(workload)),
        ahead=tuple(_ahead(index, workload)),
        message=message_of(workload, "QuotaReserved") if is_pending(workload) else "",
        flavors=tuple(flavor_lines(index, workload)) if is_pending(workload) else (),
        checks=tuple(_checks(workload)),
        workers=worker_answers(stories, index, workload) if way == "multikueue" and _is_out(workload) else (),
        remedies=_remedies(stories, index, workload) if is_open else (),
        steps=story.steps,
        gaps=story.gaps,
    )


def _is_out(workload: Manifest) -> bool:
    """Whether MultiKueue still looks for a worker."""
    is_over = has_condition(workload, "Finished") or bool(at(workload, "status", "clusterName"))
    return has_condition(workload, "QuotaReserved") and not is_over


def _gaps(stories: Stories) -> tuple[Gap, ...]:
    return stories.objects.gaps


def _runs_on(index: ClusterIndex, workload: Manifest, way: str, reason: StoryReason) -> ClusterName | None:
    """Return where it runs or ran. A worker that was not observed may still run it."""
    if reason.state not in (*ENDED, State.UNKNOWN) or (reason.state is State.UNKNOWN and way == "none"):
        return None
    if way == "kubestellar":
        placed = read_placed(index.job_of(workload))
        return placed.cluster if placed else None
    winner = as_text(at(workload, "status", "clusterName"))
    return ClusterName(winner) if winner else (None if way == "multikueue" else index.name)


def _ahead(index: ClusterIndex, workload: Manifest) -> Iterator[QueuedAhead]:
    place = index.places.get(address_of(workload))
    line = index.lines[place.queue][: place.position - 1] if place else ()
    for number, one in list(enumerate(line, start=1))[:MOST_AHEAD]:
        yield QueuedAhead(number, title_of(index.job_of(one), one), priority_of(one), requested_text(one))


def _checks(workload: Manifest) -> Iterator[CheckAnswer]:
    for one in map(as_map, as_list(at(workload, "status", "admissionChecks"))):
        yield CheckAnswer(*(as_text(one.get(key)) for key in ("name", "state", "message")))


def flavor_lines(index: ClusterIndex, workload: Manifest) -> Iterator[str]:
    """Return for each flavor of the queue what is requested, free and possible, or why the pods cannot use it."""
    name, tree = index.queue_of(workload), index.state.tree
    queue = index.state.queues.get(name)
    if queue is None or tree is None:
        return
    wanted = requested(workload)
    for flavor, pairs in flavor_pairs(index.state, queue, wanted).items():
        pods = submission_of(workload).pod_sets
        problems = (misfit(one, index.state.flavors[flavor], is_all_topology=True) for one in pods)
        if why := next(filter(None, problems), ""):
            yield f"{flavor}: {why}"
            continue
        node = NodeName(NodeKind.QUEUE, name)
        amounts = "; ".join(_amounts(index, tree, node, pair, wanted[pair.name]) for pair in pairs)
        yield f"{flavor}: {amounts}"


def _amounts(index: ClusterIndex, tree: QuotaTree, node: NodeName, pair: FlavorResource, wanted: int) -> str:
    free = max(available(tree, node, pair, index.state.usage), 0)
    nominal = tree.nodes[node].quotas.get(pair, NO_QUOTA).nominal
    most = potential(tree, node, pair)
    borrowed = f", {shown(pair.name, most)} with everything it may borrow" if most > nominal else ""
    asked, left, own = (shown(pair.name, amount) for amount in (wanted, free, nominal))
    return f"{pair.name} {asked} requested, {left} free of {own}{borrowed}"


def _remedies(stories: Stories, index: ClusterIndex, workload: Manifest) -> tuple[Remedy, ...]:
    if is_pending(workload):
        return (*_of_queue(index, workload), *find_remedies(index, workload))
    copies = (
        (other, other.workloads.get(address_of(workload)))
        for name, other in stories.clusters.items()
        if name != index.name and index is stories.manager
    )
    waiting = [(other, copy) for other, copy in copies if copy is not None and is_pending(copy)]
    return tuple(one for other, copy in waiting for one in (*_of_queue(other, copy), *find_remedies(other, copy)))


def _of_queue(index: ClusterIndex, workload: Manifest) -> Iterator[Remedy]:
    """Return what to change about the queue itself, if it is stopped or inactive."""
    if blocked_reason(index, workload) is None:
        return
    name = index.queue_of(workload)
    local, queue = index.local_queue_of(workload), index.state.queues.get(name)
    for what, manifest in (("LocalQueue", local), ("ClusterQueue", queue)):
        if at(manifest, "spec", "stopPolicy") in HELD:
            text = f"set spec.stopPolicy of {what} {at(manifest, 'metadata', 'name')} on {index.name} to None"
            yield Remedy(RemedyKind.OTHER, text)
            return
    known = explain("ClusterQueue", as_text(condition_of(queue, "Active").get("reason")))
    if known is not None and known.remedy:
        yield Remedy(RemedyKind.OTHER, known.remedy)


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
