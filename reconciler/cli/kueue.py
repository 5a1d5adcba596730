"""`kfleet kueue`: the release of Kueue on each cluster, installed with helm, and compared with git."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.apply.kueue_install import carry_out
from reconciler.cli.options import (
    accept_source_option,
    commit_options,
    load_or_stop,
    quiet_option,
    source_options,
    timeout_option,
)
from reconciler.cli.output import paint, shown_work, verbose_option
from reconciler.cli.planning import opened
from reconciler.clients.helm import find_helm
from reconciler.errors import ExitCode, RefusedError
from reconciler.kueue_install.decide import ordered
from reconciler.kueue_install.model import CHART, Harmony, InstallCommand, Permissions, StepOutcome, StepState
from reconciler.kueue_install.text import (
    is_in_order,
    outcome_line,
    outcome_lines,
    plan_lines,
    plan_record,
    status_lines,
    status_record,
)
from reconciler.pipeline.kueue_install import (
    InstallOrder,
    Prepared,
    fetch_charts,
    holding_lease,
    observe_status,
    prepare,
)
from reconciler.pipeline.load import Source, committed
from reconciler.pipeline.observe import Connections, connect
from reconciler.spec.model import FleetSpec

_output_option = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group()
def kueue() -> None:
    """Install and upgrade Kueue itself, cluster by cluster, with helm.

    Each Cluster says in spec.kueue.install which release it should run. No other command of kfleet installs Kueue or
    changes its release.
    """


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands take, as the arguments `allowed` and `source`."""

    @wraps(command)
    def with_permissions(
        *,
        may_downgrade: bool,
        takes_ownership: bool,
        is_forced: bool,
        clears_pending: bool,
        source: Source,
        is_uncommitted: bool,
        is_accepted: bool,
        **others: Any,
    ) -> Any:
        allowed = Permissions(may_downgrade, takes_ownership, is_forced, clears_pending)
        source = replace(source, is_identified=True, is_accepted=is_accepted)
        return command(allowed=allowed, source=source if is_uncommitted else committed(source), **others)

    decorated: Callable[..., Any] = with_permissions
    for option in reversed(_RUN_OPTIONS):
        decorated = option(decorated)
    return decorated


_RUN_OPTIONS = (
    click.argument("clusters", nargs=-1, metavar="[CLUSTER]..."),
    commit_options,
    quiet_option,
    timeout_option,
    verbose_option,
    click.option(
        "--working-tree", "is_uncommitted", is_flag=True, help="Use the working tree, including uncommitted changes."
    ),
    click.option(
        "--chart",
        default=CHART,
        show_default=True,
        metavar="CHART",
        help="Kueue's chart: an oci:// address, a folder or an archive.",
    ),
    click.option(
        "--timeout",
        "longest",
        type=click.FloatRange(min=1),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="How long each cluster may take to become healthy.",
    ),
    _output_option,
    click.option("--dry-run", "is_dry", is_flag=True, help="Show the order and all refusals; write nothing."),
    click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask on a terminal."),
    click.option(
        "--allow-downgrade", "may_downgrade", is_flag=True, help="Allow an older release than the running one."
    ),
    click.option(
        "--take-ownership", "takes_ownership", is_flag=True, help="Let Helm take over a Kueue installed without it."
    ),
    click.option(
        "--force-conflicts", "is_forced", is_flag=True, help="Overwrite fields of the chart that others have changed."
    ),
    click.option(
        "--clear-pending",
        "clears_pending",
        is_flag=True,
        help="Say that no helm runs, although its record is not finished.",
    ),
    accept_source_option,
)


@kueue.command()
@_run_options
def install(clusters: tuple[str, ...], **options: Any) -> int:
    """Install Kueue on clusters that have none: on those named, in that order, or on all.

    Shows what it will do, and asks on a terminal. Each cluster follows only when Kueue is healthy on the one before.
    Without names, workers come before their manager, and clusters that have Kueue already are skipped.

    \b
    Examples:
      kfleet kueue install --dry-run
      kfleet kueue install east west hub
      kfleet kueue install east --chart ./charts/kueue

    \b
    Exit codes:
      0  every cluster is healthy with the release of git; with --dry-run: nothing prevents that
      3  refused; nothing was installed anywhere
      4  a cluster cannot be observed, or did not become healthy; the clusters after it were not started
    """
    return _run(InstallCommand.INSTALL, clusters, **options)


@kueue.command()
@_run_options
def upgrade(clusters: tuple[str, ...], **options: Any) -> int:
    """Bring Kueue to the release and the values of git: on the clusters named, in that order, or on all.

    Shows what it will do, and asks on a terminal. Refuses what would break, before it changes anything. Each cluster
    follows only when Kueue is healthy on the one before. Without names, workers come before their manager.

    \b
    Examples:
      kfleet kueue upgrade --dry-run
      kfleet kueue upgrade east
      kfleet kueue upgrade --yes -o json

    \b
    Exit codes:
      0  every cluster is healthy with the release of git; with --dry-run: nothing prevents that
      3  refused; nothing was changed anywhere
      4  a cluster cannot be observed, or did not become healthy; the clusters after it were not started
    """
    return _run(InstallCommand.UPGRADE, clusters, **options)


