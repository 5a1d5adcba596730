"""Why a job that KubeStellar carries is where it is, or nowhere yet: asked of the clusters now."""

from typing import Any

import click

from reconciler.cli.source import compute_or_stop
from reconciler.errors import ClusterError
from reconciler.observations.placements import observe_placements
from reconciler.pipeline.offline import Source
from reconciler.pipeline.online import connect
from reconciler.placement import Decision, Verb, decide_placements
from reconciler.placement.room import request_text
from reconciler.spec.workers import carried_queues

MOST_NAMED = 5


def workload_record(name: str, source: Source) -> dict[str, Any]:
    """`name` is namespace/name, of the job or of its Workload."""
    if name.count("/") != 1:
        raise click.ClickException(f"{name or 'no name'}: write the job or its Workload as NAMESPACE/NAME")
    decisions = _decisions(source)
    for decision in decisions:
        ref = decision.job.ref
        if name in {f"{ref.namespace}/{ref.name}", f"{ref.namespace}/{decision.job.workload}"}:
            return _record(decision)
    known = sorted(f"{one.job.ref.namespace}/{one.job.ref.name}" for one in decisions)
    named = ", ".join(known[:MOST_NAMED]) + (", …" if len(known) > MOST_NAMED else "")
    problem = f"{name}: no job of this name has quota in a queue with dispatch: kubestellar"
    raise click.ClickException(f"{problem}; these have: {named}" if known else f"{problem}, and no other has")


def workload_text(record: dict[str, Any]) -> str:
    width = max(map(len, record))
    return "\n".join(f"{key.upper():<{width}}  {value}" for key, value in record.items() if value)


def _decisions(source: Source) -> tuple[Decision, ...]:
    spec = compute_or_stop(source).spec
    if not carried_queues(spec):
        raise click.ClickException("no queue of the fleet has dispatch: kubestellar, so kfleet places no jobs")
    connections = connect(spec)
    try:
        look = observe_placements(spec, connections.ports)
    finally:
        connections.close()
    gap = next(iter((look.gaps if look else ()) or connections.gaps), None)
    if look is None or look.gaps:
        manager = spec.manager.name if spec.manager else "manager"
        raise ClusterError(manager, gap.why if gap else "there is no manager to ask")
    return decide_placements(spec, look)


def _record(decision: Decision) -> dict[str, Any]:
    job, placed = decision.job, decision.job.placed
    is_going = decision.verb is Verb.PLACE
    return {
        "job": str(job.ref),
        "workload": job.workload,
        "queue": job.queue,
        "pods": " and ".join(request_text(pods) for pods in job.pod_sets),
        "cluster": placed.cluster if placed else "",
        "since": placed.since.isoformat() if placed and placed.since else "",
        "moves": placed.moves if placed else 0,
        "progress": job.progress.value if placed else "",
        "next": f"{decision.verb} -> {decision.cluster}" if is_going else decision.verb.value,
        "why": decision.why,
        "recorded": job.note or "",
    }
