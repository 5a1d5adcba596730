"""What MultiKueue adds: which workers a queue sends its jobs to, and which jobs it cannot send."""

from collections.abc import Iterable, Iterator

from reconciler.checking.kinds import DEPLOYMENT, GATED_PODS, POD
from reconciler.checking.model import Assignment, Objection, Reason, Submission, Verdict
from reconciler.checking.state import ClusterState
from reconciler.checking.templates import LEAST
from reconciler.kueue.frameworks import FRAMEWORKS
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName, Manifest

CONTROLLER = f"{GROUP}/multikueue"
CARRIER = "kubestellar.io/ks-kueue"
KINDS = "name the kind in the Fleet's spec.kubestellar.kinds"


def sending_of(state: ClusterState, queue: str) -> tuple[ClusterName, ...] | None:
    """The workers of a queue; None where its jobs run on the cluster itself."""
    for check in as_list(at(state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks")):
        found = state.checks.get(as_text(at(check, "name")))
        if at(found, "spec", "controllerName") == CONTROLLER:
            config = state.multikueue_configs.get(as_text(at(found, "spec", "parameters", "name")))
            return tuple(ClusterName(as_text(name)) for name in as_list(at(config, "spec", "clusters")))
    return None


def inactive(kind: str, manifest: Manifest | None) -> Iterator[Objection]:
    """What the manifest says that keeps it from its work; that somebody stopped it is told by its spec."""
    for condition in as_list(at(manifest, "status", "conditions")):
        is_off = at(condition, "type") == "Active" and at(condition, "status") == "False"
        if is_off and at(condition, "reason") != "Stopped":
            problem = f"{kind} {at(manifest, 'metadata', 'name')} is inactive: {at(condition, 'message')}"
            yield Objection(Verdict.WAITS, Reason.INACTIVE, problem, "kfleet status says what to do")


def is_carried(state: ClusterState, queue: str) -> bool:
    """Whether KubeStellar takes the jobs of a queue to a worker, where no queue asks again."""
    checks = as_list(at(state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks"))
    known = (state.checks.get(as_text(at(check, "name"))) for check in checks)
    return any(at(check, "spec", "controllerName") == CARRIER for check in known)


def way_to_workers(submission: Submission, state: ClusterState) -> Iterator[Objection]:
    """Deployments go as the pods that they are made of."""
    if submission.framework not in FRAMEWORKS and submission.framework != DEPLOYMENT:
        problem = f"MultiKueue cannot send a {submission.kind}"
        yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, "use a queue without dispatch, or hand it to a worker")
    yield from stays_behind(submission)
    if submission.managed_by not in ("", CONTROLLER):
        problem = f"spec.managedBy is {submission.managed_by}, so that MultiKueue on {state.name} leaves it alone"
        yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, f"leave it out, Kueue sets it to {CONTROLLER}")


def not_carried(
    submission: Submission, assignments: Iterable[Assignment], carried: frozenset[str]
) -> Iterator[Objection]:
    """What has quota on the manager and would never leave it: it would hold the quota for ever."""
    if submission.framework not in carried:
        what = "plain pods" if submission.framework == POD else f"a {submission.kind}"
        other = "make it a Job" if submission.framework in GATED_PODS else KINDS
        problem, remedy = f"KubeStellar cannot carry {what}", f"use a queue with another dispatch, or {other}"
        yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, remedy)
    counts = {one.name: one.count for one in submission.pod_sets}
    for one in assignments:
        if one.count < counts.get(one.pod_set, 0):
            problem = (
                f"Kueue would admit {one.count} of {counts[one.pod_set]} pods, and KubeStellar carries all or none"
            )
            yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, f"remove the annotation {LEAST}")


def stays_behind(submission: Submission) -> Iterator[Objection]:
    """What a job needs and would not go with it."""
    if submission.cannot_be_sent:
        problem = f"the queue sends its jobs to workers: {submission.cannot_be_sent}"
        remedy = f"use a queue without dispatch, or hand the {submission.kind} to a worker"
        yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, remedy)
