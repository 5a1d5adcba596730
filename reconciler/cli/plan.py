"""`kfleet plan`: what would change on the clusters, and why."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from reconciler.cli.options import (
    accept_source_option,
    confirm_evictions_option,
    load_or_stop,
    source_options,
    timeout_option,
)
from reconciler.cli.output import paint, verbose_option
from reconciler.cli.planning import looking_options, opened, plan_shown
from reconciler.effects.model import Effects
from reconciler.errors import EdgeError, RefusedError
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import PlanOptions
from reconciler.pipeline.load import Source, committed
from reconciler.plan.model import Plan
from reconciler.plan.record import plan_record
from reconciler.report.text import (
    effects_lines,
    effects_markdown,
    effects_record,
    narrowed,
    plan_exit_code,
    plan_markdown,
    plan_text,
)
from reconciler.snapshot.recording import Recording


@click.command()
@source_options
@looking_options
@timeout_option
@verbose_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="json is described by schemas/plan.json; markdown fits into a comment on a pull request.",
)
@click.option("--out", type=click.Path(dir_okay=False), help="Save the plan for `kfleet apply --plan FILE`.")
@click.option("--only", multiple=True, metavar="GLOB", help="Show only objects that match cluster/Kind/namespace/name.")
@click.option("--detailed-exitcode", "is_detailed", is_flag=True, help="Exit with 2 if there are changes.")
@click.option("--confirm-deletes", type=int, metavar="N", help="Allow exactly N deletes, overriding the policy.")
@confirm_evictions_option
@accept_source_option
def plan(
    source: Source,
    looking: ObserveOptions,
    recording: Recording | None,
    timeout: float,
    is_verbose: bool,
    output: str,
    out: str | None,
    only: tuple[str, ...],
    is_detailed: bool,
    confirm_deletes: int | None,
    confirm_evictions: int | None,
    is_accepted: bool,
) -> int:
    """Show what would change on the clusters and why; write nothing.

    \b
    Examples:
      kfleet plan --overlay prod
      kfleet plan --only 'cnaf-*/ClusterQueue/*'
      kfleet plan --snapshot world.json.gz
      kfleet plan --out plan.json && kfleet apply --plan plan.json

    \b
    Exit codes:
      0  no changes, or changes without --detailed-exitcode
      2  changes, with --detailed-exitcode
      3  refused by a guard
      4  a cluster could not be observed completely
    """
    started = time.monotonic()
    source = replace(source, is_identified=True, is_accepted=is_accepted)
    revision = load_or_stop(_source_to_save(source) if out else source)
    chosen = PlanOptions(confirmed_deletes=confirm_deletes)
    with opened(revision.spec, timeout, recording) as connections:
        planned = plan_shown(
            revision, connections, looking, chosen, confirmed_evictions=confirm_evictions, is_verbose=is_verbose
        )
    record = plan_record(planned.plan, source.overlay)
    if out:
        save_record(Path(out), record)
    shown, effects = _narrowed(planned.plan, only), planned.effects
    if output == "json":
        record = plan_record(shown, source.overlay) | {"effects": effects_record(effects)}
        click.echo(json.dumps(record, indent=2))
    elif output == "markdown":
        click.echo(plan_markdown(shown, source.overlay, effects=tuple(effects_markdown(effects))))
    else:
        click.echo(_text(shown, effects, time.monotonic() - started))
    return plan_exit_code(planned.plan, is_detailed=is_detailed)


def _text(shown: Plan, effects: Effects, seconds: float) -> str:
    return plan_text(shown, paint, f"{seconds:.1f} s", tuple(effects_lines(effects, paint)))


def _source_to_save(source: Source) -> Source:
    """Return the commit if the files match it: `apply` accepts no other plan without --working-tree."""
    try:
        return committed(source)
    except RefusedError:
        return source


def _narrowed(made: Plan, only: tuple[str, ...]) -> Plan:
    shown = narrowed(made, only)
    if made.changes and not shown.changes:
        globs = ", ".join(map(repr, only))
        click.secho(
            f"notice: --only {globs} matched no object; names look like {made.changes[0].ref}",
            fg="yellow",
            err=True,
        )
    return shown


def save_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write the whole file or nothing: a reader never gets half a plan."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(json.dumps(record, indent=2))
        partial.rename(path)
    except OSError as error:
        with suppress(OSError):  # if the folder does not exist, there is nothing to clean up
            partial.unlink()
        raise EdgeError(str(path), f"cannot write: {error.strerror}") from error
