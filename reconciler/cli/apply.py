"""`kfleet apply`: write the fleet's objects to the clusters."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from reconciler.apply.retry import RETRIED_FOR
from reconciler.cli.options import (
    accept_source_option,
    commit_options,
    confirm_evictions_option,
    load_or_stop,
    quiet_option,
    timeout_option,
)
from reconciler.cli.output import count_changes, paint, shown_work, verbose_option
from reconciler.cli.planning import capacity_options, plan_shown
from reconciler.errors import EdgeError, RefusedError
from reconciler.objects import ClusterName
from reconciler.pipeline.apply import apply as apply_plan
from reconciler.pipeline.apply import writing
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import Planned, PlanOptions
from reconciler.pipeline.load import Revision, Source, committed
from reconciler.pipeline.observe import Connections, connect
from reconciler.pipeline.plan import Scope
from reconciler.pipeline.report import wait_for_health
from reconciler.plan.model import ClusterOutcome, outcome_record
from reconciler.plan.record import FORMAT, find_moves, plan_record
from reconciler.report.health import HealthIssue
from reconciler.report.text import apply_exit_code, effects_lines, effects_record, outcome_text, plan_text
from reconciler.spec.model import FleetSpec
from reconciler.spec.schema import schema_folder
from reconciler.text import suggest

Outcomes = tuple[ClusterOutcome, ...]

_MAKE_ONE = "create one with: kfleet plan --out FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of the command. `saved` is the file of a saved plan; `wait` and `retry_for` are in seconds."""

    looking: ObserveOptions
    timeout: float
    is_verbose: bool
    wait: float
    retry_for: float
    saved: str | None
    is_uncommitted: bool
    output: str
    clusters: tuple[str, ...]
    only: tuple[str, ...]
    is_dry: bool
    is_sure: bool
    confirm_deletes: int | None
    confirm_evictions: int | None


@click.command()
@commit_options
@quiet_option
@capacity_options
@timeout_option
@verbose_option
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=3,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the written objects to become healthy before reporting those that are not.",
)
@click.option(
    "--retry-for",
    type=click.FloatRange(min=0),
    default=RETRIED_FOR.total_seconds(),
    show_default=True,
    metavar="SECONDS",
    help="How long to retry a write that fails because a server is busy or restarting, or because of a webhook.",
)
@click.option("--plan", "saved", type=click.Path(exists=True, dir_okay=False), help="Apply exactly this saved plan.")
@click.option(
    "--working-tree", "is_uncommitted", is_flag=True, help="Apply the working tree, including uncommitted changes."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one document after the last write: the plan and its outcome.",
)
@click.option(
    "--cluster", "clusters", multiple=True, metavar="NAME", help="Change only this cluster (repeatable): a canary."
)
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Change only objects that match cluster/Kind/namespace/name, and what they need (repeatable).",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would be written, with all guards; write nothing.")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask on a terminal.")
@click.option("--confirm-deletes", type=int, metavar="N", help="Allow exactly N deletes, overriding the policy.")
@confirm_evictions_option
@accept_source_option
def apply(source: Source, is_accepted: bool, **options: Any) -> int:
    """Apply the fleet in git to the clusters.

    Applies a commit: HEAD, or --revision. Refuses a working tree with uncommitted changes. Asks on a terminal before it
    writes, unless --yes or a saved plan is given. With --cluster or --only it also creates what the selected objects
    need, and refuses if that is on a cluster that is not selected.

    \b
    Examples:
      kfleet apply --overlay prod
      kfleet apply --plan plan.json
      kfleet apply --cluster cnaf-cpu --dry-run
      kfleet apply --only '*/ClusterQueue/gpu'
      kfleet apply --yes -o json | jq .outcomes

    \b
    Exit codes:
      0  converged; with --dry-run: nothing keeps it from being applied
      3  refused by a guard or by you; nothing was written where it refused; of too many deletes, nothing was deleted
      4  some clusters could not be observed or changed, or an object that has to be deleted still exists
    """
    return _apply(replace(source, is_identified=True, is_accepted=is_accepted), _Options(**options))


