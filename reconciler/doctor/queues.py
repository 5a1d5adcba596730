"""What is wrong or risky with queues, and the jobs that wait in them for ever."""

from collections.abc import Iterator, Mapping

from reconciler.doctor.model import Diagnostic, DoctorFacts, Urgency
from reconciler.kueue.health import explain
from reconciler.kueue.kinds import GROUP, MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import condition_of, has_condition
from reconciler.objects import Manifest
from reconciler.snapshot.model import ClusterObjects
from reconciler.text import counted, one_line, suggest
from reconciler.why.index import ClusterIndex, build_stories, is_active, is_pending, label_of
from reconciler.why.model import State
from reconciler.why.queue import blocked_reason, scheduler_reason
from reconciler.why.remedies import shortage

_WITH_CONDITION = ("AdmissionCheck", "MultiKueueCluster", "ClusterQueue", "LocalQueue")
_ON_PURPOSE = frozenset(("Stopped", "Terminating", "SomeActiveClusters"))
# These only repeat what is said about the ClusterQueue.
_REPEATED = frozenset(("ClusterQueueIsInactive", "ClusterQueueDoesNotExist"))
_MOST_NAMED = 3
ORIGIN_LABEL = "kueue.x-k8s.io/multikueue-origin"


def name_of(manifest: Manifest) -> str:
    metadata = as_map(manifest.get("metadata"))
    return "/".join(part for part in (as_text(metadata.get("namespace")), as_text(metadata.get("name"))) if part)


