"""`kfleet check`: whether a job would be admitted, and where."""

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import BinaryIO

import click

from reconciler.checking import FleetState, Verdict, offline_fleet, read_submission
from reconciler.checking import check as check_submission
from reconciler.cli.check_text import Row, row_lines, row_record, summary
from reconciler.cli.source import compute_or_stop, source_options, timeout_option
from reconciler.errors import Place
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.admission import live_fleet
from reconciler.pipeline.offline import Computed, Source
from reconciler.pipeline.online import connect
from reconciler.spec.document import Document
from reconciler.spec.documents import read_documents
from reconciler.spec.minicluster import to_current
from reconciler.spec.targets import ANNOTATION, read_targets

NOT_ADMITTED = 3
INCOMPLETE = 4
NO_JOBS = "no job in what was given: nothing was checked"
LEFT_OUT = "not considered: LimitRanges, overhead of RuntimeClasses, preemption, room in topologies"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@source_options
@click.option("--live", "is_live", is_flag=True, help="Ask the clusters for their queues and what is in use now.")
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Hand it in there. [default: manager]")
@click.option("-n", "--namespace", default="default", show_default=True, help="For documents that name none.")
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(
    files: tuple[BinaryIO, ...],
    source: Source,
    is_live: bool,
    clusters: tuple[str, ...],
    namespace: str,
    timeout: float,
    output: str,
) -> int:
    """Say whether jobs would be admitted, by which queue, and where they would run.

    FILES hold Jobs, Pods, JobSets, RayJobs, MiniClusters, Deployments and the other kinds that Kueue queues; - reads
    standard input. Without --live the queues are those of the fleet's files, and empty.

    \b
    Examples:
      kfleet check job.yaml
      kustomize build jobs | kfleet check --live -
      kfleet check --cluster cnaf-gpu -o json job.yaml

    \b
    Exit codes:
      0  all are admitted
      1  a file cannot be read, or no file holds a job
      3  one waits, is never admitted, or is not queued at all
      4  one cannot be told, because a cluster or a capacity was not seen
    """
    documents = [*_documents(files, namespace)]
    computed = compute_or_stop(source)
    _refuse_strangers(computed, clusters)
    fleet = _live(computed, timeout) if is_live else offline_fleet(computed.spec, computed.desired)
    rows = [*_rows(documents, computed, fleet, clusters)]
    if not rows:
        # A build step that writes nothing must not look like jobs that are all admitted.
        raise click.ClickException(NO_JOBS)
    if output == "json":
        click.echo(json.dumps({"live": is_live, "jobs": [row_record(row) for row in rows]}, indent=2))
    else:
        _print(rows)
    return _code([row.checked.verdict for row in rows])


def _documents(files: Iterable[BinaryIO], namespace: str) -> Iterator[Document]:
    """All objects of all files; a List is what it holds."""
    for number, file in enumerate(files):
        reading = read_documents({getattr(file, "name", "") or f"file {number + 1}": file.read()})
        if reading.errors:
            raise ExceptionGroup("jobs", list(reading.errors))
        for document in reading.documents:
            for value in _values(document):
                yield Document(document.path, document.line, _placed(value, namespace))


def _values(document: Document) -> list[Manifest]:
    listed = document.value.get("items") if document.kind == "List" else None
    if not isinstance(listed, list):
        return [document.value]
    for number, value in enumerate(listed):
        if not isinstance(value, dict):
            raise document.error(("items", number), f"{value!r} is no object: a List holds whole objects")
    return listed


def _placed(value: Manifest, namespace: str) -> Manifest:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": namespace}}


def _refuse_strangers(computed: Computed, clusters: Iterable[str]) -> None:
    known = [cluster.name for cluster in computed.spec.clusters]
    for name in clusters:
        if name not in known:
            raise click.BadParameter(f"no cluster {name!r}; there are: {', '.join(known)}", param_hint="--cluster")


def _live(computed: Computed, timeout: float) -> FleetState:
    connections = connect(computed.spec, timedelta(seconds=timeout))
    try:
        fleet = live_fleet(computed.spec, connections)
    finally:
        connections.close()
    for name, why in fleet.lost.items():
        click.secho(f"{name}: not seen: {why}", fg="yellow", err=True)
    return fleet


def _rows(
    documents: Iterable[Document], computed: Computed, fleet: FleetState, clusters: tuple[str, ...]
) -> Iterator[Row]:
    for document in documents:
        submission = read_submission(to_current(document.value).manifest)
        if submission is None:
            click.secho(f"{document.place()}: {document.title or 'a document'}: is no job", dim=True, err=True)
            continue
        names = [ClusterName(name) for name in clusters] or _targets(document, computed)
        yield Row(Place(document.path, document.line), check_submission(submission, fleet, names))


def _targets(document: Document, computed: Computed) -> list[ClusterName]:
    """Where the fleet would put it, for a document that says so."""
    if ANNOTATION not in document.annotations:
        return []
    try:
        targets = read_targets(document)
    except ValueError as error:
        raise document.error(("metadata", "annotations", ANNOTATION), str(error)) from error
    found = [cluster.name for cluster in computed.spec.targeted(targets)]
    if not found:
        known = ", ".join(cluster.name for cluster in computed.spec.clusters)
        problem = f"{document.annotations[ANNOTATION]!r} selects no cluster; there are: {known}"
        raise document.error(("metadata", "annotations", ANNOTATION), problem)
    return found


def _print(rows: list[Row]) -> None:
    for row in rows:
        for line in row_lines(row):
            click.echo(line)
    click.secho(summary(rows), bold=True)
    click.secho(LEFT_OUT, dim=True, err=True)


def _code(verdicts: list[Verdict]) -> int:
    if all(verdict is Verdict.ADMITTED for verdict in verdicts):
        return 0
    is_certain = any(verdict not in (Verdict.ADMITTED, Verdict.UNKNOWN) for verdict in verdicts)
    return NOT_ADMITTED if is_certain else INCOMPLETE
