"""`kfleet import`: write a fleet from what live clusters have."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import click

from reconciler.cli.contexts import context_options, named_contexts
from reconciler.cli.init import FOLDER, print_next, refuse_existing, write_files
from reconciler.errors import EdgeError, ExitCode, KfleetError
from reconciler.importer.collect import IMPORTED
from reconciler.importer.compose import compose
from reconciler.importer.model import ImportedFleet, ImportRequest, LeftObject, ObservedContexts
from reconciler.kueue.syntax import problem_of_name
from reconciler.pipeline.contexts import observe_contexts
from reconciler.text import counted

KINDS = (*IMPORTED, ("", "Namespace"))
_MOST_SHOWN = 20


@click.command(name="import")
@context_options
@click.option("--into", default=FOLDER, show_default=True, metavar="FOLDER", help="Folder to write the files to.")
@click.option("--name", default="fleet", show_default=True, help="Name of the fleet.")
@click.option(
    "--managed-by",
    type=click.Choice(["leave", "kfleet"]),
    default="leave",
    show_default=True,
    help="Leave objects that Argo CD, Flux, Helm or another tool writes, or import them for kfleet to take over.",
)
def import_(kubeconfig: str, contexts: tuple[str, ...], into: str, name: str, managed_by: str, timeout: float) -> int:
    """Write a fleet from what live clusters have, so that applying it changes no spec.

    Reads queues, flavors, cohorts, checks, MultiKueue objects, topologies, priorities, BindingPolicies and MasterQueues
    of the contexts, and writes YAML files with comments that say where each document comes from. Before anything is
    written, the fleet is rendered and compared with the clusters, field by field. Nothing is written to a cluster,
    Secrets are referred to and never copied, and no file is overwritten.

    \b
    Examples:
      kfleet import --context hub --context east --context west
      kfleet import --context lab --into fleet --managed-by kfleet
    """
    if problem := problem_of_name(name):
        raise KfleetError(f"--name: {problem}")
    if not contexts:
        raise KfleetError("--context: name the clusters of the fleet: --context A --context B")
    folder = Path(into)
    refuse_existing(folder)
    seen = observe_contexts(named_contexts(kubeconfig, contexts), kubeconfig, timedelta(seconds=timeout), KINDS)
    _refuse_unseen(seen)
    made = compose(seen, ImportRequest(fleet=name, takes_claimed=managed_by == "kfleet"))
    write_files(folder, made.files)
    _print_result(seen, made, folder)
    print_next(folder, kubeconfig)
    return ExitCode.INCOMPLETE if seen.gaps else ExitCode.OK


def _refuse_unseen(seen: ObservedContexts) -> None:
    """A cluster that does not answer would be missing in the fleet; one kind that cannot be read is said instead."""
    lost = [
        EdgeError(f"context {seen.contexts[name]}", gap.why, "nothing was written")
        for name, cluster in seen.objects.clusters.items()
        if not cluster.is_reachable
        for gap in cluster.gaps
    ]
    if lost:
        raise ExceptionGroup("contexts", lost)


def _print_result(seen: ObservedContexts, made: ImportedFleet, folder: Path) -> None:
    taken = Counter(found.ref.cluster for found in made.taken)
    rows = [("CLUSTER", "ROLE", "KUEUE", "OBJECTS")]
    for name, role in made.roles.items():
        release = seen.objects.clusters[name].kueue.removeprefix("v") or "unknown"
        rows.append((name, str(role), release, str(taken[name])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    total = len(made.taken)
    native = total - made.shaped
    click.echo(f"\n{counted(total, 'object')}: {made.shaped} as Flavors, Queues and Tenants, {native} as they are")
    click.echo("\n".join(f"wrote {folder / file}" for file in made.files))
    _print_left(made.left)
    for gap in seen.gaps:
        click.secho(f"not seen: {gap}", fg="yellow", err=True)
    for line in (*made.notes, *made.hand_over):
        click.echo(line, err=True)


def _print_left(left: Iterable[LeftObject]) -> None:
    """By reason, because a hundred objects of one tool have one."""
    reasons: dict[str, list[LeftObject]] = {}
    for one in left:
        reasons.setdefault(one.why, []).append(one)
    for why, objects in reasons.items():
        shown = ", ".join(str(one.ref) for one in objects[:_MOST_SHOWN])
        more = f" and {len(objects) - _MOST_SHOWN} more" if len(objects) > _MOST_SHOWN else ""
        click.echo(f"left out: {shown}{more}: {why}", err=True)
