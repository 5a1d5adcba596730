"""The jobs that KubeStellar carries, for `kfleet status`: where they are and how they go."""

from collections import Counter
from typing import Any

from reconciler.pipeline.offline import Computed
from reconciler.placement import Decision, decide_placements

MOST_SHOWN = 10


def job_rows(computed: Computed) -> list[dict[str, Any]]:
    if computed.placing is None:
        return []
    return [_row(decision) for decision in decide_placements(computed.spec, computed.placing)]


def jobs_text(rows: list[dict[str, Any]]) -> list[str]:
    """How many are where in which state; those that wait, by name."""
    counts = Counter((row["cluster"], row["state"]) for row in rows if row["cluster"])
    waiting = [row for row in rows if not row["cluster"] and row["state"] == "no cluster"]
    lines = [f"jobs on {cluster}: {count} {state}" for (cluster, state), count in sorted(counts.items())]
    lines += [f"job {row['job']}: {row['why']}" for row in waiting[:MOST_SHOWN]]
    more = len(waiting) - MOST_SHOWN
    return [*lines, f"and {more} more jobs without a cluster"] if more > 0 else lines


def _row(decision: Decision) -> dict[str, Any]:
    job = decision.job
    if job.is_finished:
        state = "finished"
    elif not job.has_quota:
        state = "without quota"
    else:
        state = job.progress.value if job.placed else "no cluster"
    return {
        "job": f"{job.ref.namespace}/{job.ref.name}",
        "kind": job.ref.kind,
        "queue": job.queue,
        "cluster": job.placed.cluster if job.placed else "",
        "state": state,
        "why": decision.why,
    }