@kueue.command()
@source_options
@timeout_option
@_output_option
def status(source: Source, timeout: float, output: str) -> int:
    """Show which release of Kueue runs on each cluster, what git says, and whether it is healthy.

    Needs no helm, and writes nothing: what it sends is a dry run.

    \b
    Examples:
      kfleet kueue status
      kfleet kueue status -o json | jq -r '.clusters[] | select(.state != "in sync") | .cluster'

    \b
    Exit codes:
      0  every cluster runs healthily what git says
      2  a cluster differs from git, or is unhealthy
      4  a cluster could not be observed
    """
    revision = load_or_stop(source)
    with opened(revision.spec, timeout) as connections:
        # Not with the memory of that command: a dry run is a new question each time.
        statuses = observe_status(revision.spec, connections.plain())
    if output == "json":
        click.echo(json.dumps(status_record(statuses), indent=2))
    else:
        click.echo("\n".join(status_lines(statuses, paint)))
    if any(one.why or one.harmony is Harmony.UNKNOWN for one in statuses):
        return ExitCode.INCOMPLETE
    return ExitCode.OK if all(map(is_in_order, statuses)) else ExitCode.CHANGES


def _run(
    mode: InstallCommand,
    names: tuple[str, ...],
    *,
    source: Source,
    timeout: float,
    is_verbose: bool,
    chart: str,
    longest: float,
    output: str,
    is_dry: bool,
    is_sure: bool,
    allowed: Permissions,
) -> int:
    revision = load_or_stop(source)
    clusters = ordered(revision.spec, names)
    helm = find_helm()
    with (
        tempfile.TemporaryDirectory(prefix="kfleet-chart-") as folder,
        closing(connect(revision.spec, timedelta(seconds=timeout))) as connections,
        _writing(revision.spec, connections, is_dry=is_dry) as lost_lease,
    ):
        with shown_work(is_verbose=is_verbose) as report:
            charts = fetch_charts(helm, chart, clusters, Path(folder))
            order = InstallOrder(
                helm=helm,
                charts=charts,
                mode=mode,
                allowed=allowed,
                is_named=bool(names),
                timeout=timedelta(seconds=longest),
            )
            prepared = prepare(revision.spec, connections, clusters, order, report)
        if output == "text":
            click.echo("\n".join(plan_lines(prepared.plan, paint)))
        if is_dry or prepared.plan.is_refused or prepared.plan.gaps:
            return _stop(prepared, output)
        if not is_sure:
            _ask(prepared, output)
        with _explained(), shown_work(is_verbose=is_verbose) as report:
            outcomes = carry_out(
                replace(prepared.installer, lost_lease=lost_lease),
                prepared.plan.steps,
                report,
                lambda outcome: _tell(outcome, output),
            )
    return _show(prepared, outcomes, output)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        where = "kfleet kueue status says where each cluster stands; repeat the command to go on"
        click.echo(where, err=True)
        raise


def _writing(spec: FleetSpec, connections: Connections, *, is_dry: bool) -> AbstractContextManager[Callable[[], str]]:
    return nullcontext(lambda: "") if is_dry else holding_lease(spec, connections)


def _stop(prepared: Prepared, output: str) -> int:
    """Stop before anything is written, on all clusters: their order is a part of what was wanted."""
    plan = prepared.plan
    if output == "json":
        click.echo(_json(prepared))
    if not (plan.is_refused or plan.gaps):
        click.secho("dry run: nothing was written", dim=True, err=True)
        return ExitCode.OK
    click.secho("nothing was changed; name the clusters that should go ahead without the others", err=True)
    return ExitCode.REFUSED if plan.is_refused else ExitCode.INCOMPLETE


def _json(prepared: Prepared, outcomes: tuple[StepOutcome, ...] = ()) -> str:
    return json.dumps(plan_record(prepared.plan, outcomes), indent=2)


def _ask(prepared: Prepared, output: str) -> None:
    """Ask a person at a terminal; in a pipeline there is no one to ask."""
    if not (prepared.plan.has_work and sys.stdin.isatty()):
        return
    if output != "text":
        click.echo("\n".join(plan_lines(prepared.plan, paint)), err=True)
    if not click.confirm("Go ahead, one cluster after the other?", err=True):
        raise RefusedError("the answer was no: nothing was changed")


def _tell(outcome: StepOutcome, output: str) -> None:
    if output == "text" and outcome.state is not StepState.FAILED:
        click.echo(outcome_line(outcome, paint))


def _show(prepared: Prepared, outcomes: tuple[StepOutcome, ...], output: str) -> int:
    has_failed = any(outcome.state is StepState.FAILED for outcome in outcomes)
    if output == "json":
        click.echo(_json(prepared, outcomes))
    elif has_failed:
        left = [one for one in outcomes if one.state in {StepState.FAILED, StepState.NOT_STARTED}]
        click.echo("\n".join(outcome_lines(left, paint)))
    return ExitCode.INCOMPLETE if has_failed else ExitCode.OK
