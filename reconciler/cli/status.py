"""`kfleet status`: how the clusters are."""

import json
from datetime import timedelta
from typing import Any

import click

from reconciler.cli.source import compute_or_stop, source_options, timeout_option
from reconciler.health import Ailment, find_ailments
from reconciler.pipeline.offline import Source
from reconciler.pipeline.online import connect, look_at_fleet, observe_fleet
from reconciler.plan import Action, Looks, Plan, make_plan

GROUP = "kueue.x-k8s.io"


@click.command()
@source_options
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(source: Source, timeout: float, output: str) -> int:
    """Show how each cluster is: reachable, versions, objects, and what is not well.

    Exits with 0 when every cluster could be seen and every object is as wanted and works, with 4 otherwise.
    """
    computed = compute_or_stop(source)
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        computed = observe_fleet(computed, connections)
        looks = look_at_fleet(computed, connections)
    finally:
        connections.close()
    made = make_plan(computed.spec, looks)
    ailments = tuple(
        ailment
        for view in looks.views
        for ailment in find_ailments(view, (entry.ref for entry in computed.desired.of_cluster(view.name)))
    )
    rows = [_row(name, looks, made, ailments) for name in (entry.name for entry in computed.spec.clusters)]
    if output == "json":
        click.echo(json.dumps({"clusters": rows}, indent=2))
    else:
        _print_rows(rows)
    is_well = all(row["reachable"] and not row["ailments"] and not row["pending"] for row in rows)
    return 0 if is_well else 4


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
        "objects": counts,
        "pending": sum(count for action, count in counts.items() if action != Action.KEEP.value) + len(refusals),
        "gaps": [f"{gap.what}: {gap.why}" for gap in gaps],
        "refusals": [str(refusal) for refusal in refusals],
        "ailments": [str(ailment) for ailment in ailments if ailment.ref.cluster == name],
    }


def _api_version(served: Any) -> str:
    versions = served.get((GROUP, "ClusterQueue"), ())
    return versions[0].version if versions else ""


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        is_well = row["reachable"] and not row["ailments"] and not row["pending"]
        state = "unreachable" if not row["reachable"] else "ok" if is_well else "needs attention"
        wanted = row["objects"][Action.KEEP.value]
        others = ", ".join(f"{count} to {name}" for name, count in row["objects"].items() if count and name != "keep")
        counted = f"{wanted} objects as wanted" + (f", {others}" if others else "")
        title = click.style(row["name"], bold=True)
        detail = f", kueue {row['kueue']}, {counted}" if row["reachable"] else ""
        click.echo(f"{title}: {click.style(state, fg='green' if is_well else 'red')}{detail}")
        for line in (*row["gaps"], *row["refusals"], *row["ailments"]):
            click.echo(f"  {line}")
