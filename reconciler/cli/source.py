"""The options that say where a fleet is read from, the same on every command."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from reconciler.pipeline.offline import Computed, Source, compute, read_files
from reconciler.spec import FleetFiles

_REPO = click.option("--repo", default=".", show_default=True, help="Repository: a path, or an https, ssh or file URL.")
_PLACE = (
    click.option("--path", default="fleet", show_default=True, help="Folder of the fleet, in the repository or not."),
    click.option("--overlay", default="", metavar="NAME", help="Overlay to lay over the fleet, from overlays/NAME."),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that changes nothing the four options, as one argument `source`."""
    return _with_options(command, "the working tree as it is")


def commit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that writes to clusters: it takes a commit."""
    return _with_options(command, "HEAD")


def _with_options(command: Callable[..., Any], default: str) -> Callable[..., Any]:
    revision = click.option(
        "--revision", default="", metavar="REV", help=f"Branch, tag or commit. [default: {default}]"
    )

    @wraps(command)
    def with_source(*, repo: str, revision: str, path: str, overlay: str, **others: Any) -> Any:
        return command(source=Source(repo, revision, path, overlay), **others)

    decorated: Callable[..., Any] = with_source
    for option in reversed((_REPO, revision, *_PLACE)):
        decorated = option(decorated)
    return decorated


timeout_option = click.option(
    "--cluster-timeout",
    "timeout",
    type=click.FloatRange(min=0.1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for an answer of a cluster.",
)


def read_and_tell(source: Source) -> FleetFiles:
    """The files, and a word on stderr about what they are: a working tree may hold what nobody committed."""
    files = read_files(source)
    where = f"revision {files.revision[:12]}" if files.revision else "the files as they lie there"
    click.secho(f"{files.origin}: {where}", dim=True, err=True)
    return files


def compute_or_stop(source: Source) -> Computed:
    """The computed fleet; its errors stop the command, its warnings are told."""
    return stop_on_errors(compute(read_and_tell(source), source.overlay))


def stop_on_errors(computed: Computed) -> Computed:
    for finding in computed.findings:
        click.echo(finding_text(finding), err=True)
    if computed.errors:
        raise click.exceptions.Exit(1)
    return computed


def finding_text(finding: Any) -> str:
    colour = "red" if finding.severity == "error" else "yellow"
    severity = click.style(f"{finding.severity}:", fg=colour, bold=True)
    where = f"{finding.field}: " if finding.field else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.place}: {severity} {finding.rule}: {where}{finding.problem}{hint}"
