"""`kfleet validate`: all problems of a spec."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import click

from reconciler.cli.options import finding_text, is_quiet, read_and_tell, source_options
from reconciler.errors import ExitCode
from reconciler.lint.model import Finding, Severity
from reconciler.pipeline.load import Source, load_files, unreadable
from reconciler.spec.files import FleetFiles


@click.command()
@source_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="github prints annotations that a workflow shows on the lines of a pull request.",
)
@click.option("--all-overlays", is_flag=True, help="Also check the fleet with each of its overlays.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings, too.")
def validate(source: Source, output: str, *, all_overlays: bool, strict: bool) -> int:
    """Report all problems of a fleet, with file and line.

    Reads files only and contacts no cluster. Exits with 1 if there are errors, with 0 if there are only warnings,
    unless --strict is set. The rules are documented in docs/lint.md.

    \b
    Examples:
      kfleet validate                              the working tree
      kfleet validate --overlay prod               with an overlay
      kfleet validate --all-overlays --strict      for a pipeline
      kfleet validate --revision main -o github    a commit, as annotations
    """
    if all_overlays and source.overlay:
        raise click.UsageError("--overlay and --all-overlays exclude each other")
    files = read_and_tell(source)
    findings = find_problems(files, ("", *files.overlay_names())) if all_overlays else _find(files, source.overlay)
    _PRINTERS[output](findings)
    is_wrong = any(strict or finding.severity is Severity.ERROR for finding in findings)
    return ExitCode.ERROR if is_wrong else ExitCode.OK


def find_problems(files: FleetFiles, overlays: Iterable[str]) -> tuple[Finding, ...]:
    """Return the problems of the fleet with each overlay; what the fleet itself has wrong is reported once."""
    found: dict[Finding, Finding] = {}
    for overlay in overlays:
        for finding in _find(files, overlay):
            problem = f"{finding.problem} (with overlay {overlay})" if overlay else finding.problem
            found.setdefault(finding, replace(finding, problem=problem))
    return tuple(found.values())


def _find(files: FleetFiles, overlay: str) -> tuple[Finding, ...]:
    """Return the problems that prevent reading the files or, if all can be read, the lint findings."""
    try:
        return load_files(files, overlay).findings
    except ExceptionGroup as group:
        return unreadable(group)


def _print_text(findings: Iterable[Finding]) -> None:
    counted = list(findings)
    for finding in counted:
        if finding.severity is Severity.ERROR or not is_quiet():
            click.echo(finding_text(finding))
    errors = sum(finding.severity is Severity.ERROR for finding in counted)
    summary = f"{_count(errors, 'error')}, {_count(len(counted) - errors, 'warning')}"
    click.secho(summary, fg="red" if errors else "green", bold=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_json(findings: Iterable[Finding]) -> None:
    rows = [
        {
            "rule": finding.rule,
            "severity": finding.severity.value,
            "file": finding.place.path,
            "line": finding.place.line,
            "field": finding.field,
            "problem": finding.problem,
            "hint": finding.hint,
        }
        for finding in findings
    ]
    click.echo(json.dumps({"findings": rows}, indent=2))


def _print_github(findings: Iterable[Finding]) -> None:
    for finding in findings:
        where = f"{finding.field}: " if finding.field else ""
        message = f"{where}{finding.problem}" + (f" ({finding.hint})" if finding.hint else "")
        position = f"file={_escaped(finding.place.path, ',:')},line={max(finding.place.line, 1)}"
        click.echo(f"::{finding.severity} {position},title={finding.rule}::{_escaped(message)}")


def _escaped(text: str, more: str = "") -> str:
    """Escape for a workflow command, in which a line break or a comma would end the value."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


_PRINTERS: Mapping[str, Callable[[Iterable[Finding]], None]] = {
    "text": _print_text,
    "json": _print_json,
    "github": _print_github,
}
