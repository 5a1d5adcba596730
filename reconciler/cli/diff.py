"""`kfleet diff`: the effect of a change in git on the clusters."""

import json
from collections.abc import Mapping
from functools import partial

import click

from reconciler.capacity.model import ObservedCapacity
from reconciler.cli.options import read_recording, recorded_capacity
from reconciler.cli.output import paint
from reconciler.diff.model import FleetDiff
from reconciler.diff.record import diff_record
from reconciler.diff.text import diff_markdown, diff_text
from reconciler.errors import ExitCode
from reconciler.objects import Manifest, Ref
from reconciler.pipeline.load import Revision, Source, located
from reconciler.pipeline.render import render_offline
from reconciler.pipeline.revisions import Range, diff_revisions


@click.command()
@click.option("--repo", default=".", show_default=True, help="Repository: a path, or an https, ssh or file URL.")
@click.option("--path", default="fleet", show_default=True, help="Folder of the fleet in the repository.")
@click.option("--overlay", default="", metavar="NAME", help="Overlay to apply to both, from overlays/NAME.")
@click.option(
    "--base", default="", metavar="REV", help="Revision to compare with. [default: origin's default branch, or main]"
)
@click.option("--head", default="", metavar="REV", help="Revision to compare. [default: the working tree, else HEAD]")
@click.option("--exact-base", "is_exact", is_flag=True, help="Compare with the base itself, not with the merge base.")
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Name who is affected on the clusters of a snapshot (kfleet snapshot --out FILE).",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="json is described by schemas/diff.json; markdown fits into a comment on a pull request.",
)
@click.option("--detailed-exitcode", "is_detailed", is_flag=True, help="Exit with 2 if there are changes.")
def diff(
    repo: str,
    path: str,
    overlay: str,
    base: str,
    head: str,
    is_exact: bool,
    snapshot: str | None,
    output: str,
    is_detailed: bool,
) -> int:
    """Show the effect of a change in git on the clusters, without contacting them.

    Renders two revisions and compares their objects, quotas, namespaces and lint findings. The base is the merge base
    of both revisions, so later commits on the base branch do not show up.

    \b
    Examples:
      kfleet diff                                       the working tree against the default branch
      kfleet diff --base main --head feature            a branch, as its pull request shows it
      kfleet diff --base v1 --exact-base --overlay prod
      kfleet diff -o markdown > comment.md
      kfleet diff --snapshot world.json.gz              with the jobs that gain or lose something

    \b
    Exit codes:
      0  no changes, or changes without --detailed-exitcode
      1  the head has errors
      2  changes, with --detailed-exitcode
    """
    recording = read_recording(snapshot)
    capacity = recorded_capacity(recording)
    read_observed = partial(_observed, capacity) if capacity else None
    # A file with the capacity alone says nothing about jobs.
    world = recording if recording and recording.clusters else None
    found = diff_revisions(located(Source(repo, "", path, overlay)), Range(base, head, is_exact), world, read_observed)
    click.secho(f"{found.base} -> {found.head}", dim=True, err=True)
    if output == "json":
        click.echo(json.dumps(diff_record(found, overlay), indent=2))
    elif output == "markdown":
        click.echo(diff_markdown(found, overlay))
    else:
        click.echo(diff_text(found, paint))
    return _exit_code(found, is_detailed=is_detailed)


def _observed(capacity: ObservedCapacity, revision: Revision) -> Mapping[Ref, Manifest]:
    rendered = render_offline(revision, capacity).desired.objects
    return {entry.ref: entry.manifest for entry in rendered if not entry.unseen}


def _exit_code(found: FleetDiff, *, is_detailed: bool) -> int:
    if found.lint.errors:
        return ExitCode.ERROR
    return ExitCode.CHANGES if is_detailed and not found.is_empty else ExitCode.OK
