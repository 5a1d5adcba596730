"""Answers to `kfleet check`, for people and for machines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.checking import Answer, Checked, Verdict
from reconciler.cli.painting import paint
from reconciler.errors import Place

_COLOURS = {Verdict.ADMITTED: "green", Verdict.WAITS: "yellow", Verdict.UNKNOWN: "yellow"}


@dataclass(frozen=True, slots=True)
class Row:
    """A checked document, and where it stands."""

    place: Place
    checked: Checked


def row_lines(row: Row) -> Iterator[str]:
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
    for objection in answer.objections:
        yield f"    {objection.verdict}: {objection.problem}"
        if objection.remedy:
            yield f"      {objection.remedy}"
    yield from (f"    note: {note}" for note in answer.notes)
    for worker in answer.workers:
        for objection in worker.objections:
            yield f"    not on {worker.cluster}: {objection.problem}"
            if objection.remedy and not runs:
                yield f"      {objection.remedy}"


def _with_flavors(answer: Answer, name: str) -> str:
    taking = next((one for one in answer.workers if one.cluster == name), answer)
    flavors = dict.fromkeys(flavor for one in taking.assignments for flavor in one.flavors.values())
    return f"{name} ({', '.join(flavors)})" if flavors else name


def summary(rows: list[Row]) -> str:
    counts = {verdict: sum(row.checked.verdict is verdict for row in rows) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def row_record(row: Row) -> dict[str, Any]:
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
        "objections": [
            {
                "verdict": one.verdict.value,
                "reason": one.reason.value,
                "problem": one.problem,
                "remedy": one.remedy,
            }
            for one in answer.objections
        ],
        "podSets": [
            {"name": one.pod_set, "count": one.count, "flavors": dict(one.flavors)} for one in answer.assignments
        ],
        "notes": list(answer.notes),
        "runsOn": list(answer.runs_on),
        "workers": [_answer_record(worker) for worker in answer.workers],
    }
