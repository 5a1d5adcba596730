"""`kfleet snapshot`: everything that was observed, as one file."""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click

from reconciler.cli.options import load_or_stop, source_options, timeout_option
from reconciler.cli.output import shown_work, verbose_option
from reconciler.cli.planning import observe_for_option
from reconciler.errors import EdgeError
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Source
from reconciler.pipeline.snapshot import take_snapshot
from reconciler.snapshot.anonymous import anonymous
from reconciler.snapshot.recording import Recording, packed

INCOMPLETE = 4
PACKED = ".gz"
PRIVATE = 0o600


@click.command()
@source_options
@observe_for_option
@timeout_option
@verbose_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    required=True,
    metavar="FILE",
    help="Write the snapshot to this file; a name that ends in .gz makes it packed.",
)
@click.option(
    "--anonymise",
    "is_anonymous",
    is_flag=True,
    help="Leave out names of jobs, labels, messages, nodes, pods and addresses: for a file that others may read.",
)
def snapshot(source: Source, observe_for: float, timeout: float, is_verbose: bool, out: str, is_anonymous: bool) -> int:
    """Record what the clusters and message buses answer, for --snapshot of other commands.

    Writes nothing to a cluster. The file has no values of Secrets, no tokens, and of jobs only what decides about their
    admission; see docs/snapshot.md. Exits with 4 if something could not be observed: the file says what.

    \b
    Examples:
      kfleet snapshot --out world.json.gz
      kfleet snapshot --out world.json.gz --anonymise
      kfleet plan --snapshot world.json.gz
      kfleet check --snapshot world.json.gz job.yaml
    """
    revision = load_or_stop(source)
    with shown_work(is_verbose=is_verbose) as report:
        options = ObserveOptions(timedelta(seconds=observe_for))
        taken = take_snapshot(revision, timedelta(seconds=timeout), options, report)
    recording = anonymous(taken.recording) if is_anonymous else taken.recording
    size = save_recording(Path(out), recording)
    for gap in taken.gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    clusters = recording.clusters.values()
    answers = sum(len(one.answers) for one in clusters)
    click.echo(f"{out}: {len(clusters)} clusters, {answers} answers, {size / 1024:.0f} KiB", err=True)
    return INCOMPLETE if taken.gaps else 0


def save_recording(path: Path, recording: Recording) -> int:
    """Write the whole file or nothing, readable by its owner only; return its size."""
    content, partial = packed(recording, is_packed=path.suffix == PACKED), path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(PRIVATE)
        partial.write_bytes(content)
        partial.rename(path)
    except OSError as error:
        with suppress(OSError):  # if the folder does not exist, there is nothing to clean up
            partial.unlink()
        raise EdgeError(str(path), f"cannot write: {error.strerror}") from error
    return len(content)
