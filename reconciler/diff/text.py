"""A change in git as text, and as a comment."""

from collections.abc import Iterable, Iterator

from reconciler.diff.model import (
    AccessChange,
    ClusterDiff,
    FieldDiff,
    FleetDiff,
    LintNews,
    News,
    ObjectDiff,
    QuotaChange,
    readable,
    shortened,
)
from reconciler.lint.model import Finding, Severity
from reconciler.objects import ClusterName
from reconciler.report.text import effects_lines, effects_markdown
from reconciler.text import (
    COMMENT_LIMIT,
    Block,
    CommentPart,
    Paint,
    code,
    comment,
    counted,
    fenced_part,
    format_value,
    one_line,
    table_part,
    unpainted,
)

SIGNS = {News.ADDED: "+", News.CHANGED: "~", News.REMOVED: "-"}
COLOURS = {News.ADDED: "green", News.CHANGED: "yellow", News.REMOVED: "red"}
MOVES = {News.ADDED: "joins the fleet", News.REMOVED: "leaves the fleet"}
DRAINED_FIRST = "its queues are stopped first, and deleted when their jobs have ended"
UNREAD_BASE = "the base cannot be read, so nothing can be compared with it:"
UNREAD_HEAD = "the head cannot be read:"
ABOUT_SHARES = (
    "of observed: of the live capacity, headroom taken off; on a manager the shares of its workers are added up"
)
MOST_NAMED = 10
_QUOTA_COLUMNS = ("cluster", "queue", "flavor", "resource", "what", "before", "after", "difference")


def diff_text(diff: FleetDiff, paint: Paint = unpainted) -> str:
    """Objects by cluster, then what they mean: quotas, who may submit where, settings, and what lint says of it."""
    lines = [line for cluster in diff.clusters for line in _cluster_lines(cluster, paint)]
    lines += _section("quota", _quota_lines(diff, paint), paint)
    lines += _section("namespaces", _access_lines(diff.access, paint), paint)
    lines += _section("renames", (f"  {one}" for one in diff.renames), paint)
    lines += _section("queue names in jobs", (paint(f"  {one}", "red") for one in diff.queue_names), paint)
    lines += _section("settings", _setting_lines(diff), paint)
    lines += effects_lines(diff.effects, paint, taken_at=diff.taken_at)
    lines += _section(UNREAD_BASE, (f"  {finding_line(one, paint)}" for one in diff.unread_base), paint)
    lines += _section(UNREAD_HEAD, (f"  {finding_line(one, paint)}" for one in diff.unread_head), paint)
    if not diff.unread_head:
        lines += _section("lint", (f"  {finding_line(one, paint)}" for one in diff.lint.brought), paint)
    lines += [paint(f"would be refused: {diff.refusal}", "red")] if diff.refusal else []
    return "\n".join((*lines, f"{summary(diff)}; {lint_summary(diff.lint)}"))


def summary(diff: FleetDiff) -> str:
    """`+3 ~2 -1 (4 clusters)`."""
    if not diff.is_compared:
        return "nothing compared"
    counts = " ".join(f"{SIGNS[news]}{count}" for news in (*reversed(News),) if (count := diff.count(news)))
    told = counts or ("no objects change" if diff.settings else "no changes")
    return f"{told} ({counted(len(diff.clusters), 'cluster')})"


def lint_summary(lint: LintNews) -> str:
    """What the change does to the findings, and what the head has in all."""
    moves = [f"{len(lint.brought)} new"] if lint.brought else []
    moves += [f"{lint.gone} gone"] if lint.gone else []
    told = f" ({', '.join(moves)})" if moves else ""
    return f"lint: {counted(lint.errors, 'error')}, {counted(lint.warnings, 'warning')}{told}"


def object_lines(entry: ObjectDiff, paint: Paint = unpainted, indent: str = "") -> Iterator[str]:
    what = "/".join(part for part in (entry.ref.kind, entry.ref.namespace, entry.ref.name) if part)
    yield indent + paint(f"{SIGNS[entry.news]} {what}", COLOURS[entry.news]) + _object_note(entry)
    yield from _field_lines(entry.fields, indent)


