"""Decides whether a cluster would admit a job, and adds notes that do not change the answer."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.admission.dispatch import (
    CARRIER,
    brings_its_cluster,
    inactive,
    is_downsynced,
    kind_not_downsynced,
    not_downsynced,
    sending_of,
    way_to_workers,
    without_flavor,
)
from reconciler.admission.fit import QueueFit, fit
from reconciler.admission.jobs import DEPLOYMENT, POD, STATEFUL_SET, priority_of_pods
from reconciler.admission.model import (
    AdmissionIssue,
    AdmissionReason,
    Answer,
    Checked,
    Remedy,
    Submission,
    Verdict,
)
from reconciler.admission.nodes import asks_for_topology, is_selected
from reconciler.admission.remedies import HeldWorkload, RemedyCase, find_remedies
from reconciler.admission.state import ClusterState, FleetState
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER, KueueVersion
from reconciler.kueue.reading import QUEUE_LABEL, as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.text import suggest

DEFAULT_QUEUE = "default"
PARTIAL = "(partial admission)"
# With more Workloads for one job, each try takes too long.
MOST_COPIES = 16
DEFAULTING_SINCE = KueueVersion(0, 12)
# Before this release, managedJobsNamespaceSelector applied to pods, and to jobs without a queue.
SELECTING_SINCE = KueueVersion(0, 15)
# Before this release, the webhooks skipped the exempt namespaces only for pods and for kinds that consist of pods.
EXEMPTING_SINCE = KueueVersion(0, 19)
MADE_OF_PODS = (DEPLOYMENT, STATEFUL_SET)
RUNS_UNSEEN = (
    "if its webhooks skip the namespace too, as in Kueue's Helm chart, it runs at once and bypasses every quota"
)
DOWNSYNCED_LATER = "KubeStellar then downsyncs it to a worker with free capacity; which one is not simulated here"
RUNS_ALREADY = "it runs already and holds its quota; kfleet why shows where"
# Of these kinds every release manages the first one; the others can be enabled and disabled.
ALWAYS_MANAGED = "batch/job"
# Classes that exist on every cluster.
SYSTEM_PRIORITIES = frozenset(("system-cluster-critical", "system-node-critical"))


def notes_on(submission: Submission, state: ClusterState, queue: Manifest, found: QueueFit) -> Iterator[str]:
    yield from submission.notes
    yield from _on_pods(submission, found)
    yield from _not_played(submission, state)
    for check in as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks")):
        controller = as_text(at(state.checks.get(as_text(at(check, "name"))), "spec", "controllerName"))
        if controller not in ("", MULTIKUEUE_CONTROLLER, CARRIER):
            yield f"{controller} decides afterwards too (AdmissionCheck {at(check, 'name')})"


def _on_pods(submission: Submission, found: QueueFit) -> Iterator[str]:
    counts = {one.name: one.count for one in submission.pod_sets}
    for one in found.assignments:
        if one.count < counts.get(one.pod_set, 0):
            yield f"{one.count} of {counts[one.pod_set]} pods would start {PARTIAL}"
    if submission.pod_sets and not any(one.requests for one in submission.pod_sets):
        yield "its pods request nothing, so they use no quota"


def _not_played(submission: Submission, state: ClusterState) -> Iterator[str]:
    if not state.facts.is_live and submission.framework != ALWAYS_MANAGED:
        yield f"that Kueue manages {submission.framework} there is assumed from the fleet's files; --live reads it"
    transformed = state.facts.settings.transformed & {name for one in submission.pod_sets for name in one.requests}
    if transformed:
        yield f"Kueue counts {', '.join(sorted(transformed))} in other units there, which is not simulated here"
    if any(asks_for_topology(one) for one in submission.pod_sets):
        yield "whether its pods fit into the topology is not simulated here"
    of_pods = "" if submission.priority_class else priority_of_pods(submission)
    if of_pods and state.facts.pod_priorities is None:
        yield f"whether PriorityClass {of_pods} exists is not known"


def check(submission: Submission, fleet: FleetState, clusters: Iterable[ClusterName] = ()) -> Checked:
    """Return the answers of the named clusters, or of those to which the job would be submitted."""
    names = tuple(clusters) or _submission_clusters(submission, fleet)
    answers = (_answer(submission, fleet, name) for name in names)
    return Checked(submission, tuple(map(_of_running, answers)) if submission.is_running else tuple(answers))


def _of_running(answer: Answer) -> Answer:
    """A job that runs holds the quota that seems to be missing."""
    issues = tuple(one for one in answer.issues if not _is_about_room(one))
    notes = (*answer.notes, RUNS_ALREADY)
    return replace(answer, issues=issues, notes=notes, workers=tuple(map(_of_running, answer.workers)))


def _is_about_room(issue: AdmissionIssue) -> bool:
    return issue.verdict is Verdict.WAITS and issue.reason in {AdmissionReason.NO_ROOM, AdmissionReason.NO_WORKER}


def _submission_clusters(submission: Submission, fleet: FleetState) -> tuple[ClusterName, ...]:
    """Return the manager if it has the queue, else every cluster that has it, else those where users expect it."""
    address = (submission.namespace, submission.queue or DEFAULT_QUEUE)
    having = [name for name, state in fleet.clusters.items() if address in state.local_queues]
    if fleet.manager in having:
        return (fleet.manager,)
    if having:
        return tuple(having)
    everyone = (*fleet.clusters, *fleet.lost)
    return (fleet.manager,) if fleet.manager in everyone else everyone


def _answer(submission: Submission, fleet: FleetState, name: ClusterName) -> Answer:
    state = fleet.clusters.get(name)
    if state is None:
        return _unseen(fleet, name)
    queue = submission.queue or _default_queue(submission, state)
    queued = replace(submission, queue=queue)
    refusal = _not_managed(queued, state) or (None if queue else _without_label(submission, state))
    if refusal is not None:
        return _refused(name, queue, refusal)
    answer = _admit(queued, state)
    sending = sending_of(state, answer.cluster_queue)
    if is_downsynced(state, answer.cluster_queue):
        return _downsynced(answer, queued, fleet)
    if sending is None:
        return answer
    workers = tuple(_worker(queued, fleet, state, worker) for worker in sending)
    issues = (*answer.issues, *way_to_workers(queued, state), *without_flavor(answer), *_unwilling(workers))
    return replace(answer, issues=issues, workers=workers, notes=tuple(_notes_of_workers(answer, workers)))


def _notes_of_workers(answer: Answer, workers: Iterable[Answer]) -> Iterator[str]:
    """How many pods start is up to the worker: the manager's number is that of the sum of all workers."""
    yield from (note for note in answer.notes if not note.endswith(PARTIAL))
    for worker in workers:
        if worker.verdict is Verdict.ADMITTED:
            yield from (f"on {worker.cluster} {note}" for note in worker.notes if note.endswith(PARTIAL))


