"""A FleetDiff as text for a terminal."""

from collections.abc import Iterable, Iterator

from reconciler.diff.model import (
    AccessChange,
    ClusterDiff,
    FieldDiff,
    FleetDiff,
    LintNews,
    News,
    ObjectDiff,
    readable,
    shortened,
)
from reconciler.lint.model import Finding, Severity
from reconciler.objects import ClusterName
from reconciler.report.text import effects_lines
from reconciler.text import Paint, counted, format_value, unpainted

SIGNS = {News.ADDED: "+", News.CHANGED: "~", News.REMOVED: "-"}
COLOURS = {News.ADDED: "green", News.CHANGED: "yellow", News.REMOVED: "red"}
MOVES = {News.ADDED: "joins the fleet", News.REMOVED: "leaves the fleet"}
UNREAD_BASE = "the base cannot be read, so nothing can be compared with it:"
UNREAD_HEAD = "the head cannot be read:"
ABOUT_SHARES = (
    "of observed: of the live capacity, headroom taken off; on a manager the shares of its workers are added up"
)


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
    is_kept = entry.news is News.REMOVED and not entry.is_deleted
    note = "  (kfleet lets go of it and does not delete it)" if is_kept else ""
    yield indent + paint(f"{SIGNS[entry.news]} {what}", COLOURS[entry.news]) + note
    yield from _field_lines(entry.fields, indent)


def access_words(entry: AccessChange) -> tuple[str, str]:
    """Who, and what happens to them."""
    who = f"{entry.namespace} (tenant {entry.tenant})" if entry.tenant else entry.namespace
    moves = [f"gained on {_listed(entry.gained)}"] if entry.gained else []
    return who, ", ".join((*moves, *([f"lost on {_listed(entry.lost)}"] if entry.lost else [])))


def has_shares(diff: FleetDiff) -> bool:
    return any("observed" in f"{change.before} {change.after}" for change in diff.quotas)


def finding_line(finding: Finding, paint: Paint = unpainted) -> str:
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    return f"{paint(f'{finding.severity}:', colour)} {finding}"


def _cluster_lines(cluster: ClusterDiff, paint: Paint) -> Iterator[str]:
    if not cluster.objects and cluster.news is None:
        return
    move = f"  ({MOVES[cluster.news]})" if cluster.news else ""
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
