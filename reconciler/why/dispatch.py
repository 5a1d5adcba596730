"""Where MultiKueue or KubeStellar sent a job, what each worker says about it, and whether an admitted job runs.

A reservation on the manager that no worker can serve blocks the quota of others until its job is deleted.
"""

from collections.abc import Iterable, Iterator

from reconciler.admission.dispatch import CARRIER, sending_of
from reconciler.kubestellar.jobs import current_copy, read_job, read_progress
from reconciler.kubestellar.model import Decision, Progress, Verb, read_end, read_foreign, read_placed
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at
from reconciler.kueue.workloads import has_condition, usage_of
from reconciler.objects import ClusterName, Manifest, group_of, ref_of
from reconciler.spec.settings import CLUSTER_LABEL, JOB, KNOWN_KINDS, DownsyncKind
from reconciler.text import counted, one_line
from reconciler.why.index import (
    ClusterIndex,
    Stories,
    address_of,
    condition_of,
    is_active,
    label_of,
    message_of,
    open_checks,
    prebuilt_of,
    title_of,
    uid_of,
)
from reconciler.why.model import State, StoryReason, WorkerAnswer
from reconciler.why.queue import inactive_text, waiting_reason

ENDS = {"Complete": State.FINISHED, "Completed": State.FINISHED, "Succeeded": State.FINISHED, "Failed": State.FAILED}
FAILURES = ("Failed", "JobFailed")
MOST_WORKERS = 3
NO_FLAVOR = (
    "Kueue admitted it on {manager}, but it requests no resource that queue {queue} covers, so MultiKueue sends it to "
    "no worker and no pod ever starts; request cpu or another covered resource"
)


def finished_reason(index: ClusterIndex, workload: Manifest) -> StoryReason:
    finished = condition_of(workload, "Finished")
    is_failed = as_text(finished.get("reason")) in FAILURES
    said = one_line(as_text(finished.get("message")))
    when = f" at {finished['lastTransitionTime']}" if finished.get("lastTransitionTime") else ""
    where = as_text(at(workload, "status", "clusterName")) or index.name
    return StoryReason(
        State.FAILED if is_failed else State.FINISHED, f"on {where}{when}" + (f"; {said}" if said else "")
    )


def ended_job(job: Manifest | None) -> State | None:
    """Return how a job ended by its own conditions; None if it did not."""
    for one in map(as_map, as_list(at(job, "status", "conditions"))):
        if one.get("status") == "True" and one.get("type") in ENDS:
            return ENDS[as_text(one.get("type"))]
    return None


def running_reason(index: ClusterIndex, workload: Manifest, how: str = "") -> StoryReason:
    """Return the state of an admitted workload on the cluster where its pods are."""
    since = as_text(condition_of(workload, "Admitted").get("lastTransitionTime"))
    where = f"on {index.name}" + (f", {how}" if how else "") + (f", admitted at {since}" if since else "")
    job = index.job_of(workload)
    if stuck := stuck_pod(index.pods_of_job.get(uid_of(job), ()) if job else ()):
        return StoryReason(State.ADMITTED, f"{where}, but {stuck}")
    if _is_running(job, workload):
        return StoryReason(State.RUNS, where)
    ready = condition_of(workload, "PodsReady")
    said = f"; {one_line(as_text(ready.get('message')))}" if ready.get("status") == "False" else ""
    return StoryReason(State.ADMITTED, f"{where}; its pods are not all running yet{said}")


def _is_running(job: Manifest | None, workload: Manifest) -> bool:
    """A job of a kind that reports no ready pods counts as running when Kueue saw its pods ready, or does not watch."""
    if condition_of(workload, "PodsReady").get("status") == "True":
        return True
    ready = at(job, "status", "ready")
    if isinstance(ready, int):
        return ready > 0
    return job is None or not (job.get("kind") == "Job" or condition_of(workload, "PodsReady"))


def stuck_pod(pods: Iterable[Manifest]) -> str:
    """Return why pods do not start, by the first one that the scheduler could not place."""
    stuck = [pod for pod in pods if at(pod, "status", "phase") == "Pending" and unschedulable(pod)]
    if not stuck:
        return ""
    what = f"pod {at(stuck[0], 'metadata', 'name')}" if len(stuck) == 1 else counted(len(stuck), "pod")
    verb = "is" if len(stuck) == 1 else "are"
    return f"{what} {verb} unschedulable: {unschedulable(stuck[0])}"


