"""`kfleet argocd`: the commands that Argo CD's plugin server runs (deploy/argocd/plugin.yaml)."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from reconciler.capacity.model import ObservedCapacity
from reconciler.cli.options import read_recording, recorded_capacity, skipped_text, stop_on_errors
from reconciler.clients.working_tree import read_folder
from reconciler.errors import EdgeError, KfleetError
from reconciler.objects import ClusterName, ref_of
from reconciler.pipeline.load import load_files
from reconciler.pipeline.render import Rendered, find_gaps, find_unobserved, render_offline, write_offline
from reconciler.report.argocd import (
    SOURCE_PATH,
    Parameters,
    annotate_for_argocd,
    announcements,
    observed_note,
    read_parameters,
)

# Argo CD ends a plugin after 60 seconds.
DEADLINE = 55.0


@click.group()
def argocd() -> None:
    """Run as an Argo CD plugin: print the objects of one cluster for one Application."""


@argocd.command()
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    default=DEADLINE,
    show_default=True,
    metavar="SECONDS",
    help="Fail after this many seconds.",
)
def generate(deadline: float) -> None:
    """Print the objects of the cluster that the Application names.

    Reads the fleet in the current folder and contacts no cluster. Prints all objects, or fails and prints nothing:
    Argo CD would delete the objects that it manages if the output were empty.
    """
    with _ended_in_time(deadline), _repository() as folder:
        parameters = read_parameters(os.environ)
        files = read_folder(folder)
        if files.skipped:
            click.echo(f"note: {skipped_text(files)}", err=True)
        look = _look(parameters.snapshot)
        rendered = render_offline(stop_on_errors(load_files(files, parameters.overlay)), look)
        text = _objects(rendered, _chosen(rendered, parameters))
    click.echo(text, nl=False)


@argocd.command()
def parameters() -> None:
    """Print the parameters that an Application can set, in Argo CD's format."""
    with _ended_in_time(DEADLINE), _repository() as folder:
        files = read_folder(folder)
        clusters = [cluster.name for cluster in load_files(files).spec.clusters]
    click.echo(json.dumps(announcements(clusters, files.overlay_names())))


@contextmanager
def _ended_in_time(seconds: float) -> Iterator[None]:
    """Raise an error on SIGTERM, which Argo CD sends to end a plugin: it shows the plugin's stderr."""

    def end(number: int, _frame: FrameType | None) -> None:
        reason = "ended by SIGTERM" if number == signal.SIGTERM else f"took longer than {seconds:g} s"
        raise EdgeError("kfleet argocd", f"{reason}; nothing was printed")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _repository() -> Iterator[str]:
    """Return the fleet's folder relative to the root of the repository, so that messages name files as git does."""
    here, folder = Path.cwd(), Path(os.environ.get(SOURCE_PATH) or ".")
    parts = folder.parts
    if not parts or here.parts[-len(parts) :] != parts:
        yield "."
        return
    with chdir(here.parents[len(parts) - 1]):
        yield str(folder)


def _look(path: str) -> ObservedCapacity | None:
    if path and not Path(path).resolve().is_relative_to(Path.cwd().resolve()):
        raise KfleetError(f"parameter snapshot: {path!r} is outside the repository")
    return recorded_capacity(read_recording(path or None))


def _chosen(rendered: Rendered, given: Parameters) -> ClusterName:
    names = [cluster.name for cluster in rendered.spec.clusters]
    if not given.cluster and len(names) == 1:
        return names[0]
    if given.cluster not in names:
        problem = f"no cluster {given.cluster!r}" if given.cluster else "is not set"
        raise KfleetError(f"parameter cluster: {problem}; there are: {', '.join(names)}")
    return ClusterName(given.cluster)


def _objects(rendered: Rendered, cluster: ClusterName) -> str:
    """Print JSON, because all YAML parsers agree on it."""
    _refuse_unknown(rendered, cluster)
    note = observed_note(rendered.snapshot.capacity.now, datetime.now(UTC)) if rendered.snapshot.capacity else ""
    manifests = write_offline(rendered, cluster)
    if not manifests:
        raise KfleetError(f"cluster {cluster}: the fleet has no objects for it; nothing is printed")
    return "".join(
        f"---\n{json.dumps(annotate_for_argocd(ref_of(cluster, entry), entry, note))}\n" for entry in manifests
    )


def _refuse_unknown(rendered: Rendered, cluster: ClusterName) -> None:
    """Refuse to print if something of this cluster is unknown: Argo CD would delete the objects that are missing."""
    if rendered.spec.fleet.has_live_master_queues:
        raise KfleetError("fleet: MasterQueues that are read from a cluster cannot be rendered; keep them in git")
    unknown = [*find_gaps(rendered, {cluster}), *find_unobserved(rendered, {cluster})]
    if unknown:
        listed = "; ".join(map(str, unknown))
        raise KfleetError(f"capacity is not known: {listed} (set the parameter snapshot to a recorded observation)")
