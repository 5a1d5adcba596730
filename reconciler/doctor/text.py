"""The report of the doctor as text, JSON and markdown."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.doctor.model import Diagnostic, DoctorReport, Urgency
from reconciler.text import Paint, code, counted, one_line, unpainted

_STYLES: Mapping[Urgency, str] = {Urgency.ERROR: "red", Urgency.WARNING: "yellow", Urgency.ADVICE: "cyan"}
_MOST_NAMED = 3
_NOUNS: Mapping[Urgency, str] = {Urgency.ERROR: "error", Urgency.WARNING: "warning", Urgency.ADVICE: "piece of advice"}


def doctor_text(report: DoctorReport, paint: Paint = unpainted) -> str:
    return "\n".join([*_lines(report, paint), summary(report)])


def _lines(report: DoctorReport, paint: Paint) -> Iterator[str]:
    for alike in _together(report.diagnostics):
        one = alike[0]
        where = ", ".join(other.where for other in alike[:_MOST_NAMED])
        more = f" and {len(alike) - _MOST_NAMED} more" if len(alike) > _MOST_NAMED else ""
        yield f"{paint(f'{one.severity}:', _STYLES[one.severity])} {where}{more}: {one_line(one.message)} [{one.code}]"
        if one.remedy:
            yield f"    {one_line(one.remedy)}"
    for gap in report.gaps:
        yield f"{paint('not seen:', 'yellow')} {gap}"
    if report.diagnostics or report.gaps:
        yield ""


def _together(diagnostics: Iterable[Diagnostic]) -> Iterable[list[Diagnostic]]:
    """What is the same of many objects is one line: a hundred queues of a Kueue that is down have one cause."""
    found: dict[tuple[str, ...], list[Diagnostic]] = {}
    for one in diagnostics:
        found.setdefault((one.severity, one.code, one.message, one.remedy), []).append(one)
    return found.values()


def summary(report: DoctorReport) -> str:
    known = ", ".join(f"{name} (Kueue {release or 'unknown'})" for name, release in report.clusters.items())
    counts = [
        counted(number, _NOUNS[severity]).replace("piece of advices", "pieces of advice")
        for severity in Urgency
        if (number := report.count(severity))
    ]
    gaps = [f"{counted(len(report.gaps), 'gap')}"] if report.gaps else []
    return f"{known or 'no cluster answered'}: {', '.join([*counts, *gaps]) or 'nothing to say'}"


def doctor_record(report: DoctorReport) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "kueue": release} for name, release in report.clusters.items()],
        "diagnostics": [_record(one) for one in report.diagnostics],
        "gaps": [{"cluster": gap.cluster, "what": gap.what, "why": gap.why} for gap in report.gaps],
        "summary": {str(severity): report.count(severity) for severity in Urgency},
    }


def _record(one: Diagnostic) -> dict[str, str]:
    return {
        "severity": str(one.severity),
        "code": one.code,
        "cluster": one.cluster,
        "subject": one.subject,
        "message": one_line(one.message),
        "remedy": one_line(one.remedy),
    }


def doctor_markdown(report: DoctorReport) -> str:
    lines = [summary(report), ""]
    if report.diagnostics:
        lines += ["| | what | where | what to do |", "|---|---|---|---|"]
        lines += [_row(one) for one in report.diagnostics]
    if report.gaps:
        lines += ["", "Not seen:", "", *(f"- {_cell(str(gap))}" for gap in report.gaps)]
    return "\n".join(lines)


def _row(one: Diagnostic) -> str:
    cells = (str(one.severity), f"{_cell(one.message)} ({code(one.code)})", code(one.where), _cell(one.remedy))
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Nothing but text: what a cluster says must not become a mention, a link or another cell."""
    plain = one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("@", "@\u200b").replace("[", "\\[").replace("`", "'")
