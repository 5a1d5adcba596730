"""What MultiKueue adds: which workers a queue sends its jobs to, and which jobs it cannot send."""

from collections.abc import Iterator

from reconciler.checking.kinds import DEPLOYMENT
from reconciler.checking.model import Objection, Reason, Submission, Verdict
from reconciler.checking.state import ClusterState
from reconciler.kueue.frameworks import FRAMEWORKS
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName

CONTROLLER = f"{GROUP}/multikueue"
CARRIER = "kubestellar.io/ks-kueue"


def sending_of(state: ClusterState, queue: str) -> tuple[ClusterName, ...] | None:
    """The workers of a queue; None where its jobs run on the cluster itself."""
    for check in as_list(at(state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks")):
        found = state.checks.get(as_text(at(check, "name")))
        if at(found, "spec", "controllerName") == CONTROLLER:
            config = state.multikueue_configs.get(as_text(at(found, "spec", "parameters", "name")))
            return tuple(ClusterName(as_text(name)) for name in as_list(at(config, "spec", "clusters")))
    return None


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


def stays_behind(submission: Submission) -> Iterator[Objection]:
    """What a job needs and would not go with it."""
    if submission.cannot_be_sent:
        problem = f"the queue sends its jobs to workers: {submission.cannot_be_sent}"
        remedy = f"use a queue without dispatch, or hand the {submission.kind} to a worker"
        yield Objection(Verdict.NEVER, Reason.NOT_SENT, problem, remedy)