def unschedulable(pod: Manifest) -> str:
    scheduled = condition_of(pod, "PodScheduled")
    return one_line(as_text(scheduled.get("message"))) if scheduled.get("status") == "False" else ""


def way_of(index: ClusterIndex, queue: str) -> str:
    """Return the dispatch of a ClusterQueue: none, multikueue or kubestellar."""
    names = {MULTIKUEUE_CONTROLLER: "multikueue", CARRIER: "kubestellar"}
    found = (index.state.checks.get(as_text(at(one, "name"))) for one in _checks_of(index, queue))
    controllers = (as_text(at(one, "spec", "controllerName")) for one in found)
    return next((names[one] for one in controllers if one in names), "none")


def _checks_of(index: ClusterIndex, queue: str) -> list[Manifest]:
    strategy = at(index.state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks")
    return [as_map(one) for one in as_list(strategy)]


def controller_of(index: ClusterIndex, check: str) -> str:
    return as_text(at(index.state.checks.get(check), "spec", "controllerName"))


def checks_reason(index: ClusterIndex, workload: Manifest) -> StoryReason | None:
    """Return the open checks of a workload with quota, besides those that dispatch it; None if there is none."""
    names = (MULTIKUEUE_CONTROLLER, CARRIER)
    states = [one for one in open_checks(workload) if controller_of(index, as_text(one.get("name"))) not in names]
    if not states:
        return None
    is_rejected = any(one.get("state") == "Rejected" for one in states)
    text = " and ".join(
        f"check {one.get('name')} is {one.get('state')}{_said(one.get('message'))}{_inactive_check(index, one)}"
        for one in states
    )
    where = f"it has quota in queue {index.queue_of(workload)} on {index.name}"
    return StoryReason(State.NEVER if is_rejected else State.WAITS, f"{where}; {text}")


def _said(message: object) -> str:
    text = one_line(as_text(message))
    return f": {text}" if text else ""


def _inactive_check(index: ClusterIndex, state: Manifest) -> str:
    text = inactive_text("AdmissionCheck", index.state.checks.get(as_text(state.get("name"))))
    return f" ({text})" if text else ""


def multikueue_reason(stories: Stories, index: ClusterIndex, workload: Manifest) -> StoryReason:
    """Return the reason of a workload with quota on the manager, in a queue that MultiKueue dispatches."""
    if winner := as_text(at(workload, "status", "clusterName")):
        return _on_worker(stories, index, workload, ClusterName(winner))
    own = [one for one in _mk_states(index, workload) if one.get("state") in ("Rejected", "Retry")]
    if own and own[0].get("state") == "Rejected":
        return StoryReason(State.NEVER, f"MultiKueue rejects it{_said(own[0].get('message'))}")
    if has_condition(workload, "Admitted") and not _mk_states(index, workload):
        text = NO_FLAVOR.format(manager=index.name, queue=index.queue_of(workload))
        return StoryReason(State.NEVER, text)
    answers = worker_answers(stories, index, workload)
    states = {answer.reason.state for answer in answers}
    said = "; ".join(f"{one.cluster}: {one.reason.text}" for one in answers[:MOST_WORKERS])
    more = f"; and {len(answers) - MOST_WORKERS} more workers" if len(answers) > MOST_WORKERS else ""
    state = State.NEVER if states and states <= {State.NEVER} else State.WAITS
    again = f"MultiKueue tries again{_said(own[0].get('message'))}; " if own else ""
    where = f"it has quota on {index.name}, but no worker has admitted it"
    return StoryReason(
        state, f"{again}{where}; {said}{more}" if answers else f"{again}{where}: the queue has no workers"
    )


def _mk_states(index: ClusterIndex, workload: Manifest) -> list[Manifest]:
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    return [one for one in states if controller_of(index, as_text(one.get("name"))) == MULTIKUEUE_CONTROLLER]


def _on_worker(stories: Stories, index: ClusterIndex, workload: Manifest, name: ClusterName) -> StoryReason:
    worker = stories.clusters.get(name)
    if worker is None:
        return StoryReason(
            State.UNKNOWN, f"MultiKueue sent it to {name}, which was not observed ({stories.lost(name)})"
        )
    copy = worker.workloads.get(address_of(workload))
    if copy is None:
        cut_off = inactive_text("MultiKueueCluster", index.state.multikueue_clusters.get(name))
        text = cut_off or "its copy is not there"
        return StoryReason(State.WAITS, f"MultiKueue sent it to {name}, but {text}")
    if has_condition(copy, "Finished"):
        return finished_reason(worker, copy)
    if has_condition(copy, "Admitted"):
        return running_reason(worker, copy, "sent by MultiKueue")
    reason = waiting_reason(worker, copy)
    return StoryReason(reason.state, f"MultiKueue sent it to {name}, where it waits again: {reason.text}")


def worker_answers(stories: Stories, index: ClusterIndex, workload: Manifest) -> tuple[WorkerAnswer, ...]:
    """Return what each worker of the queue says. One that was not observed says unknown, and not no."""
    nominated = {as_text(one) for one in as_list(at(workload, "status", "nominatedClusterNames"))}
    workers = sending_of(index.state, index.queue_of(workload)) or ()
    return tuple(_answer(stories, index, workload, name, is_nominated=name in nominated) for name in workers)


def _answer(
    stories: Stories, index: ClusterIndex, workload: Manifest, name: ClusterName, *, is_nominated: bool
) -> WorkerAnswer:
    worker = stories.clusters.get(name)
    cut_off = inactive_text("MultiKueueCluster", index.state.multikueue_clusters.get(name))
    if worker is None:
        text = f"was not observed ({stories.lost(name)})" + (f"; {cut_off}" if cut_off else "")
        return WorkerAnswer(name, StoryReason(State.UNKNOWN, text))
    copy = worker.workloads.get(address_of(workload))
    if copy is None:
        return WorkerAnswer(name, _no_copy(worker, workload, cut_off, is_nominated=is_nominated))
    if label_of(copy, ORIGIN) == "":
        text = (
            f"a Workload {'/'.join(address_of(copy))} of its own is already there, so MultiKueue cannot send this one"
        )
        return WorkerAnswer(name, StoryReason(State.NEVER, text))
    message = message_of(copy, "QuotaReserved")
    return WorkerAnswer(name, _copy_reason(worker, copy), message)


def _copy_reason(worker: ClusterIndex, copy: Manifest) -> StoryReason:
    if has_condition(copy, "Finished"):
        return finished_reason(worker, copy)
    if has_condition(copy, "Admitted"):
        return StoryReason(State.ADMITTED, "admitted there just now")
    if has_condition(copy, "QuotaReserved"):
        return checks_reason(worker, copy) or StoryReason(State.WAITS, "it has quota there, and is admitted next")
    return waiting_reason(worker, copy)


def _no_copy(worker: ClusterIndex, workload: Manifest, cut_off: str, *, is_nominated: bool) -> StoryReason:
    namespace = address_of(workload)[0]
    if cut_off:
        return StoryReason(State.WAITS, cut_off)
    if worker.seen.has("", "Namespace") and namespace not in worker.state.namespaces:
        return StoryReason(State.NEVER, f"there is no namespace {namespace} on {worker.name}")
    if is_nominated:
        return StoryReason(State.WAITS, "MultiKueue has not copied it there yet")
    return StoryReason(State.WAITS, "MultiKueue has not nominated this worker yet")


def kubestellar_reason(
    stories: Stories, index: ClusterIndex, workload: Manifest, decision: Decision | None = None
) -> StoryReason:
    """Return the reason of a workload with quota on the manager, in a queue that KubeStellar dispatches.

    `decision` is what kfleet would do now. Without it, the message that kfleet recorded in its check is used.
    """
    job = index.job_of(workload)
    end = read_end(job)
    if end is not None:
        state = State.FAILED if end.progress is Progress.FAILED else State.FINISHED
        return StoryReason(state, f"it ended on {end.cluster} ({end.progress})")
    if placed := read_placed(job):
        return _placed_reason(stories, job or {}, placed.cluster, decision)
    if foreign := read_foreign(job):
        text = f"it has the label {CLUSTER_LABEL}={foreign}, which only kfleet may set; remove the label"
        return StoryReason(State.NEVER, text)
    problem = decision.job.preflight_issue if decision else _issue(stories, index, job, workload)
    if problem:
        return StoryReason(State.NEVER if "waits for check" not in problem else State.WAITS, problem)
    if decision is not None:
        verb = f"kfleet places it on {decision.cluster} next: " if decision.verb is Verb.PLACE else ""
        return StoryReason(State.WAITS, f"{verb}{decision.why}")
    note = next((as_text(one.get("message")) for one in _ks_states(index, workload)), "")
    return StoryReason(State.WAITS, one_line(note) or "it has quota, and kfleet has not placed it yet")


def _ks_states(index: ClusterIndex, workload: Manifest) -> Iterator[Manifest]:
    for one in map(as_map, as_list(at(workload, "status", "admissionChecks"))):
        if controller_of(index, as_text(one.get("name"))) == CARRIER:
            yield one


def _issue(stories: Stories, index: ClusterIndex, job: Manifest | None, workload: Manifest) -> str:
    if stories.spec is None:
        return ""
    ref = ref_of(index.name, job or workload)
    kind = _kind_of(stories, job)
    return read_job(stories.spec, ref, job if kind else None, workload).preflight_issue


def _kind_of(stories: Stories, job: Manifest | None) -> DownsyncKind | None:
    kinds = stories.spec.fleet.kubestellar.kinds if stories.spec else KNOWN_KINDS
    key = (group_of(job), as_text(job.get("kind"))) if job else ("", "")
    return next((one for one in kinds if (one.group, one.kind) == key), None)


def _placed_reason(stories: Stories, job: Manifest, cluster: ClusterName, decision: Decision | None) -> StoryReason:
    why = f"; {decision.why}" if decision and decision.verb in (Verb.MOVE, Verb.WITHDRAW) else ""
    worker = stories.clusters.get(cluster)
    if worker is None:
        return StoryReason(
            State.UNKNOWN, f"kfleet placed it on {cluster}, which was not observed ({stories.lost(cluster)})"
        )
    progress = decision.job.progress if decision else _progress(stories, worker, job)
    where = f"on {cluster}, placed by kfleet and downsynced by KubeStellar"
    if progress is Progress.RUNNING:
        return StoryReason(State.RUNS, f"{where}{why}")
    if progress.is_over:
        return StoryReason(State.FAILED if progress is Progress.FAILED else State.FINISHED, where)
    has_copy = _copy_on(worker, job) is not None
    text = "its pods are not all ready" if has_copy else "its copy has not arrived there yet"
    return StoryReason(State.ADMITTED, f"{where}; {text}{why}")


def _copy_on(worker: ClusterIndex, job: Manifest) -> Manifest | None:
    found = (one for one in worker.jobs.get(address_of(job), ()) if one.get("kind") == job.get("kind"))
    return current_copy(job, next(found, None))


def _progress(stories: Stories, worker: ClusterIndex, job: Manifest) -> Progress:
    pods = at(job, "spec", "parallelism")
    return read_progress(_kind_of(stories, job) or JOB, _copy_on(worker, job), pods if isinstance(pods, int) else 1)


def is_copy(stories: Stories, index: ClusterIndex, job: Manifest | None, workload: Manifest | None) -> bool:
    """Whether an object on a worker belongs to a job of the manager, whose story includes it."""
    manager = stories.manager
    if manager is None or manager.name == index.name:
        return False
    if workload is not None and label_of(workload, ORIGIN) and address_of(workload) in manager.workloads:
        return True
    if job is not None and (prebuilt_of(job) or label_of(job, CLUSTER_LABEL)):
        return any(one.get("kind") == job.get("kind") for one in manager.jobs.get(address_of(job), ()))
    return False


def unserved_reservations(stories: Stories) -> Iterator[str]:
    """One sentence per job that holds quota on the manager and never starts, because each worker is too small for it.

    A job that waits until a worker has room is not one of them, nor is one of a worker that was not observed.
    """
    manager = stories.manager
    for workload in manager.workloads.values() if manager else ():
        is_holding = has_condition(workload, "QuotaReserved") and not has_condition(workload, "Finished")
        if manager is None or not is_holding or not is_active(workload):
            continue
        if way_of(manager, manager.queue_of(workload)) != "multikueue":
            continue
        reason = multikueue_reason(stories, manager, workload)
        if reason.state is State.NEVER:
            yield _sentence(manager, workload)


def _sentence(manager: ClusterIndex, workload: Manifest) -> str:
    title = title_of(manager.job_of(workload), workload)
    held = ", ".join(
        f"{amount} {resource} of flavor {flavor}"
        for flavor, amounts in sorted(usage_of(workload).items())
        for resource, amount in sorted(amounts.items())
    )
    what = f"holds {held} of queue {manager.queue_of(workload)}" if held else "is admitted"
    return f"{title} {what}, and no worker can ever run it: kfleet why {title.partition('/')[2]}"
