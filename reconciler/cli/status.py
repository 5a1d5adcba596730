"""`kfleet status`: the status of each cluster and of the controller, and the jobs that KubeStellar dispatches."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click

from reconciler.cli.options import load_or_stop, source_options, timeout_option
from reconciler.cli.output import renewed_text
from reconciler.cli.planning import looking_options, opened, plan_shown
from reconciler.errors import ClusterError, ExitCode
from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.model import Decision
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.pipeline.apply import lease_name
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Revision, Source
from reconciler.pipeline.objects import Installation, observe_fleet_objects, observe_installation
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.pipeline.report import health
from reconciler.plan.make import Comparison
from reconciler.plan.model import Action, Plan
from reconciler.report.health import HealthIssue
from reconciler.snapshot.recording import Recording
from reconciler.spec.enums import Dispatch
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import SetName
from reconciler.why.dispatch import unserved_reservations
from reconciler.why.index import build_stories

MOST_SHOWN = 10
REFRESH = 3.0
Rows = list[dict[str, Any]]


def job_rows(rendered: Rendered) -> list[dict[str, Any]]:
    placements = rendered.snapshot.placements
    if placements is None:
        return []
    return [_job_row(decision) for decision in decide_placements(rendered.spec, placements)]


def jobs_text(rows: Rows) -> list[str]:
    """Count the jobs per cluster and state, and list the waiting ones by name."""
    counts = Counter((row["cluster"], row["state"]) for row in rows if row["cluster"])
    waiting = [row for row in rows if not row["cluster"] and row["state"] == "no cluster"]
    lines = [f"jobs on {cluster}: {count} {state}" for (cluster, state), count in sorted(counts.items())]
    lines += [f"job {row['job']}: {row['why']}" for row in waiting[:MOST_SHOWN]]
    more = len(waiting) - MOST_SHOWN
    return [*lines, f"and {more} more jobs without a cluster"] if more > 0 else lines


def _job_row(decision: Decision) -> dict[str, Any]:
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


@click.command()
@source_options
@looking_options
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-w", "--watch", "is_watched", is_flag=True, help="Refresh the text until interrupted.")
def status(
    source: Source,
    looking: ObserveOptions,
    recording: Recording | None,
    timeout: float,
    output: str,
    is_watched: bool,
) -> int:
    """Show the status of each cluster: reachability, versions, objects, health issues.

    Exits with 0 if every cluster was observed and every object is in sync and healthy, with 4 otherwise.

    \b
    Examples:
      kfleet status --overlay prod
      kfleet status -w
      kfleet status --snapshot world.json.gz
      kfleet status -o json | jq -r '.clusters[] | select(.reachable | not) | .name'
    """
    if is_watched and output == "json":
        raise click.UsageError("--watch shows text; -o json is for a single observation")
    if is_watched and recording is not None:
        raise click.UsageError("--watch follows clusters; a snapshot does not change")
    revision = load_or_stop(source)
    if is_watched:
        _watch(revision, looking, timeout)
    seen = _observed(revision, looking, recording, timeout)
    if output == "json":
        click.echo(json.dumps(seen, indent=2))
    else:
        click.echo("\n".join(_lines(seen)))
    return ExitCode.OK if all(map(_is_well, seen["clusters"])) else ExitCode.INCOMPLETE


def _watch(revision: Revision, looking: ObserveOptions, timeout: float) -> NoReturn:
    """Repeat until a user interrupts it, with new connections: a lost cluster may be back."""
    with renewed_text() as show:
        while True:
            show("\n".join(_lines(_observed(revision, looking, None, timeout))))
            time.sleep(REFRESH)


def _observed(
    revision: Revision, looking: ObserveOptions, recording: Recording | None, timeout: float
) -> Mapping[str, Any]:
    with opened(revision.spec, timeout, recording) as connections:
        planned = plan_shown(revision, connections, looking)
        rendered, looks, made = planned.rendered, planned.comparison, planned.plan
        installed = {
            view.name: observe_installation(connections.clients[view.name], view.set_name.namespace)
            for view in looks.views
            if view.is_reachable
        }
        controller = read_controller(rendered.spec, connections)
        unserved = _unserved(rendered.spec, connections)
    health_issues = health(rendered, looks.views)
    names = dict.fromkeys((*(entry.name for entry in rendered.spec.clusters), *(view.name for view in looks.views)))
    rows = [
        {
            **_row(name, looks, made, health_issues),
            "kubernetes": installed.get(name, Installation()).kubernetes,
            "kueueRelease": installed.get(name, Installation()).kueue,
            "workloads": count_workloads(rendered, looks, name),
            "suspended": rendered.spec.is_suspended(name),
            "drained": drain_state(rendered, made, name),
            "unservedReservations": unserved if rendered.spec.manager and name == rendered.spec.manager.name else [],
        }
        for name in names
    ]
    return {"clusters": rows, "jobs": job_rows(rendered), "controller": controller}


def _unserved(spec: FleetSpec, connections: Connections) -> list[str]:
    """Jobs that hold quota on the manager for ever; only MultiKueue reserves it before a worker was asked."""
    if not dispatches_by_multikueue(spec):
        return []
    return list(unserved_reservations(build_stories(observe_fleet_objects(spec, connections), spec)))


def _is_well(row: Mapping[str, Any]) -> bool:
    problems = ("unhealthy", "pendingChanges", "preflightIssues", "gaps", "unservedReservations")
    return row["reachable"] and not any(row[name] for name in problems)


def _row(name: str, looks: Comparison, made: Plan, health_issues: tuple[HealthIssue, ...]) -> dict[str, Any]:
    view = next((entry for entry in looks.views if entry.name == name), None)
    plan = next((entry for entry in made.clusters if entry.name == name), None)
    changes = plan.changes if plan else ()
    counts = {action.value: sum(change.action is action for change in changes) for action in Action}
    gaps = [gap for gap in made.gaps if gap.cluster == name]
    refusals = [refusal for refusal in made.refusals if refusal.cluster in {None, name}]
    return {
        "name": name,
        "reachable": bool(view and view.is_reachable),
        "kueue": _api_version(view.served) if view else "",
        "objects": counts,
        "pendingChanges": sum(count for action, count in counts.items() if action != Action.KEEP.value) + len(refusals),
        "gaps": [f"{gap.what}: {gap.why}" for gap in gaps],
        "refusals": [str(refusal) for refusal in refusals],
        "waiting": [entry.why for entry in made.waiting if entry.cluster == name],
        "unhealthy": [str(health_issue) for health_issue in health_issues if health_issue.ref.cluster == name],
        "preflightIssues": [
            str(preflight_issue) for preflight_issue in made.preflight_issues if preflight_issue.cluster == name
        ],
    }


def _api_version(served: Any) -> str:
    versions = served.get((GROUP, "ClusterQueue"), ())
    return versions[0].version if versions else ""


def _state(row: Mapping[str, Any]) -> str:
    if not row["reachable"]:
        return "unreachable"
    state = "suspended" if row["suspended"] else "ok" if _is_well(row) else "needs attention"
    return f"{state}, {row['drained']}" if row["drained"] else state


def _versions(row: Mapping[str, Any]) -> str:
    kubernetes = f"kubernetes {row['kubernetes']}, " if row["kubernetes"] else ""
    kueue = f"{row['kueueRelease']} ({row['kueue']})" if row["kueueRelease"] else row["kueue"]
    return kubernetes + (f"kueue {kueue}" if row["kueue"] else "no kueue")


def _lines(seen: Mapping[str, Any]) -> Iterator[str]:
    for row in seen["clusters"]:
        is_well = _is_well(row)
        state = _state(row)
        wanted = row["objects"][Action.KEEP.value]
        others = ", ".join(f"{count} to {name}" for name, count in row["objects"].items() if count and name != "keep")
        counted = f"{wanted} objects in sync" + (f", {others}" if others else "")
        if row["workloads"] and any(row["workloads"].values()):
            counted += ", workloads: {pending} pending, {admitted} admitted".format_map(row["workloads"])
        title = click.style(row["name"], bold=True)
        detail = f", {_versions(row)}, {counted}" if row["reachable"] else ""
        yield f"{title}: {click.style(state, fg='green' if is_well else 'red')}{detail}"
        waiting = (f"waiting: {why}" for why in row["waiting"])
        for line in (*waiting, *row["gaps"], *row["refusals"], *row["unhealthy"], *row["preflightIssues"]):
            yield f"  {line}"
        yield from (f"  blocked quota: {line}" for line in row["unservedReservations"][:MOST_SHOWN])
        if (more := len(row["unservedReservations"]) - MOST_SHOWN) > 0:
            yield f"  blocked quota: {more} more jobs"
    yield from jobs_text(seen["jobs"])
    if seen["controller"]:
        yield from controller_text(seen["controller"])


_SHOWN = ("revision", "result", "message", "since", "problem", "refusedRevision")
_APPLIED = "applied"


def count_workloads(rendered: Rendered, looks: Comparison, name: str) -> dict[str, int] | None:
    """How many workloads the fleet's queues on a cluster have; None if they were not observed."""
    view = next((entry for entry in looks.views if entry.name == name and entry.is_reachable), None)
    if view is None or (GROUP, "ClusterQueue") not in view.listed:
        return None
    refs = (entry.ref for entry in rendered.desired.of_cluster(view.name) if entry.ref.kind == "ClusterQueue")
    queues = [view.live.get(ref) for ref in refs]
    return {
        "pending": sum(int(at(queue, "status", "pendingWorkloads") or 0) for queue in queues),
        "admitted": sum(int(at(queue, "status", "admittedWorkloads") or 0) for queue in queues),
    }


