"""A FleetDiff as a comment on a pull request."""

from collections.abc import Iterable, Iterator

from reconciler.diff.model import ClusterDiff, FleetDiff, News, QuotaChange, readable, shortened
from reconciler.diff.text import (
    ABOUT_SHARES,
    MOVES,
    UNREAD_BASE,
    UNREAD_HEAD,
    access_words,
    finding_line,
    has_shares,
    lint_summary,
    object_lines,
    summary,
)
from reconciler.lint.model import Finding
from reconciler.report.text import effects_markdown
from reconciler.text import (
    COMMENT_LIMIT,
    Block,
    CommentPart,
    code,
    comment,
    counted,
    fenced_part,
    format_value,
    one_line,
    table_part,
)

MOST_NAMED = 10
_QUOTA_COLUMNS = ("cluster", "queue", "flavor", "resource", "what", "before", "after", "difference")


def diff_markdown(diff: FleetDiff, overlay: str = "", limit: int = COMMENT_LIMIT) -> str:
    """A table of the clusters, what goes in bold, then foldable parts; never more than fits into a comment."""
    return comment([*_head(diff, overlay)], _parts(diff), limit)


def marker(overlay: str = "") -> str:
    """The first line, by which the comment of an earlier run is found and replaced."""
    return f"<!-- kfleet diff {overlay} -->" if overlay else "<!-- kfleet diff -->"


def _head(diff: FleetDiff, overlay: str) -> Iterator[str]:
    yield marker(overlay)
    fleet = f" for {code(diff.fleet)}" if diff.fleet else ""
    yield f"### kfleet diff{fleet}" + (f", overlay {code(overlay)}" if overlay else "")
    yield ""
    yield f"{code(str(diff.base))} → {code(str(diff.head))}: {summary(diff)}; {lint_summary(diff.lint)}"
    yield ""
    if diff.is_compared and not diff.is_empty:
        yield "| cluster | added | changed | removed |"
        yield "|---|---|---|---|"
        yield from (_row(cluster) for cluster in diff.clusters if cluster.objects or cluster.news)
        yield ""
        yield from _removals(diff)
        yield from effects_markdown(diff.effects, taken_at=diff.taken_at)
        yield from (f"- **renamed:** {one_line(str(one))}" for one in diff.renames)
        yield from (f"- **queue name in jobs:** {one_line(str(one))}" for one in diff.queue_names[:MOST_NAMED])
        if diff.refusal:
            yield f"- **would be refused:** {diff.refusal}"


def _row(cluster: ClusterDiff) -> str:
    move = f" {MOVES[cluster.news]}" if cluster.news else ""
    # The asterisks must touch a word, or they are shown as they are.
    bold = f" **{move.strip()}**"
    name = f"{code(cluster.name)}{bold if cluster.news is News.REMOVED else move}"
    removed = cluster.count(News.REMOVED)
    last = f"**{removed}**" if removed else "0"
    return f"| {name} | {cluster.count(News.ADDED)} | {cluster.count(News.CHANGED)} | {last} |"


def _removals(diff: FleetDiff) -> Iterator[str]:
    for cluster in diff.clusters:
        names = [code(str(entry.ref)) for entry in cluster.objects if entry.is_deleted]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        if names:
            yield f"- **deleted:** {', '.join(names[:MOST_NAMED])}{more}"


def _parts(diff: FleetDiff) -> Iterator[CommentPart]:
    yield _findings(UNREAD_HEAD, diff.unread_head)
    yield _findings(UNREAD_BASE, diff.unread_base)
    if not diff.unread_head:
        yield _findings("Lint: what this change brings", diff.lint.brought)
    note = ABOUT_SHARES if has_shares(diff) else ""
    yield table_part("Quota", _QUOTA_COLUMNS, map(_quota_row, diff.quotas), note)
    yield table_part("Namespaces that gain or lose a queue", ("namespace", "queue", "what"), _access_rows(diff))
    yield fenced_part("Settings", _setting_blocks(diff), is_open=True)
    for cluster in diff.clusters:
        blocks = [Block(str(entry.ref), tuple(object_lines(entry))) for entry in cluster.objects]
        yield fenced_part(f"{cluster.name}: {counted(len(blocks), 'object')}", blocks, "diff")


def _findings(title: str, findings: Iterable[Finding]) -> CommentPart:
    # In a fence, because the author of the files chooses the words of a finding.
    return fenced_part(
        title, [Block(str(one.place), (format_value(finding_line(one)),)) for one in findings], is_open=True
    )


def _quota_row(change: QuotaChange) -> Block:
    difference = change.difference(shortened)
    cells = (
        *map(code, (change.cluster, change.owner, change.flavor, change.resource)),
        change.limit.value,
        readable(change.before),
        readable(change.after),
        difference if "+" in difference or not difference else f"**{difference}**",
    )
    return Block(f"quota of {change.owner} on {change.cluster}", (f"| {' | '.join(cells)} |",))


def _access_rows(diff: FleetDiff) -> Iterator[Block]:
    for change in diff.access:
        who, what = access_words(change)
        told = f"**{what}**" if change.lost else what
        yield Block(f"{who}: {change.queue}", (f"| {code(who)} | {code(change.queue)} | {told} |",))


def _setting_blocks(diff: FleetDiff) -> Iterator[Block]:
    for change in diff.settings:
        fields = (
            f"    {field.path}: {format_value(field.old)} -> {format_value(field.new)}" for field in change.fields
        )
        yield Block(change.document, (change.document, *fields))
