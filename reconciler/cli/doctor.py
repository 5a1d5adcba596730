"""`kfleet doctor`: what is wrong with the Kueue of live clusters. It needs no fleet, and writes nothing."""

import json
from datetime import timedelta

import click

from reconciler.cli.init_contexts import context_options, named_contexts
from reconciler.cli.output import paint
from reconciler.doctor.examine import examine
from reconciler.doctor.model import DoctorReport, Urgency, facts_of
from reconciler.doctor.text import doctor_markdown, doctor_record, doctor_text
from reconciler.errors import ExitCode
from reconciler.importer.collect import IMPORTED, find_roles
from reconciler.kueue.kinds import GROUP, KueueVersionError, parse_version
from reconciler.pipeline.contexts import observe_contexts

KINDS = (*IMPORTED, (GROUP, "Workload"), ("", "Namespace"), ("", "Node"))


def _release(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return str(parse_version(value)) if value else ""
    except KueueVersionError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@context_options
@click.option(
    "--kueue",
    "target",
    default="",
    metavar="RELEASE",
    callback=_release,
    help="Release of Kueue to check the clusters for. [default: the next one of each cluster, as warnings]",
)
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def doctor(kubeconfig: str, contexts: tuple[str, ...], target: str, output: str, timeout: float) -> int:
    """Report what is wrong, risky or wasteful with the Kueue of live clusters.

    Needs no fleet and no git, and only reads: a reader's rights are enough, and what they do not show is said. Without
    --context, all contexts of the kubeconfig are read, and those that do not answer are said. The worst comes first.

    Exit code: 0 for nothing or advice only, 2 for warnings, 1 for errors, 4 if not everything could be seen and
    nothing worse was found.

    \b
    Examples:
      kfleet doctor
      kfleet doctor --context hub --context east
      kfleet doctor --kueue 0.20 -o json
    """
    names = named_contexts(kubeconfig, contexts)
    seen = observe_contexts(names, kubeconfig, timedelta(seconds=timeout), KINDS, is_thorough=True)
    report = examine(facts_of(seen, find_roles(seen), parse_version(target) if target else None))
    _show(report, output)
    return _exit_code(report)


def _show(report: DoctorReport, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(doctor_record(report), indent=2))
    else:
        click.echo(doctor_markdown(report) if output == "markdown" else doctor_text(report, paint))


def _exit_code(report: DoctorReport) -> int:
    if report.count(Urgency.ERROR):
        return ExitCode.ERROR
    if report.count(Urgency.WARNING):
        return ExitCode.CHANGES
    return ExitCode.INCOMPLETE if report.gaps else ExitCode.OK
