"""`kfleet argocd`: what Argo CD's plugin server runs (deploy/argocd/plugin.yaml)."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from reconciler.argocd import SOURCE_PATH, Parameters, announcements, dressed, observed_note, read_parameters
from reconciler.capacity.model import CapacityLook
from reconciler.cli.observing import read_observations
from reconciler.cli.source import stop_on_errors
from reconciler.edges.folder import read_folder
from reconciler.errors import EdgeError, KfleetError
from reconciler.objects import ClusterName, ref_of
from reconciler.pipeline.capacity import with_recorded
from reconciler.pipeline.offline import Computed, compute, write_offline

# Argo CD gives up after 60 seconds.
DEADLINE = 55.0


@click.group()
def argocd() -> None:
    """Serve as Argo CD's plugin: the objects of one cluster, for one Application."""


@argocd.command()
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    default=DEADLINE,
    show_default=True,
    metavar="SECONDS",
    help="Give up after so long.",
)
def generate(deadline: float) -> None:
    """Print the objects of the cluster that the Application names, and nothing else.

    Reads the fleet in the current folder, and asks no cluster. Prints everything or, with an exit code, nothing: an
    empty answer would have Argo CD delete what it manages.
    """
    with _ended_in_time(deadline), _repository() as folder:
        parameters = read_parameters(os.environ)
        files = read_folder(folder)
        look = _look(parameters.observations)
        computed = with_recorded(stop_on_errors(compute(files, parameters.overlay)), look)
        text = _objects(computed, _chosen(computed, parameters))
    click.echo(text, nl=False)


@argocd.command()
def parameters() -> None:
    """Print the parameters that an Application can set, as Argo CD reads them."""
    with _ended_in_time(DEADLINE), _repository() as folder:
        files = read_folder(folder)
        clusters = [cluster.name for cluster in compute(files).spec.clusters]
    click.echo(json.dumps(announcements(clusters, files.overlay_names())))


@contextmanager
def _ended_in_time(seconds: float) -> Iterator[None]:
    """Argo CD ends a plugin with SIGTERM, and shows what it wrote on stderr."""

    def end(number: int, _frame: FrameType | None) -> None:
        reason = "was ended by SIGTERM" if number == signal.SIGTERM else f"took longer than {seconds:g} s"
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
    """The fleet's folder, seen from the root of the repository: messages name files as git does."""
    here, folder = Path.cwd(), Path(os.environ.get(SOURCE_PATH) or ".")
    parts = folder.parts
    if not parts or here.parts[-len(parts) :] != parts:
        yield "."
        return
    with chdir(here.parents[len(parts) - 1]):
        yield str(folder)


def _look(path: str) -> CapacityLook | None:
    if path and not Path(path).resolve().is_relative_to(Path.cwd().resolve()):
        raise KfleetError(f"parameter observations: {path!r} leaves the repository")
    return read_observations(path or None)


def _chosen(computed: Computed, given: Parameters) -> ClusterName:
    names = [cluster.name for cluster in computed.spec.clusters]
    if not given.cluster and len(names) == 1:
        return names[0]
    if given.cluster not in names:
        problem = f"no cluster {given.cluster!r}" if given.cluster else "is not set"
        raise KfleetError(f"parameter cluster: {problem}; there are: {', '.join(names)}")
    return ClusterName(given.cluster)


def _objects(computed: Computed, cluster: ClusterName) -> str:
    """JSON, which every reader of YAML reads the same way."""
    _refuse_unknown(computed)
    note = observed_note(computed.look.now, datetime.now(UTC)) if computed.look else ""
    manifests = write_offline(computed, cluster)
    if not manifests:
        raise KfleetError(f"cluster {cluster}: the fleet has no objects there; nothing is printed")
    return "".join(f"---\n{json.dumps(dressed(ref_of(cluster, entry), entry, note))}\n" for entry in manifests)


def _refuse_unknown(computed: Computed) -> None:
    """What is not known would be missing in the answer, and Argo CD would delete it."""
    if computed.spec.fleet.has_live_master_queues:
        raise KfleetError("fleet: MasterQueues that are read from a cluster cannot be rendered; keep them in git")
    if computed.desired.gaps:
        listed = "; ".join(map(str, computed.desired.gaps))
        raise KfleetError(f"capacity is not known: {listed} (say where it was observed: parameter observations)")
