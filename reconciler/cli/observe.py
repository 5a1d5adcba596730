"""`kfleet observe`: the observed capacity and the quotas derived from it."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import Any

import click

from reconciler.capacity.codec import look_record
from reconciler.capacity.model import Entry, ObservedCapacity
from reconciler.capacity.quota import quotas_of
from reconciler.capacity.store import Kept
from reconciler.cli.options import (
    load_or_stop,
    read_recording,
    recorded_capacity,
    snapshot_option,
    source_options,
    timeout_option,
)
from reconciler.cli.output import renewed_text, terminal_width
from reconciler.cli.planning import observe_for_option, opened, tell_conditions
from reconciler.errors import ExitCode
from reconciler.pipeline.capacity import ObserveOptions, listening, read_master_queues
from reconciler.pipeline.line import observe_and_render
from reconciler.pipeline.load import Revision, Source
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.quantity import ZERO, short_text
from reconciler.snapshot.model import Amounts

REFRESH = 2.0
COLUMNS = ("SOURCE", "STATE", "AGE", "COUNTS AS", "BECOMES")


@click.command()
@source_options
@observe_for_option
@snapshot_option
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--watch", "is_watched", is_flag=True, help="Refresh the table until interrupted.")
@click.option(
    "--before",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Start from an earlier observation (-o json) or a snapshot instead of the ledger on the manager.",
)
def observe(
    source: Source,
    observe_for: float,
    snapshot: str | None,
    timeout: float,
    output: str,
    is_watched: bool,
    before: str | None,
) -> int:
    """Show observed capacity per source, its age, and the quotas derived from it.

    Writes nothing. Exits with 4 if something could not be observed.

    \b
    Examples:
      kfleet observe --watch
      kfleet observe -o json > seen.json && kfleet render --snapshot seen.json
      kfleet observe --before seen.json -o json > now.json
    """
    if is_watched and output == "json":
        raise click.UsageError("--watch shows a table; -o json is for a single observation")
    if snapshot and (is_watched or before):
        raise click.UsageError("--snapshot shows a recorded observation; --watch and --before are for a new one")
    recording = read_recording(snapshot)
    looking = ObserveOptions(timedelta(seconds=observe_for), recorded_capacity(recording), kept=_kept(before))
    revision = load_or_stop(source)
    with opened(revision.spec, timeout, recording) as connections:
        if is_watched:
            _watch(revision, connections.plain(), replace(looking, observe_for=timedelta()))
        seen = observe_and_render(revision, connections, looking)
    if output == "json":
        click.echo(json.dumps(_record(seen), indent=2))
    else:
        for line in (*observed_table(seen, terminal_width()), *left_out(seen)):
            click.echo(line)
        tell_conditions(seen)
    gaps = (*connections.gaps, *seen.desired.gaps)
    for gap in gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    return ExitCode.INCOMPLETE if gaps else ExitCode.OK


def _kept(before: str | None) -> Kept | None:
    """Use an earlier observation as the ledger: without `apply`, the manager has no ledger by which a pool can age."""
    look = recorded_capacity(read_recording(before))
    return None if look is None else Kept(look.ledger, is_there=True)


def _watch(revision: Revision, connections: Connections, looking: ObserveOptions) -> None:
    """Repeat until a user interrupts it. The ledger is read from the cluster once and then kept in memory."""
    spec = read_master_queues(revision.spec, connections.clients)
    with listening(spec, connections.clients) as buses, renewed_text() as show:
        while True:
            seen = observe_and_render(revision, connections, replace(looking, buses=buses))
            notices = (f"notice: {condition}" for condition in seen.conditions)
            gaps = (f"gap: {gap}" for gap in (*connections.gaps, *seen.desired.gaps))
            show("\n".join((*observed_table(seen, terminal_width()), *left_out(seen), *notices, *gaps)))
            if seen.snapshot.capacity is not None:
                looking = replace(looking, kept=Kept(seen.snapshot.capacity.ledger, is_there=True))
            time.sleep(REFRESH)


def _record(seen: Rendered) -> dict[str, Any]:
    """Return the observation, with the quotas derived from each source. kfleet itself does not read these back."""
    look = _look_of(seen)
    record = look_record(look)
    for entry, written in zip(look.ledger.entries, record["sources"], strict=True):
        written["becomes"] = list(_becomes(seen, entry))
    return record


def _look_of(seen: Rendered) -> ObservedCapacity:
    return seen.snapshot.capacity or ObservedCapacity(datetime.now(UTC))


def observed_table(seen: Rendered, width: int | None = None) -> Iterator[str]:
    """A table; on a terminal that is too narrow for it, a few lines per source instead."""
    look = _look_of(seen)
    if not look.ledger.entries:
        yield "no capacity of this fleet is observed" if seen.snapshot.capacity is None else "nothing was observed yet"
        return
    sources = [[*_rows(seen, entry, look.now)] for entry in look.ledger.entries]
    rows = [COLUMNS, *(row for of_source in sources for row in of_source)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        yield from (line for of_source in sources for line in _block(of_source, width))
        return
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _block(rows: list[tuple[str, ...]], width: int) -> Iterator[str]:
    source, state, age, counted, _ = rows[0]
    yield f"{source}: {state}, seen {age} ago"
    for title, text in (("counts as", counted), *(("becomes", row[-1]) for row in rows)):
        yield from wrap(text, width, initial_indent=f"  {title:<9}  ", subsequent_indent=" " * 13)


def left_out(seen: Rendered) -> Iterator[str]:
    """Nodes of a flavor that do not count, and why."""
    yield from (f"not counted: {text}" for text in _look_of(seen).left_out)


def _rows(seen: Rendered, entry: Entry, now: datetime) -> Iterator[tuple[str, ...]]:
    """Return one row for a source, and one more for each further queue that has a share of it."""
    age = f"{max(0, int((now - entry.last.seen_at).total_seconds()))}s"
    state = ", ".join((str(entry.freshness), *shrinking(entry, now, seen.spec.fleet.policy.capacity.shrink_delay)))
    first, *others = _becomes(seen, entry) or ("no quota",)
    yield str(entry.source), state, age, _amounts_text(entry.granted), first
    yield from (("", "", "", "", other) for other in others)


def shrinking(entry: Entry, now: datetime, delay: timedelta) -> Iterator[str]:
    """To what each resource shrinks, and when; until then the larger amount counts."""
    for name, since in entry.shrink_pending_since.items():
        seconds = max(0, int((since + delay - now).total_seconds()))
        yield f"{name} shrinks to {short_text(name, entry.shrink_peak.get(name, ZERO))} in {seconds}s"


def _becomes(seen: Rendered, entry: Entry) -> tuple[str, ...]:
    return quotas_of(seen.spec, entry.source, ((one.ref, one.manifest) for one in seen.desired.objects))


def _amounts_text(amounts: Amounts) -> str:
    return ", ".join(f"{name} {short_text(name, amount)}" for name, amount in amounts.items()) or "nothing"
