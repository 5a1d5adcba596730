"""`kfleet status`: how the clusters are."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from reconciler.cli.observing import looking_options, tell_conditions
from reconciler.cli.source import compute_or_stop, source_options, timeout_option
from reconciler.cli.status_jobs import job_rows, jobs_text
from reconciler.edges.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.health import Ailment
from reconciler.pipeline.capacity import Looking
from reconciler.pipeline.offline import Source
from reconciler.pipeline.online import ailments_of, connect, look_at_fleet, observe_fleet, obstacles_of
from reconciler.plan import Action, Looks, Plan, make_plan

GROUP = "kueue.x-k8s.io"


@click.command()
@source_options
@looking_options
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(source: Source, looking: Looking, timeout: float, output: str) -> int:
    """Show how each cluster is: reachable, versions, objects, and what is not well.

    Exits with 0 when every cluster could be seen and every object is as wanted and works, with 4 otherwise.

    \b
    Examples:
      kfleet status --overlay prod
      kfleet status -o json | jq -r '.clusters[] | select(.reachable | not) | .name'
    """
    computed = compute_or_stop(source)
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        computed = observe_fleet(computed, connections, looking=looking)
        tell_conditions(computed)
        looks = look_at_fleet(computed, connections)
        obstacles = obstacles_of(computed, looks.views, connections.ports)
        releases = {view.name: _release(connections.ports[view.name]) for view in looks.views if view.is_reachable}
    finally:
        connections.close()
    made = replace(make_plan(computed.spec, looks), obstacles=obstacles)
    ailments = ailments_of(computed, looks.views)
    names = dict.fromkeys((*(entry.name for entry in computed.spec.clusters), *(view.name for view in looks.views)))
    rows = [
        {
            **_row(name, looks, made, ailments),
            "kubernetes": releases.get(name, ""),
            "suspended": computed.spec.is_suspended(name),
        }
        for name in names
    ]
    if output == "json":
        click.echo(json.dumps({"clusters": rows, "jobs": job_rows(computed)}, indent=2))
    else:
        _print_rows(rows)
        for line in jobs_text(job_rows(computed)):
            click.echo(line)
    return 0 if all(map(_is_well, rows)) else 4


def _release(port: ApiServer) -> str:
    """Which Kubernetes it is; a server that does not say so now is not the worse for it."""
    try:
        return str(port.get("/version").get("gitVersion", ""))
    except ClusterError:
        return ""


def _is_well(row: Mapping[str, Any]) -> bool:
    return row["reachable"] and not (row["ailments"] or row["pending"] or row["obstacles"] or row["gaps"])


def _row(name: str, looks: Looks, made: Plan, ailments: tuple[Ailment, ...]) -> dict[str, Any]:
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
        "kueueRelease": looks.configurations[view.name].release if view and view.name in looks.configurations else "",
        "objects": counts,
        "pending": sum(count for action, count in counts.items() if action != Action.KEEP.value) + len(refusals),
        "gaps": [f"{gap.what}: {gap.why}" for gap in gaps],
        "refusals": [str(refusal) for refusal in refusals],
        "waiting": [entry.why for entry in made.waiting if entry.cluster == name],
        "ailments": [str(ailment) for ailment in ailments if ailment.ref.cluster == name],
        "obstacles": [str(obstacle) for obstacle in made.obstacles if obstacle.cluster == name],
    }


def _api_version(served: Any) -> str:
    versions = served.get((GROUP, "ClusterQueue"), ())
    return versions[0].version if versions else ""


def _state(row: Mapping[str, Any]) -> str:
    if not row["reachable"]:
        return "unreachable"
    return "suspended" if row["suspended"] else "ok" if _is_well(row) else "needs attention"


def _versions(row: Mapping[str, Any]) -> str:
    kubernetes = f"kubernetes {row['kubernetes']}, " if row["kubernetes"] else ""
    release = f" ({row['kueueRelease']})" if row["kueueRelease"] else ""
    return kubernetes + (f"kueue {row['kueue']}{release}" if row["kueue"] else "no kueue")


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        is_well = _is_well(row)
        state = _state(row)
        wanted = row["objects"][Action.KEEP.value]
        others = ", ".join(f"{count} to {name}" for name, count in row["objects"].items() if count and name != "keep")
        counted = f"{wanted} objects as wanted" + (f", {others}" if others else "")
        title = click.style(row["name"], bold=True)
        detail = f", {_versions(row)}, {counted}" if row["reachable"] else ""
        click.echo(f"{title}: {click.style(state, fg='green' if is_well else 'red')}{detail}")
        waiting = (f"waiting: {why}" for why in row["waiting"])
        for line in (*waiting, *row["gaps"], *row["refusals"], *row["ailments"], *row["obstacles"]):
            click.echo(f"  {line}")