def _downsynced(answer: Answer, submission: Submission, fleet: FleetState) -> Answer:
    against = (
        *brings_its_cluster(submission),
        *kind_not_downsynced(submission),
        *not_downsynced(submission, answer.assignments, fleet.downsynced),
    )
    notes = answer.notes if against else (*answer.notes, DOWNSYNCED_LATER)
    return replace(answer, issues=(*answer.issues, *against), notes=notes, is_downsynced=True)


def _unseen(fleet: FleetState, name: ClusterName) -> Answer:
    why = fleet.lost.get(name)
    remedy = (
        "" if why else f"name its Secret in credentials.secret of the Cluster that it is, or call the Cluster {name}"
    )
    issue = AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, why or "is not a cluster of the fleet", remedy)
    return Answer(name, issues=(issue,))


def _worker(submission: Submission, fleet: FleetState, manager: ClusterState, name: ClusterName) -> Answer:
    """The Workload brings its priority: a worker needs no WorkloadPriorityClass, but the PriorityClass of the pods."""
    state = fleet.clusters.get(name)
    if state is None:
        return _unseen(fleet, name)
    refusal = _not_managed(submission, state)
    if refusal is not None:
        return _refused(name, submission.queue, refusal)
    answer = _admit(replace(submission, priority_class=""), state)
    cut_off = inactive("MultiKueueCluster", manager.multikueue_clusters.get(name))
    return replace(answer, issues=(*answer.issues, *cut_off))


def _refused(name: ClusterName, queue: str, refusal: AdmissionIssue) -> Answer:
    notes = (RUNS_UNSEEN,) if refusal.reason is AdmissionReason.NOT_SELECTED else ()
    return Answer(name, queue, issues=(refusal,), notes=notes)


def _unwilling(workers: tuple[Answer, ...]) -> Iterator[AdmissionIssue]:
    """If no worker admits it, it waits on the manager as long as it would on the best of them."""
    verdicts = {worker.verdict for worker in workers}
    if Verdict.ADMITTED in verdicts:
        return
    best = next((one for one in Verdict if one in verdicts), Verdict.NEVER)
    verdict = Verdict.NEVER if best is Verdict.NOT_QUEUED else best
    yield AdmissionIssue(
        verdict, AdmissionReason.NO_WORKER, "no worker admits it" if workers else "the queue has no worker"
    )


