"""`kfleet import`: write a fleet from what live clusters have."""

from datetime import timedelta
from pathlib import Path

import click

from reconciler.cli.init import FOLDER, print_next, refuse_existing, write_files
from reconciler.cli.init_contexts import context_options, named_contexts
from reconciler.errors import EdgeError, ExitCode, KfleetError
from reconciler.importer.collect import IMPORTED
from reconciler.importer.compose import compose
from reconciler.importer.model import ImportRequest, ObservedContexts
from reconciler.importer.text import import_text, notes_of_import
from reconciler.kueue.structure import problem_of_name
from reconciler.pipeline.contexts import observe_contexts

KINDS = (*IMPORTED, ("", "Namespace"))


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
    click.echo(import_text(seen, made))
    click.echo("\n".join(f"wrote {folder / file}" for file in made.files))
    for line in notes_of_import(seen, made):
        click.echo(line, err=True)
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
