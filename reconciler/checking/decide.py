"""Whether a job would be admitted, on each cluster that it could be given to.

In Kueue's own order: is the kind managed, does it name a queue, does the queue take it, does it fit. What keeps the
queue from being found at all ends the search; of everything after that all objections are told at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.checking.fit import fit
from reconciler.checking.kinds import DEPLOYMENT, POD, STATEFUL_SET, priority_of_pods
from reconciler.checking.model import Answer, Checked, Objection, Reason, Submission, Verdict
from reconciler.checking.notes import notes_on
from reconciler.checking.selectors import is_selected
from reconciler.checking.sending import inactive, is_carried, not_carried, sending_of, stays_behind, way_to_workers
from reconciler.checking.state import ClusterState, FleetState
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.labels import QUEUE_LABEL
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.wording import suggest

DEFAULT_QUEUE = "default"
DEFAULTING_SINCE = KueueVersion(0, 12)
# Before, managedJobsNamespaceSelector was for pods, and for jobs without a queue.
SELECTING_SINCE = KueueVersion(0, 15)
# Before, the webhooks left out the exempt namespaces for pods and what is made of pods alone.
EXEMPTING_SINCE = KueueVersion(0, 19)
MADE_OF_PODS = (DEPLOYMENT, STATEFUL_SET)
RUNS_UNSEEN = (
    "if its webhooks leave the namespace out too, as Kueue's Helm chart has it, it runs at once, past every quota"
)
CARRIED_LATER = "KubeStellar then carries it to a worker that has room; which one is not played here"
# Classes that every cluster brings.
SYSTEM_PRIORITIES = frozenset(("system-cluster-critical", "system-node-critical"))


def check(submission: Submission, fleet: FleetState, clusters: Iterable[ClusterName] = ()) -> Checked:
    """Answers of the clusters that are named, or of those where the job would be handed in."""
    names = tuple(clusters) or _doors(submission, fleet)
    return Checked(submission, tuple(_answer(submission, fleet, name) for name in names))


def _doors(submission: Submission, fleet: FleetState) -> tuple[ClusterName, ...]:
    """The manager where it has the queue; else every cluster that has it; else those where one would look for it."""
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
    if is_carried(state, answer.cluster_queue):
        return _carried(answer, queued, fleet)
    if sending is None:
        return answer
    workers = tuple(_worker(queued, fleet, state, worker) for worker in sending)
    objections = (*answer.objections, *way_to_workers(queued, state), *_unwilling(workers))
    return replace(answer, objections=objections, workers=workers)


def _carried(answer: Answer, submission: Submission, fleet: FleetState) -> Answer:
    against = (*stays_behind(submission), *not_carried(submission, answer.assignments, fleet.carried))
    notes = answer.notes if against else (*answer.notes, CARRIED_LATER)
    return replace(answer, objections=(*answer.objections, *against), notes=notes, is_carried=True)


def _unseen(fleet: FleetState, name: ClusterName) -> Answer:
    why = fleet.lost.get(name, "is no cluster of the fleet")
    return Answer(name, objections=(Objection(Verdict.UNKNOWN, Reason.NOT_SEEN, why),))


def _worker(submission: Submission, fleet: FleetState, manager: ClusterState, name: ClusterName) -> Answer:
    """The Workload comes with its priority, so that a worker needs no class for it; its pods need theirs."""
    state = fleet.clusters.get(name)
    if state is None:
        return _unseen(fleet, name)
    refusal = _not_managed(submission, state)
    if refusal is not None:
        return _refused(name, submission.queue, refusal)
    answer = _admit(replace(submission, priority_class=""), state)
    cut_off = inactive("MultiKueueCluster", manager.multikueue_clusters.get(name))
    return replace(answer, objections=(*answer.objections, *cut_off))


def _refused(name: ClusterName, queue: str, refusal: Objection) -> Answer:
    notes = (RUNS_UNSEEN,) if refusal.reason is Reason.NOT_SELECTED else ()
    return Answer(name, queue, objections=(refusal,), notes=notes)


def _unwilling(workers: tuple[Answer, ...]) -> Iterator[Objection]:
    """Where no worker takes it, it waits on the manager as long as it would on the best of them."""
    verdicts = {worker.verdict for worker in workers}
    if Verdict.ADMITTED in verdicts:
        return
    best = next((one for one in Verdict if one in verdicts), Verdict.NEVER)
    verdict = Verdict.NEVER if best is Verdict.NOT_QUEUED else best
    yield Objection(verdict, Reason.NO_WORKER, "no worker takes it" if workers else "the queue has no worker")


def _not_managed(submission: Submission, state: ClusterState) -> Objection | None:
    settings = state.facts.settings
    if submission.framework not in settings.frameworks:
        problem = f"Kueue does not manage this kind there: {submission.framework} is not enabled"
        remedy = "add it to spec.kueue.config.integrations.frameworks of the Cluster"
        return Objection(Verdict.NOT_QUEUED, Reason.NO_INTEGRATION, problem, remedy)
    is_left_out = is_selected(settings.namespaces, submission.namespace, state) is False
    return _left_out(submission, state) if is_left_out else None


def _left_out(submission: Submission, state: ClusterState) -> Objection | None:
    """The webhooks hold back what names a queue, whatever the selector says; the controllers then obey the selector."""
    namespace = submission.namespace
    if submission.framework == POD or _is_exempt(submission, state):
        problem = f"Kueue leaves the pods of namespace {namespace} alone (managedJobsNamespaceSelector)"
        return Objection(Verdict.NOT_QUEUED, Reason.NO_INTEGRATION, problem, "use another namespace")
    if not submission.queue or state.facts.version < SELECTING_SINCE:
        return None
    problem = f"Kueue holds it back and never looks at it: managedJobsNamespaceSelector leaves {namespace} out"
    return Objection(Verdict.NEVER, Reason.NOT_SELECTED, problem, "label the namespace, or use another")


def _is_exempt(submission: Submission, state: ClusterState) -> bool:
    """Whether no webhook sees it."""
    is_seen = state.facts.version < EXEMPTING_SINCE and submission.framework not in MADE_OF_PODS
    return submission.namespace in state.facts.settings.exempt and not is_seen


def _default_queue(submission: Submission, state: ClusterState) -> str:
    """A LocalQueue of this name takes every job of its namespace that names none."""
    is_there = (submission.namespace, DEFAULT_QUEUE) in state.local_queues
    return DEFAULT_QUEUE if is_there and state.facts.version >= DEFAULTING_SINCE else ""


def _without_label(submission: Submission, state: ClusterState) -> Objection:
    settings = state.facts.settings
    known = sorted(name for namespace, name in state.local_queues if namespace == submission.namespace)
    there = f"; namespace {submission.namespace} has {', '.join(known)}" if known else ""
    remedy = f"label it {QUEUE_LABEL}: NAME{there}"
    if settings.manages_unlabelled and is_selected(settings.namespaces, submission.namespace, state):
        problem = "it names no queue, and Kueue holds such jobs back (manageJobsWithoutQueueName)"
        return Objection(Verdict.NEVER, Reason.NO_LABEL, problem, remedy)
    problem = "it names no queue: Kueue lets it run at once, past every quota"
    return Objection(Verdict.NOT_QUEUED, Reason.NO_LABEL, problem, remedy)


def _admit(submission: Submission, state: ClusterState) -> Answer:
    """What the queue of one cluster says, wherever it then runs."""
    local = state.local_queues.get((submission.namespace, submission.queue))
    if local is None:
        return Answer(state.name, submission.queue, objections=(_no_local_queue(submission, state),))
    name = as_text(at(local, "spec", "clusterQueue"))
    queue = None if name in state.facts.unknown_queues else state.queues.get(name)
    if queue is None:
        return Answer(state.name, submission.queue, name, (_no_cluster_queue(name, state),))
    found = fit(submission, state, queue)
    objections = (*_closed(local, queue), *_unfit_for(submission, state, queue), *filter(None, [found.objection]))
    notes = tuple(notes_on(submission, state, queue, found))
    return Answer(state.name, submission.queue, name, objections, found.assignments, notes)


def _no_local_queue(submission: Submission, state: ClusterState) -> Objection:
    names = [name for namespace, name in state.local_queues if namespace == submission.namespace]
    where = f"{submission.namespace}/{submission.queue}"
    problem = f"there is no LocalQueue {where}{suggest(submission.queue, names)}"
    remedy = f"namespace {submission.namespace} has {', '.join(sorted(names))}" if names else "add a Tenant for it"
    return Objection(Verdict.NEVER, Reason.NO_LOCAL_QUEUE, problem, remedy)


def _no_cluster_queue(name: str, state: ClusterState) -> Objection:
    if name in state.facts.unknown_queues:
        problem = f"ClusterQueue {name} is made of pools, and nobody listened to them"
        return Objection(Verdict.UNKNOWN, Reason.NOT_SEEN, problem, "look at the clusters with --live")
    problem = f"its LocalQueue leads to ClusterQueue {name}, which does not exist"
    return Objection(Verdict.NEVER, Reason.NO_CLUSTER_QUEUE, problem, "add the Queue, or lead the LocalQueue elsewhere")


def _closed(local: Manifest, queue: Manifest) -> Iterator[Objection]:
    for what, manifest in (("LocalQueue", local), ("ClusterQueue", queue)):
        policy = as_text(at(manifest, "spec", "stopPolicy"))
        if policy not in ("", "None"):
            problem = f"{what} {at(manifest, 'metadata', 'name')} is stopped ({policy})"
            yield Objection(Verdict.WAITS, Reason.STOPPED, problem, "it waits until stopPolicy is None again")
    yield from inactive("ClusterQueue", queue)


def _unfit_for(submission: Submission, state: ClusterState, queue: Manifest) -> Iterator[Objection]:
    yield from _namespace(submission, state, queue)
    yield from _priority(submission, state)
    pending = at(queue, "status", "pendingWorkloads")
    if at(queue, "spec", "queueingStrategy") == "StrictFIFO" and isinstance(pending, int) and pending:
        problem = f"{pending} others wait before it in a queue that keeps their order (StrictFIFO)"
        yield Objection(Verdict.WAITS, Reason.NO_ROOM, problem, "it starts when they have started")


def _namespace(submission: Submission, state: ClusterState, queue: Manifest) -> Iterator[Objection]:
    name, namespace = at(queue, "metadata", "name"), submission.namespace
    if state.facts.is_live and namespace not in state.namespaces:
        yield Objection(Verdict.NEVER, Reason.NO_NAMESPACE, f"there is no namespace {namespace}", "create it")
        return
    selected = is_selected(at(queue, "spec", "namespaceSelector"), namespace, state)
    if selected is None:
        problem = f"ClusterQueue {name} selects namespaces by labels, and the fleet does not hold {namespace}"
        yield Objection(Verdict.UNKNOWN, Reason.NOT_SEEN, problem, "look at the clusters with --live")
    if selected is False:
        problem = f"ClusterQueue {name} does not select namespace {namespace}"
        remedy = "label the namespace, or widen the queue's namespaceSelector"
        yield Objection(Verdict.NEVER, Reason.NOT_SELECTED, problem, remedy)
    is_obeyed = submission.framework == POD or state.facts.version >= SELECTING_SINCE
    if is_obeyed and is_selected(state.facts.settings.namespaces, namespace, state) is None:
        problem = f"managedJobsNamespaceSelector asks for labels, and the fleet does not hold {namespace}"
        yield Objection(Verdict.UNKNOWN, Reason.NOT_SEEN, problem, "look at the clusters with --live")


def _priority(submission: Submission, state: ClusterState) -> Iterator[Objection]:
    name = submission.priority_class
    if name and name not in state.priorities:
        problem = f"without a WorkloadPriorityClass {name} Kueue makes no Workload{suggest(name, state.priorities)}"
        yield Objection(Verdict.NEVER, Reason.NO_PRIORITY_CLASS, problem, "add it, or name another")
    known = state.facts.pod_priorities
    of_pods = "" if name else priority_of_pods(submission)
    if of_pods and known is not None and of_pods not in known | SYSTEM_PRIORITIES:
        problem = f"its pods name PriorityClass {of_pods}, which does not exist{suggest(of_pods, known)}"
        yield Objection(Verdict.NEVER, Reason.NO_PRIORITY_CLASS, problem, "create it, or name another")
