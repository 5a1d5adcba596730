"""The options that select the fleet to read, the same for every command. What contacts clusters is in planning.py."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.capacity.codec import read_look
from reconciler.capacity.model import ObservedCapacity
from reconciler.errors import EdgeError
from reconciler.lint.model import Severity
from reconciler.pipeline.load import Revision, Source, accepted, load_files, located, read_files
from reconciler.snapshot.recording import Recording, unpacked
from reconciler.spec.files import FleetFiles

MOST_SKIPPED_SHOWN = 5
_QUIET = "kfleet.quiet"
_KUBECONFIG = "KUBECONFIG"
_REPO = click.option("--repo", default=".", show_default=True, help="Repository: a path, or an https, ssh or file URL.")
_PLACE = (
    click.option("--path", default="fleet", show_default=True, help="Folder of the fleet, in a repository or not."),
    click.option("--overlay", default="", metavar="NAME", help="Overlay to apply to the fleet, from overlays/NAME."),
)
snapshot_option = click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Read everything from a snapshot (kfleet snapshot --out FILE) and contact no cluster.",
)


def _remember_quiet(context: click.Context, _option: click.Parameter, is_quiet: bool) -> None:
    context.find_root().meta[_QUIET] = is_quiet


quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_remember_quiet,
    help="Print no lint warnings and no notes about the files; errors are always printed.",
)


def is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return bool(context and context.find_root().meta.get(_QUIET))


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a read-only command, as one argument `source`."""
    return _with_options(quiet_option(command), "the working tree")


def commit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for a command that writes to clusters: it uses a commit."""
    return _with_options(command, "HEAD")


def _with_options(command: Callable[..., Any], default: str) -> Callable[..., Any]:
    revision = click.option(
        "--revision", default="", metavar="REV", help=f"Branch, tag or commit. [default: {default}]"
    )

    @wraps(command)
    def with_source(*, repo: str, revision: str, path: str, overlay: str, **others: Any) -> Any:
        return command(source=located(Source(repo, revision, path, overlay)), **others)

    decorated: Callable[..., Any] = with_source
    for option in reversed((_REPO, revision, *_PLACE)):
        decorated = option(decorated)
    return decorated


confirm_evictions_option = click.option(
    "--confirm-evictions",
    type=int,
    metavar="N",
    help="Allow exactly N evictions of workloads, overriding policy.disruption.",
)
accept_source_option = click.option(
    "--accept-source",
    "is_accepted",
    is_flag=True,
    help="Accept this repository, folder and overlay although another source was applied last.",
)
_timeout_option = click.option(
    "--cluster-timeout",
    "timeout",
    type=click.FloatRange(min=0.1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a response of a cluster.",
)


def _use_kubeconfig(context: click.Context, _option: click.Parameter, path: str | None) -> None:
    """Set the variable while the command runs: plugins of the kubeconfig inherit it, as they do from kubectl."""
    if path is None:
        return
    before = os.environ.get(_KUBECONFIG)
    os.environ[_KUBECONFIG] = path

    @context.call_on_close
    def restore() -> None:
        if before is None:
            del os.environ[_KUBECONFIG]
        else:
            os.environ[_KUBECONFIG] = before


kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    expose_value=False,
    callback=_use_kubeconfig,
    help="File with the contexts of clusters that name no kubeconfig. [default: $KUBECONFIG, or ~/.kube/config]",
)


def timeout_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every command that contacts clusters takes: the argument `timeout`, and a kubeconfig."""
    return _timeout_option(kubeconfig_option(command))


def read_and_tell(source: Source) -> FleetFiles:
    """Read the files, and print their revision to stderr: a working tree may contain uncommitted changes."""
    files = read_files(source)
    where = f"revision {files.revision[:12]}" if files.revision else "working tree (uncommitted)"
    click.secho(f"{files.origin}: {where}", dim=True, err=True)
    if files.skipped and not is_quiet():
        click.secho(f"note: {skipped_text(files)}", fg="yellow", err=True)
    return files


def skipped_text(files: FleetFiles) -> str:
    shown = ", ".join(map(str, files.skipped[:MOST_SKIPPED_SHOWN]))
    more = len(files.skipped) - MOST_SKIPPED_SHOWN
    verb = "file is" if len(files.skipped) == 1 else "files are"
    return f"{len(files.skipped)} {verb} not read: {shown}" + (f" and {more} more" if more > 0 else "")


def load_or_stop(source: Source) -> Revision:
    """Load the revision. Errors stop the command; warnings are printed, unless the command is quiet."""
    return accepted(stop_on_errors(load_files(read_and_tell(source), source.overlay)), source)


def stop_on_errors(revision: Revision) -> Revision:
    for finding in revision.findings:
        if finding.severity is Severity.ERROR or not is_quiet():
            click.echo(finding_text(finding), err=True)
    if revision.errors:
        raise click.exceptions.Exit(1)
    return revision


def finding_text(finding: Any) -> str:
    colour = "red" if finding.severity == "error" else "yellow"
    severity = click.style(f"{finding.severity}:", fg=colour, bold=True)
    where = f"{finding.field}: " if finding.field else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.place}: {severity} {finding.rule}: {where}{finding.problem}{hint}"


def read_recording(path: str | None) -> Recording | None:
    """Read a snapshot, packed or not. A file with only an observed capacity is a snapshot without clusters."""
    if path is None:
        return None
    try:
        recording = unpacked(Path(path).read_bytes())
        recorded_capacity(recording)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise EdgeError(path, f"is not a snapshot: {problem}") from error
    return recording


def recorded_capacity(recording: Recording | None) -> ObservedCapacity | None:
    return read_look(recording.capacity) if recording and recording.capacity else None