def dispatches_by_multikueue(spec: FleetSpec) -> bool:
    """Whether a queue of the fleet, or a native MultiKueueConfig, dispatches jobs."""
    is_sent = any(queue.dispatch is Dispatch.MULTIKUEUE for queue in spec.queues)
    return is_sent or any(entry.document.kind == "MultiKueueConfig" for entry in spec.objects)


def drain_state(rendered: Rendered, made: Plan, name: str) -> str:
    cluster = next((entry for entry in rendered.spec.clusters if entry.name == name), None)
    if cluster is None or not cluster.is_drained:
        return ""
    return "draining" if any(entry.cluster == name for entry in made.waiting) else "drained"


def read_controller(spec: FleetSpec, connections: Connections) -> dict[str, str] | None:
    """What `kfleet run` has applied last, and which replica leads; None if none has written its status."""
    home = home_cluster(spec)
    client = connections.clients.get(home.name)
    name = SetName(spec.fleet.name, home.kueue.namespace)
    try:
        found = client.find(name.status_path) if client else None
        lease = client.find(lease_name(spec).path) if client and found else None
    except ClusterError:
        return None
    written: dict[str, str] = (found or {}).get("data") or {}
    shown = {key: written[key] for key in _SHOWN if written.get(key)}
    leader = as_text(at(lease, "spec", "holderIdentity"))
    return {**shown, "leader": leader, "renewed": as_text(at(lease, "spec", "renewTime"))} if shown else None


def controller_text(controller: Mapping[str, str]) -> Iterator[str]:
    leads = f"{controller['leader']} leads" if controller["leader"] else "none leads now"
    result = controller.get("result", "")
    since = f" since {controller['since']}" if controller.get("since") else ""
    yield f"controller: {leads}, {controller.get('revision', '')[:12]}: {result}{since}"
    if controller.get("message") and result != _APPLIED:
        yield f"  {controller['message']}"
    if controller.get("refusedRevision"):
        yield f"  does not follow {controller['refusedRevision'][:12]}: {controller.get('problem', '')}"
    elif controller.get("problem"):
        yield f"  {controller['problem']}"
