"""A view of 20 clusters, 100 queues on each, and 2,000 jobs."""

from typing import Any

from tests.unit.web.views import example_view

CLUSTERS, QUEUES, JOBS = 20, 100, 2000
STATES = ("pending", "running", "pending", "admitted", "finished", "reserved")


def large_view() -> dict[str, Any]:
    view = example_view()
    cluster, queue, job = view["clusters"][0], view["queues"][0], view["jobs"][0]
    names = [f"cluster-{number:02}" for number in range(CLUSTERS)]
    return {
        **view,
        "clusters": [{**cluster, "name": name, "role": "worker"} for name in names],
        "queues": [_queue(queue, name, number) for name in names for number in range(QUEUES)],
        "cohorts": [],
        "joined": [{**view["joined"][0], "name": f"queue-{number:03}", "clusters": names} for number in range(QUEUES)],
        "jobs": [_job(job, number) for number in range(JOBS)],
        "gaps": [],
    }


def _queue(queue: dict[str, Any], cluster: str, number: int) -> dict[str, Any]:
    name = f"queue-{number:03}"
    path = ["root", f"cohort-{number % 8}"]
    return {
        **queue,
        "id": f"{cluster}/{name}",
        "cluster": cluster,
        "name": name,
        "cohort": path[-1],
        "cohortPath": path,
    }


def _job(job: dict[str, Any], number: int) -> dict[str, Any]:
    name, state = f"job-{number:04}", STATES[number % len(STATES)]
    return {
        **job,
        "id": f"cluster-00/team/{name}",
        "cluster": "cluster-00",
        "namespace": "team",
        "name": name,
        "workload": f"job-{name}",
        "clusterQueue": f"queue-{number % QUEUES:03}",
        "state": state,
        "position": number // QUEUES + 1 if state == "pending" else None,
        "reason": f"couldn't assign flavors to pod set main: insufficient unused quota for cpu, {number} more needed",
        "why": f"waits: place {number // QUEUES + 1} of queue queue-000 on cluster-00; cpu: {number} more needed",
        "runsOn": f"cluster-{number % CLUSTERS:02}" if state in {"running", "admitted"} else "",
        "copies": [],
    }
