"""The end of a walk: without faults kfleet brings the fleet to what git says, and nothing is left to do."""

import time
from typing import Any

from tests.soak.commits import LONG_JOB
from tests.soak.foreign import read_foreign
from tests.soak.record import KUEUE, JobRecord
from tests.soak.walk import CLUSTERS, Walk
from tests.soak.wanted import EXTRA, MANAGER

CONVERGED_WITHIN, LEAST_TRIES = 90, 8
# What an apply says that has to come back later.
EXPLAINED = ("waiting:", "gap:", "hold ", "place ", "move ", "withdraw ", "finish ")
# One more apply may follow what Kueue did meanwhile: its webhook and its finalizers take a moment.
MOST_UNEXPLAINED = 1


def make_peace(walk: Walk) -> None:
    """Without faults kfleet brings the fleet to what git says, running jobs end, and nothing is left to do."""
    walk.thaw()
    walk.heal()
    walk.set_clock(0)  # one that is weeks ahead takes every new token for an old one
    walk.end_controller(is_killed=False)
    walk.say("peace")
    _end_running_jobs(walk)
    _remove_barred_jobs(walk)
    converge(walk, "as the last commit says")
    _remove_rejected_jobs(walk)
    walk.commit(walk.commits[0])
    converge(walk, "as it was in the beginning")
    _remove_jobs_without_queue(walk)
    _remove_rejected_jobs(walk)
    _end_all_jobs(walk)
    converge(walk, "with all jobs at their end")
    _check_copies(walk)
    check_foreign(walk)


def check_foreign(walk: Walk) -> None:
    """On clusters that answer: what others made is as they made it."""
    silent = walk.frozen | walk.killed
    asked = [(cluster, path) for cluster, path in walk.foreign if cluster not in silent]
    now = read_foreign(walk.sandbox, asked)
    if changed := [f"{cluster}{path}" for cluster, path in asked if now[cluster, path] != walk.foreign[cluster, path]]:
        walk.recorder.report(f"objects of others changed: {', '.join(changed)}")


def converge(walk: Walk, state: str) -> None:
    """By one apply, unless it says what it waits for: a removal, a job that has to end, a worker that leaves.

    Then within some tries, and some time: on a busy machine one try takes long, with KubeStellar jobs have to end.
    """
    deadline, tries, unexplained = time.monotonic() + CONVERGED_WITHIN, 0, 0
    while time.monotonic() < deadline or tries < LEAST_TRIES:
        tries += 1
        code, text = walk.kfleet("apply")
        is_explained = code != 0 or any(word in text for word in EXPLAINED)
        if code == 0:
            planned, text = walk.kfleet("plan", "--detailed-exitcode")
            if planned == 0:
                walk.say(f"converged {state}, with {tries} applies")
                return
        unexplained += not is_explained
        if unexplained > MOST_UNEXPLAINED:
            walk.recorder.report(f"not converged {state} by {tries} applies that waited for nothing:\n{text}")
            return
        time.sleep(1)
    walk.recorder.report(f"not converged {state}: exit {code}\n{text}")


def _end_running_jobs(walk: Walk) -> None:
    """The longest may have just been started again, on a worker whose API server has, by a busy machine."""
    deadline = time.monotonic() + 3 * LONG_JOB
    while any(record.running for record in walk.recorder.jobs.values()) and time.monotonic() < deadline:
        time.sleep(0.5)
    left = [record.name for record in walk.recorder.jobs.values() if record.running]
    if left:
        walk.recorder.report(f"jobs still run: {', '.join(left)}")


def _end_all_jobs(walk: Walk) -> None:
    deadline = time.monotonic() + 120
    while (left := [one for one in walk.recorder.jobs.values() if not one.is_complete]) and (
        time.monotonic() < deadline
    ):
        if walk.is_downsynced:
            walk.kfleet("apply")  # which places jobs, and reports their end
        time.sleep(0.5)
    for record in left:
        walk.recorder.report(f"{record} never ended; it ran on {record.places or 'none'}; {_state_of(walk, record)}")


def _check_copies(walk: Walk) -> None:
    """What a user deleted is gone from workers too, as soon as Kueue's own collection of garbage has run."""
    deadline = time.monotonic() + CONVERGED_WITHIN
    while (left := _copies_of_deleted(walk)) and time.monotonic() < deadline:
        time.sleep(1)
    for copy in left:
        walk.recorder.report(f"{copy} outlives the job that its user deleted")


def _copies_of_deleted(walk: Walk) -> list[str]:
    deleted = {(one.namespace, one.name) for one in walk.recorder.known() if one.is_deleted}
    jobs = ((cluster, job["metadata"]) for cluster in CLUSTERS for job in walk.api(cluster).list("/apis/batch/v1/jobs"))
    return [
        f"{one['namespace']}/{one['name']} on {at}" for at, one in jobs if (one["namespace"], one["name"]) in deleted
    ]


def _state_of(walk: Walk, record: JobRecord) -> str:
    """What its Workload says, for whoever reads the walk."""
    found = walk.api(record.home).list(f"{KUEUE}/namespaces/{record.namespace}/workloads")
    own = [one for one in found if one["metadata"].get("ownerReferences", [{}])[0].get("name") == record.name]
    status = [(one["spec"].get("active"), one.get("status") or {}) for one in own]
    told = [
        f"{condition['type']}={condition['status']} {condition.get('message', '')}"
        for _, seen in status
        for condition in seen.get("conditions") or ()
    ]
    checks = [
        f"{check['name']} {check['state']} {check['message']}"
        for _, seen in status
        for check in seen.get("admissionChecks") or ()
    ]
    return "; ".join((f"active: {[active for active, _ in status]}", *told, *checks))


def _remove_rejected_jobs(walk: Walk) -> None:
    """What was submitted to KubeStellar and waited when its queue changed: MultiKueue rejects it, its user goes on."""
    rejected = {
        (one["metadata"]["namespace"], one["metadata"].get("ownerReferences", [{}])[0].get("name", ""))
        for one in walk.api(MANAGER).list(f"{KUEUE}/workloads")
        if _is_rejected(one)
    }
    for record in walk.recorder.known():
        if (record.namespace, record.name) in rejected and not record.is_complete and not record.running:
            walk.remove_job(record)


def _remove_jobs_without_queue(walk: Walk) -> None:
    """What waits in a queue that is no longer in git waits for ever, as the plan says: its user goes on."""
    for record in walk.recorder.known():
        if record.namespace == f"{walk.fleet}-{EXTRA}" and not record.is_complete and not record.running:
            walk.remove_job(record)


def _is_rejected(workload: dict[str, Any]) -> bool:
    status = workload.get("status") or {}
    states = [check["state"] for check in status.get("admissionChecks") or ()]
    said = [condition.get("message", "") for condition in status.get("conditions") or ()]
    is_failed = any("failed admission checks" in message for message in said)
    return "Rejected" in states or is_failed or workload["spec"].get("active") is False


def _remove_barred_jobs(walk: Walk) -> None:
    for record in walk.recorder.known():
        if record.is_barred:
            walk.remove_job(record)