def _apply(source: Source, chosen: _Options) -> int:
    started = time.monotonic()
    record = read_record(Path(chosen.saved)) if chosen.saved else None
    if record is not None:
        source = replace(source, overlay=record["overlay"])
    revision = load_or_stop(source if chosen.is_uncommitted else committed(source))
    scope = read_scope(revision.spec, chosen.clusters, chosen.only, chosen.saved)
    with closing(connect(revision.spec, timedelta(seconds=chosen.timeout))) as connections:
        make_plan = partial(_plan, revision, connections, scope, chosen)
        if chosen.is_dry:
            return _dry_run(make_plan(), record, source.overlay, chosen.output)
        with writing(revision.spec, connections, timedelta(seconds=chosen.retry_for)) as policy:
            planned = _show(make_plan(), record, source.overlay, chosen.output)
            if not (chosen.is_sure or chosen.saved):
                ask(planned, chosen.output)
            with shown_work(is_verbose=chosen.is_verbose) as report:
                tell = count_changes(planned.plan, report)
                outcomes = apply_plan(planned.rendered, connections, planned.plan, policy, tell)
        seconds = timedelta(seconds=chosen.wait if planned.plan.has_work else 0)
        health_issues = wait_for_health(planned.rendered, connections, seconds)
    if chosen.output == "text":
        click.echo(_text(outcomes, health_issues, f"{time.monotonic() - started:.1f} s"))
    else:
        click.echo(_json(planned, source.overlay, outcomes, health_issues))
    return apply_exit_code(planned.plan, outcomes)


def _plan(revision: Revision, connections: Connections, scope: Scope, chosen: _Options) -> Planned:
    return plan_shown(
        revision,
        connections.remembering(),  # only for the plan: its answers are old after the first write
        chosen.looking,
        PlanOptions(scope=scope, confirmed_deletes=chosen.confirm_deletes, is_applying=not chosen.is_dry),
        confirmed_evictions=chosen.confirm_evictions,
        is_verbose=chosen.is_verbose,
    )


def read_scope(
    spec: FleetSpec, clusters: tuple[str, ...], patterns: tuple[str, ...], saved: str | None = None
) -> Scope:
    if saved and (clusters or patterns):
        raise click.UsageError("--plan applies a whole plan; --cluster and --only select a part of a new one")
    known = [cluster.name for cluster in spec.clusters]
    for name in clusters:
        if name not in known:
            raise click.BadParameter(
                f"no cluster {name!r}{suggest(name, known)}; there are: {', '.join(known)}", param_hint="--cluster"
            )
    return Scope(clusters=tuple(map(ClusterName, clusters)), patterns=patterns)


def _show(planned: Planned, record: Mapping[str, Any] | None, overlay: str, output: str) -> Planned:
    """Print the plan, unless it is another one than a person has reviewed and saved."""
    if record is not None:
        refuse_moved(record, plan_record(planned.plan, overlay))
    if output == "text":
        click.echo(_plan_text(planned))
    return planned


def _dry_run(planned: Planned, record: Mapping[str, Any] | None, overlay: str, output: str) -> int:
    _show(planned, record, overlay, output)
    if output == "json":
        click.echo(json.dumps(_record(planned, overlay), indent=2))
    click.secho("dry run: nothing was written", dim=True, err=True)
    return apply_exit_code(planned.plan, ())


def _plan_text(planned: Planned) -> str:
    return plan_text(planned.plan, paint, effects=tuple(effects_lines(planned.effects, paint)))


def ask(planned: Planned, output: str) -> None:
    """Ask a person at a terminal; in a pipeline there is no one to ask.

    The lease is held meanwhile, so that the answer is about what is written.
    """
    if not (planned.plan.has_work and sys.stdin.isatty()):
        return
    if output != "text":
        click.echo(_plan_text(planned), err=True)
    if not click.confirm("Apply this plan?", err=True):
        raise RefusedError("the answer was no: nothing was written")


def _text(outcomes: Outcomes, health_issues: Sequence[HealthIssue], took: str) -> str:
    unhealthy = (paint(f"unhealthy: {health_issue}", "yellow") for health_issue in health_issues)
    return "\n".join((outcome_text(outcomes, paint), *unhealthy, took))


def _json(planned: Planned, overlay: str, outcomes: Outcomes, health_issues: Sequence[HealthIssue]) -> str:
    done = {"outcomes": outcome_record(outcomes), "unhealthy": [str(health_issue) for health_issue in health_issues]}
    return json.dumps(_record(planned, overlay) | done, indent=2)


def _record(planned: Planned, overlay: str) -> dict[str, Any]:
    return plan_record(planned.plan, overlay) | {"effects": effects_record(planned.effects)}


def read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EdgeError(str(path), f"is not a plan: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise EdgeError(str(path), f"is not a plan of the format {FORMAT}", _MAKE_ONE)
    if problems := list(_find_problems(record)):
        raise EdgeError(str(path), f"is not a plan: {'; '.join(problems)}", _MAKE_ONE)
    return record


def _find_problems(record: Mapping[str, Any]) -> Iterator[str]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (a sixth of a second, for saved plans only)

    schema = json.loads((schema_folder() / "plan.json").read_text(encoding="utf-8"))
    for error in Draft202012Validator(schema).iter_errors(record):
        yield f"{error.json_path}: {error.message}"


def refuse_moved(saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    moves = list(find_moves(saved, now))
    if moves:
        listed = "\n".join(f"  {move}" for move in moves[:20])
        raise RefusedError(f"the saved plan is stale, nothing was written:\n{listed}\nmake a new plan and review it")
