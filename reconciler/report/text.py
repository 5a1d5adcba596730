"""Stage 7: a plan, its effects and its outcomes as text, and the exit code."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from reconciler.effects.model import Effects, Impact, QuotaEffect, WorkloadEffect
from reconciler.errors import ExitCode
from reconciler.objects import Ref
from reconciler.plan.model import Action, Change, ClusterOutcome, Plan
from reconciler.quantity import Quantity, short_text
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
    unpainted,
)

SIGNS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "±",
    Action.DELETE: "-",
    Action.KEEP: "=",
    Action.HOLD: "!",
}
COLOURS = {
    Action.CREATE: "green",
    Action.UPDATE: "yellow",
    Action.REPLACE: "magenta",
    Action.DELETE: "red",
    Action.HOLD: "cyan",
}
MOST_JOBS = 50
_COLUMNS = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE, Action.HOLD, Action.KEEP)
MOST_ROWS = 10
IMPACT_COLOURS = {
    Impact.EVICTED: "red",
    Impact.PREEMPTED: "red",
    Impact.STRANDED: "red",
    Impact.NEVER: "red",
    Impact.RECLAIMABLE: "yellow",
}


def plan_exit_code(plan: Plan, *, is_detailed: bool) -> int:
    if plan.refusals:
        return ExitCode.REFUSED
    if plan.gaps:
        return ExitCode.INCOMPLETE
    return ExitCode.CHANGES if is_detailed and plan.has_work else ExitCode.OK


def apply_exit_code(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> int:
    if plan.refusals:
        return ExitCode.REFUSED
    is_done = all(outcome.is_done for outcome in outcomes) and not plan.gaps and not plan.unfinished_removals
    return ExitCode.OK if is_done else ExitCode.INCOMPLETE


def plan_text(plan: Plan, paint: Paint = unpainted, took: str = "", effects: tuple[str, ...] = ()) -> str:
    """Every change with its reason and fields, then its effects. Objects without a change are only counted."""
    lines = [line for cluster in plan.clusters for line in _cluster_lines(cluster.name, cluster.changes, paint)]
    lines += _placement_lines(plan, paint)
    lines += effects
    lines += [paint(f"not in git, contacted: {name}", "cyan") for name in plan.contacted]
    lines += [paint(f"waiting: {entry}", "cyan") for entry in plan.waiting]
    lines += [paint(f"gap: {gap}", "yellow") for gap in plan.gaps]
    lines += [paint(f"preflight: {preflight_issue}", "yellow") for preflight_issue in plan.preflight_issues]
    lines += [paint(f"refused: {refusal}", "red") for refusal in plan.refusals]
    return "\n".join((*lines, summary(plan, took)))


def _placement_lines(plan: Plan, paint: Paint) -> Iterator[str]:
    if plan.placements:
        yield paint("jobs", "bold")
    for step in plan.placements:
        yield f"  {paint(step.verb.value, 'magenta')}{str(step).removeprefix(step.verb.value)}"


def narrowed(plan: Plan, patterns: tuple[str, ...]) -> Plan:
    """The part of a plan whose objects match a pattern of `cluster/Kind/namespace/name`; all without patterns."""
    if not patterns:
        return plan

    def is_meant(ref: Ref) -> bool:
        return any(fnmatchcase(str(ref), pattern) for pattern in patterns)

    clusters = tuple(
        replace(cluster, changes=tuple(change for change in cluster.changes if is_meant(change.ref)))
        for cluster in plan.clusters
    )
    return replace(plan, clusters=clusters, placements=tuple(step for step in plan.placements if is_meant(step.ref)))


def plan_markdown(plan: Plan, overlay: str = "", limit: int = COMMENT_LIMIT, effects: tuple[str, ...] = ()) -> str:
    """A comment for a pull request: a table, effects, then a foldable part per cluster, up to the size limit."""
    title = f"### kfleet plan for {code(plan.fleet)}" + (f", overlay {code(overlay)}" if overlay else "")
    head = [marker(overlay), title, "", *_markdown_table(plan), ""]
    head += [f"- **refused** {one_line(str(refusal))}" for refusal in plan.refusals]
    head += [f"- **gap** {one_line(str(gap))}" for gap in plan.gaps]
    head += [f"- **not in git, contacted** {one_line(name)}" for name in plan.contacted]
    head += [f"- **waiting** {one_line(str(entry))}" for entry in plan.waiting]
    head += [f"- **preflight** {one_line(str(preflight_issue))}" for preflight_issue in plan.preflight_issues]
    head += [f"- **job** {one_line(str(step))}" for step in plan.placements[:MOST_JOBS]]
    head += [f"- **job** and {more} more" for more in (len(plan.placements) - MOST_JOBS,) if more > 0]
    head += effects
    return comment(head, [_markdown_part(cluster.name, cluster.changes) for cluster in plan.clusters], limit)


def marker(overlay: str = "") -> str:
    """The first line, by which a later run finds its comment. Plans of two overlays are two comments."""
    return f"<!-- kfleet plan {overlay} -->" if overlay else "<!-- kfleet plan -->"


def _markdown_table(plan: Plan) -> Iterator[str]:
    yield "| cluster | create | update | replace | delete | hold | keep |"
    yield "|---|---|---|---|---|---|---|"
    for cluster in plan.clusters:
        counts = [sum(change.action is action for change in cluster.changes) for action in _COLUMNS]
        cells = [
            f"**{count}**" if action is Action.DELETE and count else str(count)
            for action, count in zip(_COLUMNS, counts, strict=True)
        ]
        yield f"| {cluster.name} | {' | '.join(cells)} |"


def _markdown_part(name: str, changes: tuple[Change, ...]) -> CommentPart:
    moving = [change for change in changes if change.action is not Action.KEEP]
    blocks = [Block(str(change.ref), tuple(_change_lines(change, unpainted))) for change in moving]
    return fenced_part(f"{name}: {counted(len(blocks), 'object')}", blocks)


def summary(plan: Plan, took: str = "") -> str:
    """`+3 ~2 -1 =2994 (4 clusters, 1.2 s)`."""
    counts = " ".join(f"{SIGNS[action]}{count}" for action in Action if (count := plan.count(action)))
    clusters = f"{len(plan.clusters)} cluster" + ("" if len(plan.clusters) == 1 else "s")
    idle = ": the observation was incomplete" if plan.gaps else ": no changes"
    facts = ", ".join(filter(None, (clusters, took)))
    return f"{counts or 'no objects'} ({facts})" + ("" if plan.has_work or plan.refusals else idle)


def outcome_text(outcomes: tuple[ClusterOutcome, ...], paint: Paint = unpainted) -> str:
    lines: list[str] = []
    for cluster in outcomes:
        failed = [outcome for outcome in cluster.outcomes if not outcome.is_done]
        lines += [paint(f"{outcome.ref}: {outcome.action}: {outcome.problem}", "red") for outcome in failed]
        if cluster.problem:
            lines.append(paint(f"{cluster.name}: {cluster.problem}", "red"))
        done = len(cluster.outcomes) - len(failed)
        lines.append(f"{cluster.name}: {done} of {len(cluster.outcomes)} changes done")
    return "\n".join(lines)


def _cluster_lines(name: str, changes: tuple[Change, ...], paint: Paint) -> Iterator[str]:
    moving = [change for change in changes if change.action is not Action.KEEP]
    if not moving:
        return
    yield paint(name, "bold")
    for change in moving:
        yield from _change_lines(change, paint)


def _change_lines(change: Change, paint: Paint) -> Iterator[str]:
    what = "/".join(part for part in (change.ref.kind, change.ref.namespace, change.ref.name) if part)
    static = ", without a dry run" if change.is_static else ""
    yield "  " + paint(f"{SIGNS[change.action]} {what}", COLOURS[change.action]) + f"  ({change.reason}{static})"
    for note in change.notes:
        yield f"      {note}"
    for field in change.fields:
        owner = f", held by {field.owner}" if field.owner else ""
        yield f"      {field.path}: {format_value(field.old)} -> {format_value(field.new)}  ({field.cause}{owner})"


def effects_lines(effects: Effects, paint: Paint = unpainted, *, taken_at: datetime | None = None) -> Iterator[str]:
    """At most ten rows of each kind, with the number of those left out. `taken_at` is the time of a snapshot."""
    if effects.workloads or effects.unknown or taken_at:
        yield paint(f"who is affected{_by_snapshot(taken_at)}", "bold")
    if taken_at and not effects:
        yield "  no queue, no job and no quota changes"
    for impact in Impact:
        found = [one for one in effects.workloads if one.impact is impact]
        title = paint(impact.value, IMPACT_COLOURS.get(impact, "green"))
        yield from (f"  {title}: {_text(one)}" for one in found[:MOST_ROWS])
        if len(found) > MOST_ROWS:
            yield f"  {impact.value}: and {len(found) - MOST_ROWS} more"
    yield from (paint(f"  unknown: {gap}", "yellow") for gap in effects.unknown)
    yield from _quota_lines(effects, paint)


def _text(effect: WorkloadEffect) -> str:
    return f"{effect}; by {', '.join(effect.by)}" if effect.by else str(effect)


def _quota_lines(effects: Effects, paint: Paint) -> Iterator[str]:
    if not effects.quotas:
        return
    yield paint("quota", "bold")
    shown = effects.quotas[: 2 * MOST_ROWS]
    rows = [(one.cluster, _queue_text(one), one.flavor, one.resource, _numbers(one)) for one in shown]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"  {cells}  {row[4]}"
    if len(effects.quotas) > len(shown):
        yield f"  and {len(effects.quotas) - len(shown)} more"


def _queue_text(effect: QuotaEffect) -> str:
    """The queue with its tenants, unless it is named like its only one."""
    return effect.queue if effect.tenants in {(), (effect.queue,)} else f"{effect.queue} ({', '.join(effect.tenants)})"


def _numbers(effect: QuotaEffect) -> str:
    step = partial(_step, effect.resource)
    parts = [f"nominal {step(effect.nominal_before, effect.nominal_after)}"]
    if effect.most_before != effect.most_after:
        parts.append(f"with borrowing {step(effect.most_before, effect.most_after)}")
    if effect.lent_before != effect.lent_after:
        parts.append(f"lends up to {step(effect.lent_before, effect.lent_after)}")
    if effect.free_before != effect.free_after:
        parts.append(f"fits now {step(effect.free_before, effect.free_after)}")
    used = f"{short_text(effect.resource, effect.in_use)} in use"
    return ", ".join((*parts, f"{used}, which is more" if effect.is_above else used))


def _step(resource: str, before: Quantity | None, after: Quantity | None) -> str:
    """Short amounts, unless two that differ would look the same."""
    exact = ["(none)" if amount is None else str(amount) for amount in (before, after)]
    short = ["(none)" if amount is None else short_text(resource, amount) for amount in (before, after)]
    if before == after:
        return short[0]
    return " -> ".join(exact if short[0] == short[1] else short)


def _by_snapshot(taken_at: datetime | None) -> str:
    return f", by a snapshot of {taken_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if taken_at else ""


def effects_markdown(effects: Effects, *, taken_at: datetime | None = None) -> Iterator[str]:
    """The section of a pull-request comment: ten lines, and the rest folded."""
    if not effects and taken_at is None:
        return
    lines = list(effects_lines(effects))
    harm = sum(one.impact.is_harm for one in effects.workloads)
    gain = len(effects.workloads) - harm
    yield f"**Who is affected**{_by_snapshot(taken_at)}: {harm} workloads lose something, {gain} gain"
    yield ""
    yield from (f"- {one_line(line)}" for line in lines[1:MOST_ROWS] if line.startswith("  "))
    if len(lines) > MOST_ROWS:
        yield ""
        yield "<details><summary>all effects</summary>"
        yield ""
        yield from (f"    {line}" for line in lines)
        yield ""
        yield "</details>"


def effects_record(effects: Effects) -> dict[str, Any]:
    return {
        "workloads": [_workload_record(one) for one in effects.workloads],
        "quotas": [_quota_record(one) for one in effects.quotas],
        "unknown": [str(gap) for gap in effects.unknown],
    }


def _workload_record(effect: WorkloadEffect) -> dict[str, Any]:
    return {
        "impact": effect.impact.value,
        "cluster": effect.cluster,
        "namespace": effect.namespace,
        "kind": effect.kind,
        "name": effect.name,
        "queue": effect.queue,
        "tenant": effect.tenant,
        "why": effect.why,
        "by": list(effect.by),
    }


def _quota_record(effect: QuotaEffect) -> dict[str, Any]:
    def amount(value: object) -> str | None:
        return None if value is None else str(value)

    return {
        "cluster": effect.cluster,
        "queue": effect.queue,
        "tenants": list(effect.tenants),
        "flavor": effect.flavor,
        "resource": effect.resource,
        "nominal": {"before": amount(effect.nominal_before), "after": amount(effect.nominal_after)},
        "withBorrowing": {"before": amount(effect.most_before), "after": amount(effect.most_after)},
        "lendsUpTo": {"before": amount(effect.lent_before), "after": amount(effect.lent_after)},
        "fitsNow": {"before": amount(effect.free_before), "after": amount(effect.free_after)},
        "inUse": amount(effect.in_use),
    }