def _object_note(entry: ObjectDiff) -> str:
    if entry.news is News.REMOVED and not entry.is_deleted:
        return "  (kfleet lets go of it and does not delete it)"
    is_new_namespace = entry.news is News.ADDED and (entry.ref.group, entry.ref.kind) == ("", "Namespace")
    return "  (one that exists keeps all that git does not name)" if is_new_namespace else ""


def access_words(entry: AccessChange) -> tuple[str, str]:
    """Who, and what happens to them."""
    who = f"{entry.namespace} (tenant {entry.tenant})" if entry.tenant else entry.namespace
    moves = [f"gained on {_listed(entry.gained)}"] if entry.gained else []
    return who, ", ".join((*moves, *([f"lost on {_listed(entry.lost)}"] if entry.lost else [])))


def has_shares(diff: FleetDiff) -> bool:
    return any("observed" in f"{change.before} {change.after}" for change in diff.quotas)


def finding_line(finding: Finding, paint: Paint = unpainted) -> str:
    """The line that `kfleet validate` prints, so that there is one form to read and to search for."""
    severity = paint(f"{finding.severity}:", "red" if finding.severity is Severity.ERROR else "yellow")
    where = f"{finding.field}: " if finding.field else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.place}: {severity} {finding.rule}: {where}{finding.problem}{hint}"


def _cluster_lines(cluster: ClusterDiff, paint: Paint) -> Iterator[str]:
    if not cluster.objects and cluster.news is None:
        return
    drained = f": {DRAINED_FIRST}" if cluster.news is News.REMOVED else ""
    move = f"  ({MOVES[cluster.news]}{drained})" if cluster.news else ""
    yield paint(cluster.name, "bold") + move
    for entry in cluster.objects:
        yield from object_lines(entry, paint, "  ")


def _field_lines(fields: Iterable[FieldDiff], indent: str = "  ") -> Iterator[str]:
    yield from (f"{indent}    {field.path}: {format_value(field.old)} -> {format_value(field.new)}" for field in fields)


def _quota_lines(diff: FleetDiff, paint: Paint) -> Iterator[str]:
    rows = [
        (
            one.cluster,
            one.owner,
            one.flavor,
            one.resource,
            one.limit.value,
            f"{readable(one.before)} -> {readable(one.after)}",
        )
        for one in diff.quotas
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, change in zip(rows, diff.quotas, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        difference = change.difference(shortened)
        colour = "green" if "+" in difference else "red"
        told = f"  ({paint(difference, colour)})" if difference else ""
        yield f"  {'  '.join(cells)}{told}".rstrip()
    if has_shares(diff):
        yield f"  ({ABOUT_SHARES})"


def _access_lines(changes: Iterable[AccessChange], paint: Paint) -> Iterator[str]:
    for change in changes:
        who, what = access_words(change)
        yield f"  {who}: queue {change.queue}: {paint(what, 'red') if change.lost else what}"


def _setting_lines(diff: FleetDiff) -> Iterator[str]:
    for change in diff.settings:
        yield f"  {change.document}"
        yield from _field_lines(change.fields)


def _section(title: str, lines: Iterable[str], paint: Paint) -> list[str]:
    listed = list(lines)
    return [paint(title, "bold"), *listed] if listed else []


def _listed(names: tuple[ClusterName, ...]) -> str:
    return ", ".join(names)


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
        if cluster.news is News.REMOVED:
            yield f"- **leaves the fleet:** {code(cluster.name)}: {DRAINED_FIRST}"
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
        blocks = [Block(str(entry.ref), tuple(map(_coloured, object_lines(entry)))) for entry in cluster.objects]
        yield fenced_part(f"{cluster.name}: {counted(len(blocks), 'object')}", blocks, "diff")


def _coloured(line: str) -> str:
    """A changed line of a diff begins with an exclamation mark: forges give `~` no colour."""
    return f"!{line[1:]}" if line.startswith(SIGNS[News.CHANGED]) else line


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
