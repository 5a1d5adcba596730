"""`kfleet preflight`: what prevents the fleet from working."""

import json
from datetime import timedelta
from typing import Any

import click

from reconciler.cli.options import (
    load_or_stop,
    read_recording,
    recorded_capacity,
    snapshot_option,
    source_options,
    timeout_option,
)
from reconciler.cli.output import shown_work, verbose_option
from reconciler.cli.planning import opened
from reconciler.errors import ExitCode
from reconciler.objects import ClusterName, Gap, PreflightIssue
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import check_fleet
from reconciler.pipeline.load import Source
from reconciler.pipeline.render import Rendered
from reconciler.plan.record import preflight_issue_record
from reconciler.state.model import ClusterView

GROUP = "kueue.x-k8s.io"


@click.command()
@source_options
@snapshot_option
@timeout_option
@verbose_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def preflight(source: Source, snapshot: str | None, timeout: float, is_verbose: bool, output: str) -> int:
    """Report what prevents the fleet from working on its clusters, and how to fix it.

    Checks whether each cluster is reachable, which Kueue it runs, whether the workers serve every kind of job that the
    manager's Kueue dispatches, whether tokens are accepted and have enough permissions, and whether kfleet itself does.
    Writes nothing. Every plan shows the same preflight issues.

    \b
    Examples:
      kfleet preflight --overlay prod
      kfleet preflight --revision main -o json
      kfleet preflight --snapshot world.json.gz

    \b
    Exit codes:
      0  no preflight issues
      4  preflight issues, or a cluster could not be observed
    """
    revision = load_or_stop(source)
    recording = read_recording(snapshot)
    options = ObserveOptions(timedelta(), recorded_capacity(recording))
    with opened(revision.spec, timeout, recording) as connections, shown_work(is_verbose=is_verbose):
        checked = check_fleet(revision, connections, options)
    rendered, views, preflight_issues = checked.rendered, checked.views, checked.issues
    gaps = (*rendered.desired.gaps, *connections.gaps, *(gap for view in views for gap in view.gaps))
    by_name = {view.name: view for view in views}
    rows = [_row(rendered, cluster.name, by_name, gaps, preflight_issues) for cluster in rendered.spec.clusters]
    if output == "json":
        click.echo(json.dumps({"clusters": rows}, indent=2))
    else:
        _print_rows(rows)
    return ExitCode.INCOMPLETE if gaps or preflight_issues else ExitCode.OK


def _row(
    rendered: Rendered,
    name: ClusterName,
    views: dict[ClusterName, ClusterView],
    gaps: tuple[Gap, ...],
    preflight_issues: tuple[PreflightIssue, ...],
) -> dict[str, Any]:
    view, links = views.get(name), rendered.snapshot.observations.links
    facts = links.facts.get(name) if links else None
    served = view.served.get((GROUP, "ClusterQueue"), ()) if view else ()
    return {
        "name": name,
        "reachable": bool(view and view.is_reachable),
        "kueue": facts.release if facts else "",
        "apiVersions": [kind.version for kind in served],
        "gaps": [f"{gap.what}: {gap.why}" for gap in gaps if gap.cluster == name],
        "preflightIssues": [
            preflight_issue_record(preflight_issue)
            for preflight_issue in preflight_issues
            if preflight_issue.cluster == name
        ],
    }


def _print_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        is_ready = row["reachable"] and not (row["gaps"] or row["preflightIssues"])
        state = "ready" if is_ready else "unreachable" if not row["reachable"] else "not ready"
        title = f"{click.style(row['name'], bold=True)}: {click.style(state, fg='green' if is_ready else 'red')}"
        kueue = ", ".join(filter(None, (row["kueue"], *row["apiVersions"])))
        click.echo(title + (f", kueue {kueue}" if kueue else ""))
        for gap in row["gaps"]:
            click.echo(f"  not observed: {gap}")
        for preflight_issue in row["preflightIssues"]:
            click.echo(f"  {preflight_issue['check']}: {preflight_issue['problem']}")
            click.echo(f"    -> {preflight_issue['remedy']}")
