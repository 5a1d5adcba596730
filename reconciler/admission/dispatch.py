"""The part of MultiKueue: to which workers a queue dispatches its jobs, and which jobs it cannot dispatch."""

from collections.abc import Iterable, Iterator

from reconciler.admission.jobs import DEPLOYMENT, GATED_PODS, POD
from reconciler.admission.model import AdmissionIssue, AdmissionReason, Answer, Assignment, Submission, Verdict
from reconciler.admission.state import ClusterState
from reconciler.admission.templates import LEAST
from reconciler.kueue.frameworks import FRAMEWORKS
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.settings import CLUSTER_LABEL

CARRIER = "kubestellar.io/ks-kueue"
KINDS = "add the kind to the Fleet's spec.kubestellar.kinds"


def sending_of(state: ClusterState, queue: str) -> tuple[ClusterName, ...] | None:
    """Return the workers of a queue; None if its jobs run on the cluster itself."""
    for check in as_list(at(state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks")):
        found = state.checks.get(as_text(at(check, "name")))
        if at(found, "spec", "controllerName") == MULTIKUEUE_CONTROLLER:
            config = state.multikueue_configs.get(as_text(at(found, "spec", "parameters", "name")))
            return tuple(ClusterName(as_text(name)) for name in as_list(at(config, "spec", "clusters")))
    return None


def inactive(kind: str, manifest: Manifest | None) -> Iterator[AdmissionIssue]:
    """Return the issues in the status of a manifest; its spec shows whether it was stopped."""
    for condition in as_list(at(manifest, "status", "conditions")):
        is_off = at(condition, "type") == "Active" and at(condition, "status") == "False"
        if is_off and at(condition, "reason") != "Stopped":
            problem = f"{kind} {at(manifest, 'metadata', 'name')} is inactive: {at(condition, 'message')}"
            yield AdmissionIssue(Verdict.WAITS, AdmissionReason.INACTIVE, problem, "kfleet status shows how to fix it")


def is_downsynced(state: ClusterState, queue: str) -> bool:
    """Whether KubeStellar dispatches the jobs of a queue to a worker, where no other queue is involved."""
    checks = as_list(at(state.queues.get(queue), "spec", "admissionChecksStrategy", "admissionChecks"))
    known = (state.checks.get(as_text(at(check, "name"))) for check in checks)
    return any(at(check, "spec", "controllerName") == CARRIER for check in known)


def way_to_workers(submission: Submission, state: ClusterState) -> Iterator[AdmissionIssue]:
    """Deployments are dispatched as pods."""
    if submission.framework not in FRAMEWORKS and submission.framework != DEPLOYMENT:
        problem = f"MultiKueue cannot dispatch a {submission.kind}"
        yield AdmissionIssue(
            Verdict.NEVER, AdmissionReason.NOT_SENT, problem, "use a queue without dispatch, or submit it on a worker"
        )
    yield from kind_not_downsynced(submission)
    if submission.managed_by not in ("", MULTIKUEUE_CONTROLLER):
        problem = f"spec.managedBy is {submission.managed_by}, so MultiKueue on {state.name} ignores it"
        yield AdmissionIssue(
            Verdict.NEVER, AdmissionReason.NOT_SENT, problem, f"remove it, Kueue sets it to {MULTIKUEUE_CONTROLLER}"
        )


def without_flavor(answer: Answer) -> Iterator[AdmissionIssue]:
    """A workload without a flavor gets no AdmissionCheck, so MultiKueue never learns of it, and no pod starts."""
    if answer.assignments and not any(one.flavors for one in answer.assignments):
        problem = (
            f"it requests no resource that queue {answer.cluster_queue} covers: Kueue would admit it on "
            f"{answer.cluster}, but MultiKueue would send it to no worker"
        )
        remedy = "request cpu or another resource that the queue covers"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SENT, problem, remedy)


def not_downsynced(
    submission: Submission, assignments: Iterable[Assignment], downsynced: frozenset[str]
) -> Iterator[AdmissionIssue]:
    """Return why it would get quota on the manager and never leave it, which would block the quota forever."""
    if submission.framework not in downsynced:
        what = "plain pods" if submission.framework == POD else f"a {submission.kind}"
        other = "make it a Job" if submission.framework in GATED_PODS else KINDS
        problem, remedy = f"KubeStellar cannot downsync {what}", f"use a queue with another dispatch, or {other}"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SENT, problem, remedy)
    counts = {one.name: one.count for one in submission.pod_sets}
    for one in assignments:
        if one.count < counts.get(one.pod_set, 0):
            problem = (
                f"Kueue would admit {one.count} of {counts[one.pod_set]} pods, but KubeStellar downsyncs all or none"
            )
            yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SENT, problem, f"remove the annotation {LEAST}")


def brings_its_cluster(submission: Submission) -> Iterator[AdmissionIssue]:
    """Return that a job names its cluster itself: kfleet sets the label when the job has quota, and not before."""
    if submission.placed_on:
        problem = (
            f"it carries the label {CLUSTER_LABEL}: {submission.placed_on}, which says where a job with quota runs: "
            "the API server refuses it, or runs it without quota where it has no ValidatingAdmissionPolicies"
        )
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SENT, problem, "remove the label: kfleet sets it")


def kind_not_downsynced(submission: Submission) -> Iterator[AdmissionIssue]:
    """Return what a job needs and would not be dispatched with it."""
    if submission.cannot_be_sent:
        problem = f"the queue dispatches its jobs to workers: {submission.cannot_be_sent}"
        remedy = f"use a queue without dispatch, or submit the {submission.kind} on a worker"
        yield AdmissionIssue(Verdict.NEVER, AdmissionReason.NOT_SENT, problem, remedy)
