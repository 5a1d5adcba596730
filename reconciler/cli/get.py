"""`kfleet get`: the clusters, queues, jobs, pools and tenants of a fleet as they are now."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NoReturn

import click
import yaml

from reconciler.capacity.view import pool_entries
from reconciler.cli.options import load_or_stop, source_options, timeout_option
from reconciler.cli.output import paint, renewed_text, terminal_width
from reconciler.cli.planning import looking_options, opened, plan_shown
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import observe_and_render
from reconciler.pipeline.load import Revision, Source
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections, connect
from reconciler.pipeline.render import Rendered
from reconciler.plan.model import Action, Cause, Plan
from reconciler.report.tables import Layout, table_lines
from reconciler.report.view_tables import TABLES
from reconciler.snapshot.recording import Recording
from reconciler.view.build import build_view
from reconciler.view.model import FleetGap, FleetView, PlanFacts
from reconciler.view.record import Selection, SelectionError, entry_record, in_order, select, view_record

INCOMPLETE = 4
REFRESH = 2.0
REOPENED_AFTER = 30  # refreshes
ALL = "all"
# Each kind with its other names; the first ones are those of kubectl and Kueue.
KINDS: Mapping[str, tuple[str, ...]] = {
    "clusters": ("cluster",),
    "queues": ("queue", "clusterqueues", "clusterqueue", "cq"),
    "cohorts": ("cohort", "co"),
    "jobs": ("job", "workloads", "workload", "wl", "kwl"),
    "pools": ("pool", "capacity"),
    "tenants": ("tenant",),
}
# The lists of the document that belong to a kind.
SECTIONS: Mapping[str, tuple[str, ...]] = {"queues": ("queues", "joined", "cohorts")}


def _kind(context: click.Context, option: click.Parameter, value: str) -> str:
    known = {other: kind for kind, others in KINDS.items() for other in (kind, *others)} | {ALL: ALL}
    if value not in known:
        raise click.BadParameter(f"{value!r} is not a kind; there are {', '.join(KINDS)} and all", context, option)
    return known[value]


def _complete_kind(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*KINDS, ALL) if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetQuery:
    """What is shown, and how. `kind` may be all."""

    kind: str
    selection: Selection
    output: str
    sort_by: str
    has_headers: bool
    looking: ObserveOptions

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(KINDS) if self.kind == ALL else (self.kind,)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--queue", default="", metavar="NAME", help="Only this queue and its jobs."),
        click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Only this cluster. Repeatable."),
        click.option("-A", "--all-namespaces", "is_all", is_flag=True, help="All namespaces, which is the default."),
        click.option("-n", "--namespace", default="", metavar="NAME", help="Only this namespace."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("kind", callback=_kind, shell_complete=_complete_kind)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@selection_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "name"]),
    default="text",
    show_default=True,
    help="json and yaml are described by schemas/view.json.",
)
@click.option("-w", "--watch", "is_watched", is_flag=True, help="Refresh the table until interrupted.")
@click.option("--sort-by", default="", metavar="FIELD", help="Field of the JSON to sort by. Example: created.")
@click.option("--no-headers", is_flag=True, help="Print the table without its first line.")
@source_options
@looking_options
@timeout_option
def get(
    kind: str,
    names: tuple[str, ...],
    namespace: str,
    is_all: bool,
    clusters: tuple[str, ...],
    queue: str,
    output: str,
    is_watched: bool,
    sort_by: str,
    no_headers: bool,
    source: Source,
    looking: ObserveOptions,
    recording: Recording | None,
    timeout: float,
) -> int:
    """Show clusters, queues, cohorts, jobs, pools or tenants of the fleet as they are now.

    Reads the clusters and writes nothing. Jobs that a manager dispatches are shown once, with the cluster where they
    run. What could not be observed is shown as ?, and the command then exits with 4.

    \b
    Examples:
      kfleet get clusters
      kfleet get queues -o wide
      kfleet get jobs -n vision -w
      kfleet get jobs --queue training --sort-by created
      kfleet get jobs --snapshot world.json.gz
      kfleet get jobs -o json | jq -r '.jobs[] | select(.state == "pending") | .reason'
    """
    if is_all and namespace:
        raise click.UsageError("--all-namespaces and --namespace exclude each other")
    if is_watched:
        _check_watch(output, recording)
    if kind == ALL and (names or sort_by):
        raise click.UsageError("name one kind to select by NAME or to sort")
    question = GetQuery(
        kind=kind,
        selection=Selection(frozenset(clusters), queue, namespace, frozenset(names)),
        output=output,
        sort_by=sort_by,
        has_headers=not no_headers,
        looking=looking,
    )
    revision = load_or_stop(source)
    if is_watched:
        _watch(revision, timedelta(seconds=timeout), question)
    with opened(revision.spec, timeout, recording) as connections:
        view = observe_view(revision, connections, question)
    return _answer(view, question)


def _check_watch(output: str, recording: Recording | None) -> None:
    if output not in {"text", "wide"}:
        raise click.UsageError("--watch shows a table; json, yaml and name are for a single observation")
    if recording is not None:
        raise click.UsageError("--watch follows clusters; a snapshot does not change")


def observe_view(revision: Revision, connections: Connections, question: GetQuery) -> FleetView:
    """Observe what the question needs: only clusters need a plan, and only pools need live capacity."""
    facts: Mapping[ClusterName, PlanFacts] = {}
    rendered: Rendered | None = None
    if "clusters" in question.kinds:
        planned = plan_shown(revision, connections, replace(question.looking, observe_for=timedelta()))
        facts, rendered = plan_facts(planned.plan), planned.rendered
    if "pools" in question.kinds:
        rendered = observe_and_render(revision, connections, question.looking)
    spec = rendered.spec if rendered else revision.spec
    pools = None
    if rendered is not None:
        desired = ((one.ref, one.manifest) for one in rendered.desired.objects)
        pools = pool_entries(spec, rendered.snapshot.capacity, desired)
    gaps = rendered.desired.gaps if rendered else ()
    view = build_view(
        spec, observe_fleet_objects(spec, connections), facts=facts, pools=pools, gaps=(*connections.gaps, *gaps)
    )
    return _selected(view, question)


def _selected(view: FleetView, question: GetQuery) -> FleetView:
    section = "" if question.kind == ALL else question.kind
    try:
        chosen = select(view, section, question.selection)
        return in_order(chosen, section, question.sort_by) if section else chosen
    except SelectionError as error:
        raise click.ClickException(str(error)) from error


def plan_facts(plan: Plan) -> dict[ClusterName, PlanFacts]:
    return {
        cluster.name: PlanFacts(
            sum(change.action is not Action.KEEP for change in cluster.changes),
            sum(any(field.cause is Cause.DRIFT for field in change.fields) for change in cluster.changes),
        )
        for cluster in plan.clusters
    }


def _answer(view: FleetView, question: GetQuery) -> int:
    if question.output in {"json", "yaml"}:
        sections = [section for kind in question.kinds for section in SECTIONS.get(kind, (kind,))]
        click.echo(_document(view_record(view, sections), question.output))
    elif question.output == "name":
        for line in _names(view, question):
            click.echo(line)
    else:
        for line in _table(view, question):
            click.echo(line)
        for line in _nothing(view, question):
            click.echo(line, err=True)
    for gap in view.gaps:
        click.secho(f"gap: {_gap_text(gap)}", fg="yellow", err=True)
    return INCOMPLETE if view.gaps else 0


def _document(record: Mapping[str, Any], output: str) -> str:
    if output == "json":
        return json.dumps(record, indent=2)
    text: str = yaml.dump(record, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text.rstrip()


def _names(view: FleetView, question: GetQuery) -> Iterator[str]:
    for kind in question.kinds:
        for entry in getattr(view, kind) or ():
            record = entry_record(entry)
            cluster = f"{record['cluster']}/" if kind == "cohorts" else ""
            yield f"{kind.removesuffix('s')}/{record.get('id') or cluster + record['name']}"


def _table(view: FleetView, question: GetQuery) -> Iterator[str]:
    layout = _layout(question)
    for number, kind in enumerate(question.kinds):
        table = TABLES[kind](view, is_wide=question.output == "wide")
        if table.rows:
            yield from ("",) if number else ()
            yield from table_lines(table, layout)


def _nothing(view: FleetView, question: GetQuery) -> Iterator[str]:
    """Say that a table is empty. That is not known if a cluster was not observed."""
    if question.kind != ALL and not getattr(view, question.kind):
        yield f"no {question.kind} were observed, and not everything could be" if view.gaps else f"no {question.kind}"


def _layout(question: GetQuery) -> Layout:
    """A wide table is for a wide terminal, or for one that scrolls: it is not cut. In a pipe nothing is."""
    is_terminal = sys.stdout.isatty()
    width = terminal_width() if question.output == "text" else None
    return Layout(width, question.has_headers, is_terminal, paint)


def _gap_text(gap: FleetGap) -> str:
    return f"{gap.cluster}: {gap.what}: {gap.why}"


def _watch(revision: Revision, timeout: timedelta, question: GetQuery) -> NoReturn:
    """Repeat until a user interrupts it. A lost cluster is tried again each time, and a token in a file may be new."""
    with renewed_text() as show:
        while True:
            with closing(connect(revision.spec, timeout)) as connections:
                for _ in range(1 if connections.gaps else REOPENED_AFTER):
                    view = observe_view(revision, connections, question)
                    gaps = (f"gap: {_gap_text(gap)}" for gap in view.gaps)
                    show("\n".join((*_table(view, question), *_nothing(view, question), *gaps)))
                    time.sleep(REFRESH)
