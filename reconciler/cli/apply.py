"""`kfleet apply`: make the clusters as the fleet says."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from reconciler.apply import RETRIED_FOR
from reconciler.cli.observing import looking_options
from reconciler.cli.painting import paint
from reconciler.cli.planning import plan_shown
from reconciler.cli.source import commit_options, compute_or_stop, timeout_option
from reconciler.cli.work import count_changes, shown_work, verbose_option
from reconciler.errors import EdgeError, RefusedError
from reconciler.health import Ailment
from reconciler.outcome import ClusterOutcome, outcome_record
from reconciler.pipeline.capacity import Looking
from reconciler.pipeline.offline import Source, committed
from reconciler.pipeline.online import apply_fleet, connect, wait_for_health, writing
from reconciler.plan import Plan
from reconciler.plan.record import FORMAT, find_moves, plan_record
from reconciler.spec.schema import schema_folder
from reconciler.status import apply_exit_code, outcome_text, plan_text

Outcomes = tuple[ClusterOutcome, ...]

_MAKE_ONE = "make one with: kfleet plan --out FILE"


@click.command()
@commit_options
@looking_options
@timeout_option
@verbose_option
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=3,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until the written objects are well, before telling which are not.",
)
@click.option(
    "--retry-for",
    type=click.FloatRange(min=0),
    default=RETRIED_FOR.total_seconds(),
    show_default=True,
    metavar="SECONDS",
    help="How long a write is retried that a busy server, a restart or a webhook keeps from succeeding.",
)
@click.option(
    "--plan", "saved", type=click.Path(exists=True, dir_okay=False), help="Apply exactly this saved plan, or nothing."
)
@click.option("--working-tree", "is_uncommitted", is_flag=True, help="Apply the files as they lie there, uncommitted.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json is one document, after the last write: the plan, and what became of it.",
)
@click.option("--confirm-deletes", type=int, metavar="N", help="Allow exactly N deletes, whatever the policy says.")
def apply(
    source: Source,
    looking: Looking,
    timeout: float,
    is_verbose: bool,
    wait: float,
    retry_for: float,
    saved: str | None,
    is_uncommitted: bool,
    output: str,
    confirm_deletes: int | None,
) -> int:
    """Make the clusters hold what the fleet says.

    Takes a commit: the checked-out one, or --revision. A working tree with changes is refused.

    \b
    Examples:
      kfleet apply --overlay prod
      kfleet apply --plan plan.json
      kfleet apply -o json | jq .outcomes

    \b
    Exit codes:
      0  converged
      3  refused by a guard, nothing was written where it refused
      4  some clusters could not be seen or changed
    """
    started = time.monotonic()
    is_text = output == "text"
    record = read_record(Path(saved)) if saved else None
    if record is not None:
        source = replace(source, overlay=record["overlay"])
    computed = compute_or_stop(source if is_uncommitted else committed(source))
    with closing(connect(computed.spec, timedelta(seconds=timeout))) as connections:
        with writing(computed, connections, timedelta(seconds=retry_for)) as patience:
            planned = plan_shown(
                computed, connections, looking, confirm_deletes, is_verbose=is_verbose, is_applying=True
            )
            computed, made = planned.computed, planned.plan
            if record is not None:
                refuse_moved(record, plan_record(made, source.overlay))
            if is_text:
                click.echo(plan_text(made, paint))
            with shown_work(is_verbose=is_verbose) as report:
                outcomes = apply_fleet(computed, connections, made, patience, count_changes(made, report))
        ailments = wait_for_health(computed, connections, timedelta(seconds=wait if made.has_work else 0))
    took = f"{time.monotonic() - started:.1f} s"
    click.echo(_text(outcomes, ailments, took) if is_text else _json(made, source.overlay, outcomes, ailments))
    return apply_exit_code(made, outcomes)


def _text(outcomes: Outcomes, ailments: Sequence[Ailment], took: str) -> str:
    unwell = (paint(f"not well: {ailment}", "yellow") for ailment in ailments)
    return "\n".join((outcome_text(outcomes, paint), *unwell, took))


def _json(made: Plan, overlay: str, outcomes: Outcomes, ailments: Sequence[Ailment]) -> str:
    done = {"outcomes": outcome_record(outcomes), "notWell": [str(ailment) for ailment in ailments]}
    return json.dumps(plan_record(made, overlay) | done, indent=2)


def read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EdgeError(str(path), f"is no plan: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise EdgeError(str(path), f"is no plan of the format {FORMAT}", _MAKE_ONE)
    if problems := list(_find_problems(record)):
        raise EdgeError(str(path), f"is no plan: {'; '.join(problems)}", _MAKE_ONE)
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
        raise RefusedError(f"the saved plan is stale, nothing was written:\n{listed}\nmake a new plan and look at it")
