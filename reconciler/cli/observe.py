"""`kfleet observe`: what has how much now, and what becomes of it."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from reconciler.capacity.becomes import quotas_of
from reconciler.capacity.model import CapacityLook, Entry
from reconciler.capacity.recording import look_record
from reconciler.cli.observing import observe_for_option, read_observations, tell_conditions
from reconciler.cli.source import compute_or_stop, source_options, timeout_option
from reconciler.observations.ledger import Kept
from reconciler.observed import Amounts
from reconciler.pipeline.capacity import Looking, listening, with_master_queues
from reconciler.pipeline.offline import Computed, Source
from reconciler.pipeline.online import Connections, connect, observe_fleet

INCOMPLETE = 4
REFRESH = 2.0
COLUMNS = ("SOURCE", "STATE", "AGE", "COUNTS AS", "BECOMES")


@click.command()
@source_options
@observe_for_option
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--watch", "is_watched", is_flag=True, help="Show the table again and again, until interrupted.")
@click.option(
    "--before",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Go on from an earlier look (-o json) instead of what kfleet keeps on the manager.",
)
def observe(
    source: Source, observe_for: float, timeout: float, output: str, is_watched: bool, before: str | None
) -> int:
    """Show what has how much now: pools, nodes, clusters, their age, and what each becomes.

    Writes nothing anywhere. Exits with 4 when something could not be seen.

    \b
    Examples:
      kfleet observe --watch
      kfleet observe -o json > seen.json && kfleet plan --observations seen.json
      kfleet observe --before seen.json -o json > now.json
    """
    if is_watched and output == "json":
        raise click.UsageError("--watch shows a table; -o json is for a single look")
    computed, looking = compute_or_stop(source), Looking(timedelta(seconds=observe_for), kept=_kept(before))
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        if is_watched:
            _watch(computed, connections, replace(looking, observe_for=timedelta()))
        seen = observe_fleet(computed, connections, looking=looking)
    finally:
        connections.close()
    if output == "json":
        click.echo(json.dumps(_record(seen), indent=2))
    else:
        for line in observed_table(seen):
            click.echo(line)
        tell_conditions(seen)
    gaps = (*connections.gaps, *seen.desired.gaps)
    for gap in gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    return INCOMPLETE if gaps else 0


def _kept(before: str | None) -> Kept | None:
    """An earlier look as the ledger. Where nobody applies, none lies on the manager that would make a pool grow old."""
    look = read_observations(before)
    return None if look is None else Kept(look.ledger, is_there=True)


def _watch(computed: Computed, connections: Connections, looking: Looking) -> None:
    """Until somebody interrupts it. The ledger on the cluster is read once and then carried on here."""
    spec = with_master_queues(computed, connections.ports).spec
    with listening(spec, connections.ports) as buses, _renewed_text() as show:
        while True:
            seen = observe_fleet(computed, connections, looking=replace(looking, buses=buses))
            notices = (f"notice: {condition}" for condition in seen.conditions)
            gaps = (f"gap: {gap}" for gap in (*connections.gaps, *seen.desired.gaps))
            show("\n".join((*observed_table(seen), *notices, *gaps)))
            if seen.look is not None:
                looking = replace(looking, kept=Kept(seen.look.ledger, is_there=True))
            time.sleep(REFRESH)


@contextmanager
def _renewed_text() -> Iterator[Callable[[str], None]]:
    """A text in place of the one before; in a pipe or a file, one after the other."""
    if not sys.stdout.isatty():
        yield click.echo
        return
    from rich.console import Console  # noqa: PLC0415  (takes a tenth of a second)
    from rich.live import Live  # noqa: PLC0415  (the same)
    from rich.text import Text  # noqa: PLC0415  (the same)

    with Live(console=Console(), auto_refresh=False) as live:
        yield lambda text: live.update(Text(text), refresh=True)


def _record(seen: Computed) -> dict[str, Any]:
    """The look itself, with what becomes of each source for whoever reads it; kfleet reads that part no more."""
    look = _look_of(seen)
    record = look_record(look)
    for entry, written in zip(look.ledger.entries, record["sources"], strict=True):
        written["becomes"] = list(_becomes(seen, entry))
    return record


def _look_of(seen: Computed) -> CapacityLook:
    return seen.look or CapacityLook(datetime.now(UTC))


def observed_table(seen: Computed) -> Iterator[str]:
    look = _look_of(seen)
    if not look.ledger.entries:
        yield "nothing of this fleet is observed" if seen.look is None else "nothing was seen yet"
        return
    rows = [COLUMNS, *(row for entry in look.ledger.entries for row in _rows(seen, entry, look.now))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _rows(seen: Computed, entry: Entry, now: datetime) -> Iterator[tuple[str, ...]]:
    """One row for a source, and one more for each further queue that has a part of it."""
    age = f"{max(0, int((now - entry.last.seen_at).total_seconds()))}s"
    state = f"{entry.freshness}, shrinks" if entry.lower_since else str(entry.freshness)
    first, *others = _becomes(seen, entry) or ("no quota",)
    yield str(entry.source), state, age, _amounts_text(entry.granted), first
    yield from (("", "", "", "", other) for other in others)


def _becomes(seen: Computed, entry: Entry) -> tuple[str, ...]:
    return quotas_of(seen.spec, entry.source, ((one.ref, one.manifest) for one in seen.desired.objects))


def _amounts_text(amounts: Amounts) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items()) or "nothing"
