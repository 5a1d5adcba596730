"""`kfleet check`: answers as text and as JSON."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from reconciler.admission.decide import check as check_submission
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import Answer, Checked, Verdict
from reconciler.admission.state import FleetState, offline_fleet
from reconciler.cli.options import load_or_stop, read_recording, snapshot_option, source_options, timeout_option
from reconciler.cli.output import paint
from reconciler.cli.planning import opened
from reconciler.errors import ExitCode, SourceLocation
from reconciler.flux.render import to_current
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.admission import live_fleet
from reconciler.pipeline.load import Revision, Source
from reconciler.pipeline.render import render_offline
from reconciler.snapshot.recording import Recording
from reconciler.spec.files import Document
from reconciler.spec.selectors import ANNOTATION, read_targets
from reconciler.spec.yaml_reader import read_documents

_COLOURS = {Verdict.ADMITTED: "green", Verdict.WAITS: "yellow", Verdict.UNKNOWN: "yellow"}
NO_JOBS = "the input contains no job: nothing was checked"
LEFT_OUT = "not considered: LimitRanges, overhead of RuntimeClasses, preemption, size of single nodes, topology domains"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A checked document and its source location."""

    place: SourceLocation
    checked: Checked


def row_lines(row: CheckRow) -> Iterator[str]:
    verdict = row.checked.verdict
    said = paint(verdict.value, _COLOURS.get(verdict, "red"))
    yield f"{row.place}: {paint(row.checked.submission.title, 'bold')}: {said}"
    for answer in row.checked.answers:
        yield from _answer_lines(answer)


def _answer_lines(answer: Answer) -> Iterator[str]:
    way = f"LocalQueue {answer.queue}" if answer.queue else "no queue"
    way += f", ClusterQueue {answer.cluster_queue}" if answer.cluster_queue else ""
    runs = ", ".join(_with_flavors(answer, name) for name in answer.runs_on)
    yield f"  {answer.cluster}: {way}" + (f", runs on {runs}" if runs else "")
    for issue in answer.issues:
        yield f"    {issue.verdict}: {issue.problem}"
        if issue.remedy:
            yield f"      {issue.remedy}"
    yield from (f"    would let it in: {one.text}" for one in answer.remedies)
    yield from (f"    note: {note}" for note in answer.notes)
    for worker in answer.workers:
        for issue in worker.issues:
            yield f"    not on {worker.cluster}: {issue.problem}"
            if issue.remedy and not runs:
                yield f"      {issue.remedy}"
        if not runs:
            yield from (f"    would let it in there: {one.text}" for one in worker.remedies)


def _with_flavors(answer: Answer, name: str) -> str:
    taking = next((one for one in answer.workers if one.cluster == name), answer)
    flavors = dict.fromkeys(flavor for one in taking.assignments for flavor in one.flavors.values())
    return f"{name} ({', '.join(flavors)})" if flavors else name


