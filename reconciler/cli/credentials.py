"""`kfleet credentials`: the tokens that the manager uses to reach its workers."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta

import click

from reconciler.cli.options import commit_options, load_or_stop, quiet_option, source_options, timeout_option
from reconciler.cli.output import paint, terminal_width, verbose_option
from reconciler.cli.planning import opened, plan_shown
from reconciler.errors import ExitCode
from reconciler.multikueue.model import SeenCredential
from reconciler.multikueue.observe import sent_workers
from reconciler.objects import ClusterName
from reconciler.pipeline.apply import apply_objects, writing
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import PlanOptions, observe_and_render
from reconciler.pipeline.load import Source, committed
from reconciler.pipeline.observe import connect
from reconciler.pipeline.render import Rendered
from reconciler.plan.record import tokens_only
from reconciler.report.tables import Cell, Layout, Table, table_lines
from reconciler.report.text import apply_exit_code, outcome_text, plan_text
from reconciler.spec.model import Cluster, FleetSpec

COLUMNS = ("worker", "secret", "account", "issued", "expires", "renewal", "accepted")
# What a narrow terminal does without, in this order; -o json has everything.
OPTIONAL = ("ACCOUNT", "SECRET", "ISSUED", "RENEWAL")
_ACCEPTED = {True: "yes", False: "no", None: "unknown"}


@click.group()
def credentials() -> None:
    """Show and rotate the tokens that the manager uses to reach its workers.

    `kfleet apply` issues tokens and renews them before they expire.
    """


@credentials.command(name="list")
@source_options
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_credentials(source: Source, timeout: float, output: str) -> int:
    """Show each worker's token: when it was issued, when it expires, and whether the worker accepts it.

    Never prints a token. Exits with 4 if a token could not be checked, with 0 otherwise.

    \b
    Examples:
      kfleet credentials list --overlay prod
      kfleet credentials list -o json | jq -r '.credentials[] | select(.accepted != "yes") | .worker'
    """
    revision = load_or_stop(source)
    with opened(revision.spec, timeout) as connections:
        rendered = observe_and_render(revision, connections, ObserveOptions(timedelta()))
    rows = [_row(worker, rendered) for worker in sent_workers(rendered.spec)]
    if output == "json":
        click.echo(json.dumps({"credentials": rows}, indent=2))
    else:
        lines = credentials_table(rows, terminal_width())
        click.echo("\n".join(lines) if rows else "no queue of the fleet is dispatched by MultiKueue")
    gaps = (*rendered.desired.gaps, *connections.gaps)
    for gap in gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    return ExitCode.INCOMPLETE if gaps else ExitCode.OK


@credentials.command()
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@commit_options
@quiet_option
@timeout_option
@verbose_option
@click.option(
    "--working-tree", "is_uncommitted", is_flag=True, help="Use the working tree, including uncommitted changes."
)
def rotate(workers: tuple[str, ...], source: Source, timeout: float, is_verbose: bool, is_uncommitted: bool) -> int:
    """Issue new tokens now, for the given workers or for all.

    Changes nothing else of the fleet and does not affect running jobs. An old token stays valid until it expires: to
    revoke it at once, delete its ServiceAccount on the worker and run kfleet apply.

    \b
    Examples:
      kfleet credentials rotate
      kfleet credentials rotate cnaf-gpu cnaf-cpu

    \b
    Exit codes:
      0  done
      3  refused by a guard
      4  some tokens could not be issued
    """
    revision = load_or_stop(source if is_uncommitted else committed(source))
    chosen = _chosen(revision.spec, workers)
    with (
        closing(connect(revision.spec, timedelta(seconds=timeout))) as connections,
        writing(revision.spec, connections) as policy,
    ):
        reading, options = connections.remembering(), ObserveOptions(timedelta())
        rotating = PlanOptions(rotations=chosen, is_applying=True)
        planned = plan_shown(revision, reading, options, rotating, is_verbose=is_verbose)
        made = tokens_only(planned.plan, chosen)
        outcomes = apply_objects(planned.rendered, connections, made, policy)
    click.echo(plan_text(made, paint))
    click.echo(outcome_text(outcomes, paint))
    return apply_exit_code(made, outcomes)


def _chosen(spec: FleetSpec, named: tuple[str, ...]) -> frozenset[ClusterName]:
    known = [worker.name for worker in sent_workers(spec) if worker.credentials.is_issued]
    for name in named:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise click.BadParameter(f"kfleet issues no token for {name!r}; only for: {listed}", param_hint="WORKER")
    return frozenset(ClusterName(name) for name in named) or frozenset(known)


def _row(worker: Cluster, rendered: Rendered) -> dict[str, str]:
    if worker.credentials.cluster_profile:
        return dict.fromkeys(COLUMNS, "") | {
            "worker": worker.name,
            "secret": f"ClusterProfile {worker.credentials.cluster_profile}",
        }
    links = rendered.snapshot.observations.links
    seen = (links.credentials.get(worker.name) if links else None) or SeenCredential()
    token = seen.token
    return {
        "worker": worker.name,
        "secret": worker.kubeconfig_secret,
        "account": token.subject.removeprefix("system:serviceaccount:").replace(":", "/") if token else "",
        "issued": _time(token.issued) if token else "",
        "expires": _time(token.expires) if token else "",
        "renewal": _time(token.renewed_at) if token and worker.credentials.is_issued else "",
        "accepted": _ACCEPTED[token.is_accepted] if token else seen.problem or "unknown",
    }


def _time(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def credentials_table(rows: list[dict[str, str]], width: int | None = None) -> Iterator[str]:
    cells = tuple(tuple(Cell(row[column]) for column in COLUMNS) for row in rows)
    columns = tuple(column.upper() for column in COLUMNS)
    yield from table_lines(Table(columns, cells, OPTIONAL), Layout(width))
