"""Whether an admitted workload really runs: its job, its pods, and how it ended."""

from collections.abc import Iterable

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest
from reconciler.text import counted, one_line
from reconciler.why.index import ClusterIndex, condition_of, uid_of
from reconciler.why.model import State, StoryReason

ENDS = {"Complete": State.FINISHED, "Completed": State.FINISHED, "Succeeded": State.FINISHED, "Failed": State.FAILED}
FAILURES = ("Failed", "JobFailed")


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