def summary(rows: list[CheckRow]) -> str:
    counts = {verdict: sum(row.checked.verdict is verdict for row in rows) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def row_record(row: CheckRow) -> dict[str, Any]:
    submission = row.checked.submission
    return {
        "file": row.place.path,
        "line": row.place.line,
        "object": submission.title,
        "verdict": row.checked.verdict.value,
        "answers": [_answer_record(answer) for answer in row.checked.answers],
    }


def _answer_record(answer: Answer) -> dict[str, Any]:
    return {
        "cluster": answer.cluster,
        "verdict": answer.verdict.value,
        "localQueue": answer.queue,
        "clusterQueue": answer.cluster_queue,
        "issues": [
            {
                "verdict": one.verdict.value,
                "reason": one.reason.value,
                "problem": one.problem,
                "remedy": one.remedy,
            }
            for one in answer.issues
        ],
        "podSets": [
            {"name": one.pod_set, "count": one.count, "flavors": dict(one.flavors)} for one in answer.assignments
        ],
        "remedies": [{"kind": one.kind.value, "text": one.text} for one in answer.remedies],
        "notes": list(answer.notes),
        "runsOn": list(answer.runs_on),
        "workers": [_answer_record(worker) for worker in answer.workers],
    }


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@source_options
@click.option("--live", "is_live", is_flag=True, help="Read the queues and their current usage from the clusters.")
@snapshot_option
@click.option("--cluster", "clusters", multiple=True, metavar="NAME", help="Submit there. [default: manager]")
@click.option("-n", "--namespace", default="default", show_default=True, help="For documents without a namespace.")
@timeout_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(
    files: tuple[BinaryIO, ...],
    source: Source,
    is_live: bool,
    snapshot: str | None,
    clusters: tuple[str, ...],
    namespace: str,
    timeout: float,
    output: str,
) -> int:
    """Check whether jobs would be admitted, by which queue, and where they would run.

    FILES contain Jobs, Pods, JobSets, RayJobs, MiniClusters, Deployments and the other kinds that Kueue queues; - reads
    standard input. Without --live or --snapshot, the queues are those of the fleet's files, and they are empty.

    \b
    Examples:
      kfleet check job.yaml
      kustomize build jobs | kfleet check --live -
      kfleet check --snapshot world.json.gz job.yaml
      kfleet check --cluster cnaf-gpu -o json job.yaml

    \b
    Exit codes:
      0  all are admitted
      1  a file cannot be read, or no file contains a job
      3  at least one waits, is never admitted, or is not queued at all
      4  at least one is unknown, because a cluster or a capacity was not observed
    """
    if is_live and snapshot:
        raise click.UsageError("--live reads the clusters and --snapshot a file: use one of them")
    recording = read_recording(snapshot)
    is_live = is_live or recording is not None
    documents = [*read_jobs(files, namespace)]
    revision = load_or_stop(source)
    _check_cluster_names(revision, clusters)
    fleet = _live(revision, timeout, recording) if is_live else _offline(revision)
    rows = [*_rows(documents, revision, fleet, clusters)]
    if not rows:
        # A build step that writes nothing must not look like a set of jobs that are all admitted.
        raise click.ClickException(NO_JOBS)
    if output == "json":
        click.echo(json.dumps({"live": is_live, "jobs": [row_record(row) for row in rows]}, indent=2))
    else:
        _print(rows)
    return _code([row.checked.verdict for row in rows])


def read_jobs(files: Iterable[BinaryIO], namespace: str) -> Iterator[Document]:
    """Read all objects of all files; a List is replaced by its items."""
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
            raise document.error(("items", number), f"{value!r} is not an object: a List contains whole objects")
    return listed


def _placed(value: Manifest, namespace: str) -> Manifest:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": namespace}}


def _check_cluster_names(revision: Revision, clusters: Iterable[str]) -> None:
    known = [cluster.name for cluster in revision.spec.clusters]
    for name in clusters:
        if name not in known:
            raise click.BadParameter(f"no cluster {name!r}; there are: {', '.join(known)}", param_hint="--cluster")


def _offline(revision: Revision) -> FleetState:
    return offline_fleet(revision.spec, render_offline(revision).desired)


def _live(revision: Revision, timeout: float, recording: Recording | None) -> FleetState:
    with opened(revision.spec, timeout, recording) as connections:
        fleet = live_fleet(revision.spec, connections)
    for name, why in fleet.lost.items():
        click.secho(f"{name}: not observed: {why}", fg="yellow", err=True)
    return fleet


def _rows(
    documents: Iterable[Document], revision: Revision, fleet: FleetState, clusters: tuple[str, ...]
) -> Iterator[CheckRow]:
    for document in documents:
        submission = read_submission(to_current(document.value).manifest)
        if submission is None:
            click.secho(f"{document.place()}: {document.title or 'a document'}: is not a job", dim=True, err=True)
            continue
        names = [ClusterName(name) for name in clusters] or _targets(document, revision)
        yield CheckRow(SourceLocation(document.path, document.line), check_submission(submission, fleet, names))


def _targets(document: Document, revision: Revision) -> list[ClusterName]:
    """Return the clusters that the document's annotation selects."""
    if ANNOTATION not in document.annotations:
        return []
    try:
        targets = read_targets(document)
    except ValueError as error:
        raise document.error(("metadata", "annotations", ANNOTATION), str(error)) from error
    found = [cluster.name for cluster in revision.spec.targeted(targets)]
    if not found:
        known = ", ".join(cluster.name for cluster in revision.spec.clusters)
        problem = f"{document.annotations[ANNOTATION]!r} selects no cluster; there are: {known}"
        raise document.error(("metadata", "annotations", ANNOTATION), problem)
    return found


def _print(rows: list[CheckRow]) -> None:
    for row in rows:
        for line in row_lines(row):
            click.echo(line)
    click.secho(summary(rows), bold=True)
    click.secho(LEFT_OUT, dim=True, err=True)


def _code(verdicts: list[Verdict]) -> int:
    if all(verdict is Verdict.ADMITTED for verdict in verdicts):
        return ExitCode.OK
    is_certain = any(verdict not in (Verdict.ADMITTED, Verdict.UNKNOWN) for verdict in verdicts)
    return ExitCode.NOT_ADMITTED if is_certain else ExitCode.INCOMPLETE
