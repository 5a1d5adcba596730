"""`kfleet credentials`: the tokens with which the manager reaches its workers."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import click

from reconciler.cli.painting import paint
from reconciler.cli.source import commit_options, compute_or_stop, source_options, timeout_option
from reconciler.cli.work import shown_work, verbose_option
from reconciler.credential import SeenCredential
from reconciler.objects import ClusterName
from reconciler.observations import sent_workers
from reconciler.pipeline.capacity import Looking
from reconciler.pipeline.offline import Computed, Source, committed
from reconciler.pipeline.online import carry_out, connect, observe_fleet, plan_fleet, writing
from reconciler.plan import tokens_only
from reconciler.spec.model import Cluster
from reconciler.status import apply_exit_code, outcome_text, plan_text

INCOMPLETE = 4
COLUMNS = ("worker", "secret", "account", "issued", "expires", "renewal", "accepted")
_ACCEPTED = {True: "yes", False: "no", None: "unknown"}


@click.group()
def credentials() -> None:
    """Show and renew the tokens with which the manager reaches its workers.

    `kfleet apply` issues them and renews them in time by itself.
    """


@credentials.command(name="list")
@source_options
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_credentials(source: Source, timeout: float, output: str) -> int:
    """Show each worker's token: since when, until when, and whether the worker accepts it.

    Never shows a token. Exits with 4 when one could not be looked at, with 0 otherwise.

    \b
    Examples:
      kfleet credentials list --overlay prod
      kfleet credentials list -o json | jq -r '.credentials[] | select(.accepted != "yes") | .worker'
    """
    computed = compute_or_stop(source)
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        computed = observe_fleet(computed, connections, looking=Looking(timedelta()))
    finally:
        connections.close()
    rows = [_row(worker, computed) for worker in sent_workers(computed.spec)]
    if output == "json":
        click.echo(json.dumps({"credentials": rows}, indent=2))
    else:
        click.echo("\n".join(_table(rows)) if rows else "no queue of the fleet is dispatched by MultiKueue")
    gaps = (*computed.desired.gaps, *connections.gaps)
    for gap in gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    return INCOMPLETE if gaps else 0


@credentials.command()
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@commit_options
@timeout_option
@verbose_option
@click.option("--working-tree", "is_uncommitted", is_flag=True, help="Take the files as they lie there, uncommitted.")
def rotate(workers: tuple[str, ...], source: Source, timeout: float, is_verbose: bool, is_uncommitted: bool) -> int:
    """Issue new tokens now, for these workers or for all.

    Nothing else of the fleet is changed, and running jobs do not notice. An old token stays good until it expires: to
    end it at once, delete its ServiceAccount on the worker and run kfleet apply.

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
    computed = compute_or_stop(source if is_uncommitted else committed(source))
    chosen = _chosen(computed, workers)
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        with writing(computed, connections) as patience, shown_work(is_verbose=is_verbose) as report:
            computed = observe_fleet(computed, connections, chosen, looking=Looking(timedelta()))
            made = tokens_only(plan_fleet(computed, connections, report=report, is_applying=True), chosen)
            outcomes = carry_out(computed, connections, made, patience)
    finally:
        connections.close()
    click.echo(plan_text(made, paint))
    click.echo(outcome_text(outcomes, paint))
    return apply_exit_code(made, outcomes)


def _chosen(computed: Computed, named: tuple[str, ...]) -> frozenset[ClusterName]:
    known = [worker.name for worker in sent_workers(computed.spec) if worker.credentials.is_issued]
    for name in named:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise click.BadParameter(f"kfleet issues no token for {name!r}; it does for: {listed}", param_hint="WORKER")
    return frozenset(ClusterName(name) for name in named) or frozenset(known)


def _row(worker: Cluster, computed: Computed) -> dict[str, str]:
    if worker.credentials.cluster_profile:
        return dict.fromkeys(COLUMNS, "") | {
            "worker": worker.name,
            "secret": f"ClusterProfile {worker.credentials.cluster_profile}",
        }
    links = computed.seen.links
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


def _table(rows: list[dict[str, str]]) -> Iterator[str]:
    widths = {column: max(len(column), *(len(row[column]) for row in rows)) for column in COLUMNS}
    for row in ({column: column.upper() for column in COLUMNS}, *rows):
        yield "  ".join(row[column].ljust(widths[column]) for column in COLUMNS).rstrip()
