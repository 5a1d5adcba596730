"""`kfleet explain workload`: why a KubeStellar job is placed where it is, or not yet, as observed now."""

from typing import Any

import click

from reconciler.cli.options import load_or_stop
from reconciler.errors import ClusterError
from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.fit import request_text
from reconciler.kubestellar.model import Decision, Verb
from reconciler.kubestellar.observe import observe_placements
from reconciler.pipeline.load import Source
from reconciler.pipeline.recording import connect_once
from reconciler.spec.roles import downsynced_queues

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
    problem = f"{name}: no job of this name has a quota reservation in a queue with dispatch: kubestellar"
    raise click.ClickException(f"{problem}; these have one: {named}" if known else f"{problem}, nor has any other")


def workload_text(record: dict[str, Any]) -> str:
    width = max(map(len, record))
    return "\n".join(f"{key.upper():<{width}}  {value}" for key, value in record.items() if value)


def _decisions(source: Source) -> tuple[Decision, ...]:
    spec = load_or_stop(source).spec
    if not downsynced_queues(spec):
        raise click.ClickException("no queue of the fleet has dispatch: kubestellar, so kfleet places no jobs")
    connections = connect_once(spec)
    try:
        look = observe_placements(spec, connections.clients, connections.removed, connections.lost)
    finally:
        connections.close()
    gap = next(iter((look.gaps if look else ()) or connections.gaps), None)
    if look is None or look.gaps:
        manager = spec.manager.name if spec.manager else "manager"
        raise ClusterError(manager, gap.why if gap else "the fleet has no manager")
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