def _not_managed(submission: Submission, state: ClusterState) -> AdmissionIssue | None:
    settings = state.facts.settings
    if submission.framework not in settings.frameworks:
        problem = f"Kueue does not manage this kind there: {submission.framework} is not enabled"
        remedy = "add it to spec.kueue.config.integrations.frameworks of the Cluster"
        return AdmissionIssue(Verdict.NOT_QUEUED, AdmissionReason.NO_INTEGRATION, problem, remedy)
    is_left_out = is_selected(settings.namespaces, submission.namespace, state) is False
    return _left_out(submission, state) if is_left_out else None


def _left_out(submission: Submission, state: ClusterState) -> AdmissionIssue | None:
    """The webhooks suspend a job that names a queue in any namespace; the controllers then apply the selector."""
    namespace = submission.namespace
    if submission.framework == POD or _is_exempt(submission, state):
        problem = f"Kueue ignores the pods of namespace {namespace} (managedJobsNamespaceSelector)"
        return AdmissionIssue(Verdict.NOT_QUEUED, AdmissionReason.NO_INTEGRATION, problem, "use another namespace")
    if not submission.queue or state.facts.version < SELECTING_SINCE:
        return None
    problem = f"Kueue suspends it and never admits it: managedJobsNamespaceSelector excludes {namespace}"
    return AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SELECTED, problem, "label the namespace, or use another")


def _is_exempt(submission: Submission, state: ClusterState) -> bool:
    """Whether no webhook applies to it."""
    is_seen = state.facts.version < EXEMPTING_SINCE and submission.framework not in MADE_OF_PODS
    return submission.namespace in state.facts.settings.exempt and not is_seen


def _default_queue(submission: Submission, state: ClusterState) -> str:
    """A LocalQueue of this name accepts every job of its namespace that names no queue."""
    is_there = (submission.namespace, DEFAULT_QUEUE) in state.local_queues
    return DEFAULT_QUEUE if is_there and state.facts.version >= DEFAULTING_SINCE else ""


def _without_label(submission: Submission, state: ClusterState) -> AdmissionIssue:
    settings = state.facts.settings
    known = sorted(name for namespace, name in state.local_queues if namespace == submission.namespace)
    there = f"; namespace {submission.namespace} has {', '.join(known)}" if known else ""
    remedy = f"label it {QUEUE_LABEL}: NAME{there}"
    if settings.manages_unlabelled and is_selected(settings.namespaces, submission.namespace, state):
        problem = "it names no queue, and Kueue suspends such jobs (manageJobsWithoutQueueName)"
        return AdmissionIssue(Verdict.NEVER, AdmissionReason.NO_LABEL, problem, remedy)
    problem = "it names no queue: Kueue lets it run at once, and it bypasses every quota"
    return AdmissionIssue(Verdict.NOT_QUEUED, AdmissionReason.NO_LABEL, problem, remedy)


def _admit(submission: Submission, state: ClusterState) -> Answer:
    """Return the issues of the queue on one cluster, wherever the job then runs."""
    local = state.local_queues.get((submission.namespace, submission.queue))
    if local is None:
        return Answer(state.name, submission.queue, issues=(_no_local_queue(submission, state),))
    name = as_text(at(local, "spec", "clusterQueue"))
    queue = None if name in state.facts.unknown_queues else state.queues.get(name)
    if queue is None:
        return Answer(state.name, submission.queue, name, (_no_cluster_queue(name, state),))
    found = fit(submission, state, queue)
    issues = (*_closed(local, queue), *_unfit_for(submission, state, queue), *filter(None, [found.issue]))
    notes = tuple(notes_on(submission, state, queue, found))
    is_known = found.issue is not None and found.issue.verdict is not Verdict.UNKNOWN
    remedies = _remedies(submission, state, queue) if is_known and issues == (found.issue,) else ()
    return Answer(
        cluster=state.name,
        queue=submission.queue,
        cluster_queue=name,
        issues=issues,
        assignments=found.assignments,
        notes=notes,
        remedies=remedies,
    )


def _remedies(submission: Submission, state: ClusterState, queue: Manifest) -> tuple[Remedy, ...]:
    """Nothing if it waits for more than quota: then no single change would let it in."""
    if state.tree is None or submission.copies > MOST_COPIES:
        return ()
    holders = tuple(HeldWorkload(_title_of(one), one) for one in state.workloads)
    case = RemedyCase(state=state, tree=state.tree, queue=queue, submission=submission, holders=holders)
    return tuple(one for one in find_remedies(case) if one.is_verified)


