"""`kfleet uninstall`: end a fleet, and release or delete what it wrote."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import click

from reconciler.apply.retry import RetryPolicy
from reconciler.cli.options import (
    accept_source_option,
    confirm_evictions_option,
    read_and_tell,
    source_options,
    timeout_option,
)
from reconciler.cli.output import count_changes, paint, shown_work, verbose_option
from reconciler.errors import ExitCode, RefusedError
from reconciler.pipeline.apply import writing
from reconciler.pipeline.load import Revision, Source, accepted, load_files
from reconciler.pipeline.observe import Connections, connect
from reconciler.pipeline.uninstall import (
    NOTHING_DONE,
    Confirmed,
    Ended,
    PlannedEnd,
    end_fleet,
    find_holder,
    forget_lease,
    left_of,
    plan_end,
)
from reconciler.plan.model import Plan, outcome_record
from reconciler.plan.record import plan_record
from reconciler.report.text import effects_lines, outcome_text, plan_text
from reconciler.text import counted
from reconciler.uninstall.plan import Ending

_AGAIN = "repeat the command when this has changed"
_NO = "the answer was no: nothing was written"
_CONTROLLER = "if that is kfleet run, end it first: it would write everything again"


@click.command()
@click.option(
    "--keep-objects",
    "ending",
    flag_value=Ending.RELEASE.value,
    help="Release all objects: they stay as they are, and no job notices.",
)
@click.option(
    "--delete",
    "ending",
    flag_value=Ending.DELETE.value,
    help="Delete all objects in the safe order; queues in use take no new jobs, and go when their jobs have ended.",
)
@source_options
@timeout_option
@verbose_option
@click.option("--confirm-deletes", type=int, metavar="N", help="With --delete: allow exactly N deletes.")
@confirm_evictions_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would be done, with all guards; write nothing.")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask on a terminal.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one document after the last write: the plan, its outcome, and what is left.",
)
@accept_source_option
def uninstall(
    ending: str | None,
    source: Source,
    timeout: float,
    is_verbose: bool,
    confirm_deletes: int | None,
    confirm_evictions: int | None,
    is_dry: bool,
    is_sure: bool,
    output: str,
    is_accepted: bool,
) -> int:
    """End a fleet: release what kfleet wrote, or delete it.

    Shows first what it will do. Of the files it uses only the Fleet and its Clusters. Repeat it until the fleet has
    ended: a cluster that does not answer keeps what it has, and so do queues with jobs.

    \b
    Examples:
      kfleet uninstall --keep-objects --dry-run
      kfleet uninstall --keep-objects
      kfleet uninstall --delete --confirm-deletes 14
      kfleet uninstall --delete --dry-run -o json | jq .left

    \b
    Exit codes:
      0  the fleet has ended; with --dry-run: nothing keeps it from ending
      3  refused by a guard or by you; nothing was written where it refused
      4  something is left: a cluster was not observed, or objects are still in use; repeat it later
    """
    if ending is None:
        raise click.UsageError("choose what becomes of the objects: --keep-objects or --delete")
    source = replace(source, is_identified=True, is_accepted=is_accepted)
    revision = _loaded(source)
    chosen, confirmed = Ending(ending), Confirmed(confirm_deletes, confirm_evictions)
    with closing(connect(revision.spec, timedelta(seconds=timeout))) as connections:
        plan_once = partial(_plan, revision, connections, chosen, confirmed, is_verbose=is_verbose)
        if is_dry:
            _tell_holder(find_holder(revision.spec, connections))
            planned, ended = _shown(plan_once(), output), NOTHING_DONE
        else:
            ask = _shown if is_sure else _asked
            planned, ended = _end(revision, connections, lambda: ask(plan_once(), output), is_verbose=is_verbose)
    left = ended.left or left_of(planned)
    is_over = ended.is_over or (is_dry and not left)
    _report(planned, ended, left, source.overlay, output)
    if is_dry:
        click.secho("dry run: nothing was written", dim=True, err=True)
    return _exit_code(planned.plan, is_over=is_over)


def _end(
    revision: Revision, connections: Connections, plan_once: Callable[[], PlannedEnd], *, is_verbose: bool
) -> tuple[PlannedEnd, Ended]:
    with _lease(revision, connections) as policy:
        planned = plan_once()
        ended = _carry_out(planned, connections, policy, is_verbose=is_verbose)
    if ended.is_over:
        forget_lease(revision.spec, connections)
    return planned, ended


def _loaded(source: Source) -> Revision:
    """The revision, whatever lint finds in it: documents that are wrong must not keep a fleet from ending."""
    revision = accepted(load_files(read_and_tell(source), source.overlay), source)
    if not revision.spec.clusters:
        raise RefusedError("the fleet has no Cluster, so there is nothing to release; check --path and --overlay")
    return revision


@contextmanager
def _lease(revision: Revision, connections: Connections) -> Iterator[RetryPolicy]:
    with ExitStack() as stack:
        try:
            policy = stack.enter_context(writing(revision.spec, connections))
        except RefusedError as error:
            raise RefusedError(f"{error}; {_CONTROLLER}") from error
        yield policy


def _plan(
    revision: Revision, connections: Connections, ending: Ending, confirmed: Confirmed, *, is_verbose: bool
) -> PlannedEnd:
    with shown_work(is_verbose=is_verbose) as report:
        return plan_end(revision, connections.remembering(), ending, confirmed, report)


def _tell_holder(holder: str) -> None:
    if holder:
        click.secho(f"notice: {holder} holds the lease of the fleet; {_CONTROLLER}", fg="yellow", err=True)


def _shown(planned: PlannedEnd, output: str) -> PlannedEnd:
    if output == "text":
        click.echo(_plan_text(planned))
    return planned


def _plan_text(planned: PlannedEnd) -> str:
    text = plan_text(planned.plan, paint, effects=tuple(effects_lines(planned.effects, paint)))
    return "\n".join((text, *(paint(f"note: {remark}", "yellow") for remark in planned.remarks)))


def _asked(planned: PlannedEnd, output: str) -> PlannedEnd:
    """Show the end, and ask a person at a terminal: for a release yes or no, for deletes their number."""
    _shown(planned, output)
    if not (planned.plan.has_work and sys.stdin.isatty()):
        return planned
    if output != "text":
        click.echo(_plan_text(planned), err=True)
    if planned.unconfirmed is None:
        if not click.confirm("End the fleet like this?", err=True):
            raise RefusedError(_NO)
        return planned
    question = f"Type the number of objects to delete ({planned.unconfirmed}) to go on"
    if click.prompt(question, default="", show_default=False, err=True) != str(planned.unconfirmed):
        raise RefusedError(_NO)
    return planned.with_count_confirmed()


def _carry_out(planned: PlannedEnd, connections: Connections, policy: RetryPolicy, *, is_verbose: bool) -> Ended:
    """Nothing is written as long as the number of deletes is not confirmed."""
    if planned.unconfirmed is not None:
        return NOTHING_DONE
    with shown_work(is_verbose=is_verbose) as report:
        return end_fleet(planned, connections, policy, count_changes(planned.plan, report))


def _report(planned: PlannedEnd, ended: Ended, left: Sequence[str], overlay: str, output: str) -> None:
    fleet = planned.plan.fleet
    if output == "json":
        record = plan_record(planned.plan, overlay)
        done = {"outcomes": outcome_record(ended.outcomes), "left": list(left), "ended": ended.is_over}
        click.echo(json.dumps(record | {"remarks": list(planned.remarks)} | done, indent=2))
        return
    if ended.outcomes:
        click.echo(outcome_text(ended.outcomes, paint))
    for line in left:
        click.echo(paint(f"left: {line}", "yellow"))
    if ended.is_over:
        click.echo(f"the fleet {fleet} has ended: kfleet has nothing left on its {counted(planned.count, 'cluster')}")
    elif ended.outcomes:
        click.echo(f"the fleet {fleet} has not ended yet: {_AGAIN}")


def _exit_code(plan: Plan, *, is_over: bool) -> int:
    if plan.refusals:
        return ExitCode.REFUSED
    return ExitCode.OK if is_over else ExitCode.INCOMPLETE