def check_conditions(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        for kind in _WITH_CONDITION:
            for live in cluster.of(GROUP, kind):
                yield from _check_condition(cluster, kind, live)


def _check_condition(cluster: ClusterObjects, kind: str, live: Manifest) -> Iterator[Diagnostic]:
    active = condition_of(live, "Active")
    reason, message = as_text(active.get("reason")), one_line(as_text(active.get("message")))
    known = explain(kind, reason)
    subject = f"{kind}/{name_of(live)}"
    if not active:
        yield Diagnostic(
            code="not-processed",
            severity=Urgency.WARNING,
            cluster=cluster.name,
            subject=subject,
            message="has no condition: no controller has looked at it",
            remedy=(
                f"see whether the controller {at(live, 'spec', 'controllerName')} runs"
                if kind == "AdmissionCheck"
                else "see whether Kueue's controller runs"
            ),
        )
    elif reason not in _REPEATED and not (active.get("status") == "True" and (known is None or known.is_healthy)):
        yield Diagnostic(
            code=f"{_CODES[kind]}-inactive",
            severity=Urgency.WARNING if reason in _ON_PURPOSE else Urgency.ERROR,
            cluster=cluster.name,
            subject=subject,
            message=f"{reason}: {known.meaning if known else message}" + (f" ({message})" if known and message else ""),
            remedy=known.remedy if known else "",
        )


_CODES: Mapping[str, str] = {
    "AdmissionCheck": "check",
    "MultiKueueCluster": "worker",
    "ClusterQueue": "queue",
    "LocalQueue": "local-queue",
}


def check_local_queues(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for cluster in facts.clusters:
        if not cluster.has(GROUP, "ClusterQueue"):
            continue
        queues = {name_of(live) for live in cluster.of(GROUP, "ClusterQueue")}
        for live in cluster.of(GROUP, "LocalQueue"):
            queue = as_text(at(live, "spec", "clusterQueue"))
            if queue not in queues:
                waiting = at(live, "status", "pendingWorkloads") or 0
                yield Diagnostic(
                    code="lost-local-queue",
                    severity=Urgency.ERROR,
                    cluster=cluster.name,
                    subject=f"LocalQueue/{name_of(live)}",
                    message=f"leads to ClusterQueue {queue}, which does not exist{suggest(queue, queues)}"
                    + (f"; {counted(int(waiting), 'job')} wait in it" if waiting else ""),
                    remedy=f"create ClusterQueue {queue}, or delete the LocalQueue: its queue cannot be changed",
                )


def check_limits(facts: DoctorFacts) -> Iterator[Diagnostic]:
    """Kueue's webhook refuses such a queue today; one that is older than the webhook is still there."""
    for cluster in facts.clusters:
        for live in cluster.of(GROUP, "ClusterQueue"):
            spec = as_map(live.get("spec"))
            if spec.get("cohortName") or spec.get("cohort"):
                continue
            if limited := [*_limited(spec)]:
                yield Diagnostic(
                    code="limit-without-cohort",
                    severity=Urgency.WARNING,
                    cluster=cluster.name,
                    subject=f"ClusterQueue/{name_of(live)}",
                    message=f"limits borrowing or lending of {', '.join(limited)}, and is in no cohort",
                    remedy="remove borrowingLimit and lendingLimit, or set cohortName",
                )


def _limited(spec: Manifest) -> Iterator[str]:
    for group in as_list(spec.get("resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for resource in as_list(at(flavor, "resources")):
                if {"borrowingLimit", "lendingLimit"} & as_map(resource).keys():
                    yield f"{at(resource, 'name')} in {at(flavor, 'name')}"


def check_jobs(facts: DoctorFacts) -> Iterator[Diagnostic]:
    """Jobs that wait for ever, by the arithmetic and the messages that `kfleet why` uses; together per queue."""
    for index in build_stories(facts.seen.objects).clusters.values():
        reasons: dict[tuple[str, str], list[str]] = {}
        for workload in index.workloads.values():
            if reason := _never(index, workload):
                queue = index.queue_of(workload)
                subject = f"ClusterQueue/{queue}" if queue else f"LocalQueue/{_local_queue(workload)}"
                reasons.setdefault((subject, reason), []).append(name_of(workload))
        for (subject, reason), names in reasons.items():
            shown = ", ".join(names[:_MOST_NAMED])
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            yield Diagnostic(
                code="job-never-admitted",
                severity=Urgency.ERROR,
                cluster=index.name,
                subject=subject,
                message=f"{counted(len(names), 'job')} can never be admitted ({shown}{more}): {reason}",
                remedy="change the job, or give the queue what it lacks",
            )


def _local_queue(workload: Manifest) -> str:
    return f"{at(workload, 'metadata', 'namespace')}/{at(workload, 'spec', 'queueName')}"


def _is_copy(workload: Manifest) -> bool:
    return bool(label_of(workload, ORIGIN_LABEL))


def _never(index: ClusterIndex, workload: Manifest) -> str:
    """Why a job waits for ever, without its place in the queue: many jobs have the same reason."""
    if not is_pending(workload) or not is_active(workload) or _is_copy(workload):
        return ""
    reasons = (blocked_reason(index, workload) or scheduler_reason(index, workload), shortage(index, workload))
    return next((reason.text for reason in reasons if reason and reason.state is State.NEVER), "")


def check_unsent_jobs(facts: DoctorFacts) -> Iterator[Diagnostic]:
    """A job without a resource that its queue covers is admitted on the manager without a check, and goes nowhere."""
    if facts.managers:
        stories = build_stories(facts.seen.objects)
        for manager in facts.managers:
            yield from _unsent_jobs(manager, stories.clusters[manager.name])


def _unsent_jobs(manager: ClusterObjects, index: ClusterIndex) -> Iterator[Diagnostic]:
    for workload in index.workloads.values():
        queue = index.state.queues.get(index.queue_of(workload))
        if queue is None or not _sends(manager, queue) or has_condition(workload, "Finished"):
            continue
        is_admitted = has_condition(workload, "Admitted") and not at(workload, "status", "clusterName")
        if is_admitted and not at(workload, "status", "admissionChecks"):
            yield Diagnostic(
                code="job-never-sent",
                severity=Urgency.ERROR,
                cluster=manager.name,
                subject=f"Workload/{name_of(workload)}",
                message="is admitted on the manager, and MultiKueue sends it nowhere: "
                f"it requests no resource that ClusterQueue {index.queue_of(workload)} covers",
                remedy="set resource requests in its pods, or cover the resource pods in the queue",
            )


def _sends(manager: ClusterObjects, queue: Manifest) -> bool:
    senders = {
        name_of(check)
        for check in manager.of(GROUP, "AdmissionCheck")
        if at(check, "spec", "controllerName") == MULTIKUEUE_CONTROLLER
    }
    strategy = as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks"))
    return any(at(check, "name") in senders for check in strategy)