def _title_of(workload: Manifest) -> str:
    """How people call the job of a workload."""
    metadata = as_map(workload.get("metadata"))
    owners = [as_map(one) for one in as_list(metadata.get("ownerReferences"))]
    owner = next((one for one in owners if one.get("controller")), {"kind": "Workload", "name": metadata.get("name")})
    return f"{owner.get('kind')}/{metadata.get('namespace')}/{owner.get('name')}"


def _no_local_queue(submission: Submission, state: ClusterState) -> AdmissionIssue:
    names = [name for namespace, name in state.local_queues if namespace == submission.namespace]
    where = f"{submission.namespace}/{submission.queue}"
    problem = f"there is no LocalQueue {where}{suggest(submission.queue, names)}"
    remedy = f"namespace {submission.namespace} has {', '.join(sorted(names))}" if names else "add a Tenant for it"
    return AdmissionIssue(Verdict.NEVER, AdmissionReason.NO_LOCAL_QUEUE, problem, remedy)


def _no_cluster_queue(name: str, state: ClusterState) -> AdmissionIssue:
    if name in state.facts.unknown_queues:
        problem = f"ClusterQueue {name} consists of pools, which were not observed"
        return AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, problem, "observe the clusters with --live")
    problem = f"its LocalQueue refers to ClusterQueue {name}, which does not exist"
    return AdmissionIssue(
        Verdict.NEVER, AdmissionReason.NO_CLUSTER_QUEUE, problem, "add the Queue, or change the LocalQueue"
    )


def _closed(local: Manifest, queue: Manifest) -> Iterator[AdmissionIssue]:
    for what, manifest in (("LocalQueue", local), ("ClusterQueue", queue)):
        policy = as_text(at(manifest, "spec", "stopPolicy"))
        if policy not in ("", "None"):
            problem = f"{what} {at(manifest, 'metadata', 'name')} is stopped ({policy})"
            yield AdmissionIssue(
                Verdict.WAITS, AdmissionReason.STOPPED, problem, "it waits until stopPolicy is None again"
            )
    yield from inactive("ClusterQueue", queue)


def _unfit_for(submission: Submission, state: ClusterState, queue: Manifest) -> Iterator[AdmissionIssue]:
    yield from _namespace(submission, state, queue)
    yield from _priority(submission, state)
    pending = at(queue, "status", "pendingWorkloads")
    if at(queue, "spec", "queueingStrategy") == "StrictFIFO" and isinstance(pending, int) and pending:
        problem = f"{pending} others wait ahead of it in a queue that keeps their order (StrictFIFO)"
        yield AdmissionIssue(Verdict.WAITS, AdmissionReason.NO_ROOM, problem, "it starts when they have started")


def _namespace(submission: Submission, state: ClusterState, queue: Manifest) -> Iterator[AdmissionIssue]:
    name, namespace = at(queue, "metadata", "name"), submission.namespace
    if state.facts.is_live and namespace not in state.namespaces:
        yield AdmissionIssue(
            Verdict.NEVER, AdmissionReason.NO_NAMESPACE, f"there is no namespace {namespace}", "create it"
        )
        return
    selected = is_selected(at(queue, "spec", "namespaceSelector"), namespace, state)
    if selected is None:
        problem = f"ClusterQueue {name} selects namespaces by labels, and {namespace} is not in the fleet"
        yield AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, problem, "observe the clusters with --live")
    if selected is False:
        problem = f"ClusterQueue {name} does not select namespace {namespace}"
        remedy = "label the namespace, or widen the queue's namespaceSelector"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SELECTED, problem, remedy)
    is_obeyed = submission.framework == POD or state.facts.version >= SELECTING_SINCE
    if is_obeyed and is_selected(state.facts.settings.namespaces, namespace, state) is None:
        problem = f"managedJobsNamespaceSelector selects by labels, and {namespace} is not in the fleet"
        yield AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, problem, "observe the clusters with --live")


def _priority(submission: Submission, state: ClusterState) -> Iterator[AdmissionIssue]:
    name = submission.priority_class
    if name and name not in state.priorities:
        problem = f"without WorkloadPriorityClass {name} Kueue creates no Workload{suggest(name, state.priorities)}"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NO_PRIORITY_CLASS, problem, "add it, or name another")
    known = state.facts.pod_priorities
    of_pods = "" if name else priority_of_pods(submission)
    if of_pods and known is not None and of_pods not in known | SYSTEM_PRIORITIES:
        problem = f"its pods name PriorityClass {of_pods}, which does not exist{suggest(of_pods, known)}"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NO_PRIORITY_CLASS, problem, "create it, or name another")
