"""`kfleet preflight`: what will keep the fleet from working."""

import json
from datetime import timedelta
from typing import Any

import click

from reconciler.cli.source import compute_or_stop, source_options, timeout_option
from reconciler.cli.work import shown_work, verbose_option
from reconciler.objects import ClusterName, Gap, Obstacle
from reconciler.pipeline.capacity import Looking
from reconciler.pipeline.offline import Computed, Source
from reconciler.pipeline.online import connect, observe_fleet, obstacles_of, view_fleet
from reconciler.plan.record import obstacle_record
from reconciler.prediction import ClusterView

GROUP = "kueue.x-k8s.io"
INCOMPLETE = 4


@click.command()
@source_options
@timeout_option
@verbose_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def preflight(source: Source, timeout: float, is_verbose: bool, output: str) -> int:
    """Say what will keep the fleet from working on its clusters, and what to do about it.

    Looks whether each cluster can be reached, which Kueue it runs, whether workers know every kind of job that the
    manager's Kueue watches there, whether tokens are accepted and allowed enough, and whether kfleet may do its work.
    Changes nothing. Every plan shows the same obstacles.

    \b
    Examples:
      kfleet preflight --overlay prod
      kfleet preflight --revision main -o json

    \b
    Exit codes:
      0  nothing is in the way
      4  something is, or a cluster could not be seen
    """
    computed = compute_or_stop(source)
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        with shown_work(is_verbose=is_verbose):
            computed = observe_fleet(computed, connections, is_thorough=True, looking=Looking(timedelta()))
            views = view_fleet(computed, connections)
            obstacles = obstacles_of(computed, views, connections.ports)
    finally:
        connections.close()
    gaps = (*computed.desired.gaps, *connections.gaps, *(gap for view in views for gap in view.gaps))
    by_name = {view.name: view for view in views}
    rows = [_row(computed, cluster.name, by_name, gaps, obstacles) for cluster in computed.spec.clusters]
    if output == "json":
        click.echo(json.dumps({"clusters": rows}, indent=2))
    else:
        _print_rows(rows)
    return INCOMPLETE if gaps or obstacles else 0


def _row(
    computed: Computed,
    name: ClusterName,
    views: dict[ClusterName, ClusterView],
    gaps: tuple[Gap, ...],
    obstacles: tuple[Obstacle, ...],
) -> dict[str, Any]:
    view, links = views.get(name), computed.seen.links
    facts = links.facts.get(name) if links else None
    served = view.served.get((GROUP, "ClusterQueue"), ()) if view else ()
    return {
        "name": name,
        "reachable": bool(view and view.is_reachable),
        "kueue": facts.release if facts else "",
        "apiVersions": [kind.version for kind in served],
        "gaps": [f"{gap.what}: {gap.why}" for gap in gaps if gap.cluster == name],
        "obstacles": [obstacle_record(obstacle) for obstacle in obstacles if obstacle.cluster == name],
    }


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        is_ready = row["reachable"] and not (row["gaps"] or row["obstacles"])
        state = "ready" if is_ready else "unreachable" if not row["reachable"] else "not ready"
        title = f"{click.style(row['name'], bold=True)}: {click.style(state, fg='green' if is_ready else 'red')}"
        kueue = ", ".join(filter(None, (row["kueue"], *row["apiVersions"])))
        click.echo(title + (f", kueue {kueue}" if kueue else ""))
        for gap in row["gaps"]:
            click.echo(f"  not seen: {gap}")
        for obstacle in row["obstacles"]:
            click.echo(f"  {obstacle['check']}: {obstacle['problem']}")
            click.echo(f"    -> {obstacle['remedy']}")
