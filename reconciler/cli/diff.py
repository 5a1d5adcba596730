"""`kfleet diff`: what a change in git means for the clusters."""

import json

import click

from reconciler.cli.painting import paint
from reconciler.compare import FleetDiff
from reconciler.compare.markdown import diff_markdown
from reconciler.compare.record import diff_record
from reconciler.compare.text import diff_text
from reconciler.pipeline.offline import Source
from reconciler.pipeline.revisions import Range, diff_revisions

CHANGES = 2


@click.command()
@click.option("--repo", default=".", show_default=True, help="Repository: a path, or an https, ssh or file URL.")
@click.option("--path", default="fleet", show_default=True, help="Folder of the fleet in the repository.")
@click.option("--overlay", default="", metavar="NAME", help="Overlay to lay over both, from overlays/NAME.")
@click.option(
    "--base", default="", metavar="REV", help="Compare with this. [default: origin's default branch, or main]"
)
@click.option("--head", default="", metavar="REV", help="What is compared. [default: the working tree, else HEAD]")
@click.option("--exact-base", "is_exact", is_flag=True, help="Compare with the base itself, not with the merge base.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="json is described by schemas/diff.json, markdown fits into a pull request's comment.",
)
@click.option("--detailed-exitcode", "is_detailed", is_flag=True, help="Exit with 2 when something changes.")
def diff(
    repo: str, path: str, overlay: str, base: str, head: str, is_exact: bool, output: str, is_detailed: bool
) -> int:
    """Show what a change in git means for the clusters, without asking any.

    Computes two revisions and compares their objects, quotas, namespaces and lint findings. The base is the commit
    where the head left it (the merge base), so that what others did there since does not show.

    \b
    Examples:
      kfleet diff                                       the working tree against the default branch
      kfleet diff --base main --head feature            a branch, as its pull request shows it
      kfleet diff --base v1 --exact-base --overlay prod
      kfleet diff -o markdown > comment.md

    \b
    Exit codes:
      0  nothing changes, or changes without --detailed-exitcode
      1  the head has errors
      2  changes, with --detailed-exitcode
    """
    found = diff_revisions(Source(repo, "", path, overlay), Range(base, head, is_exact))
    click.secho(f"{found.base} -> {found.head}", dim=True, err=True)
    if output == "json":
        click.echo(json.dumps(diff_record(found, overlay), indent=2))
    elif output == "markdown":
        click.echo(diff_markdown(found, overlay))
    else:
        click.echo(diff_text(found, paint))
    return _exit_code(found, is_detailed=is_detailed)


def _exit_code(found: FleetDiff, *, is_detailed: bool) -> int:
    if found.lint.errors:
        return 1
    return CHANGES if is_detailed and not found.is_empty else 0
