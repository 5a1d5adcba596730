"""Effects as text, as a part of a comment, and as a JSON record."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from reconciler.effects.model import Effects, Impact, QuotaEffect, WorkloadEffect
from reconciler.text import Paint, one_line, unpainted

MOST_ROWS = 10
COLOURS = {
    Impact.EVICTED: "red",
    Impact.PREEMPTED: "red",
    Impact.STRANDED: "red",
    Impact.NEVER: "red",
    Impact.RECLAIMABLE: "yellow",
}


def effects_lines(effects: Effects, paint: Paint = unpainted, *, taken_at: datetime | None = None) -> Iterator[str]:
    """At most ten rows of each kind, with the number of those left out. `taken_at` is the time of a snapshot."""
    if effects.workloads or effects.unknown or taken_at:
        yield paint(f"who is affected{_by_snapshot(taken_at)}", "bold")
    if taken_at and not effects:
        yield "  no queue, no job and no quota changes"
    for impact in Impact:
        found = [one for one in effects.workloads if one.impact is impact]
        yield from (f"  {paint(impact.value, COLOURS.get(impact, 'green'))}: {_text(one)}" for one in found[:MOST_ROWS])
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
    parts = [f"nominal {_step(effect.nominal_before, effect.nominal_after)}"]
    if effect.most_before != effect.most_after:
        parts.append(f"with borrowing {_step(effect.most_before, effect.most_after)}")
    if effect.lent_before != effect.lent_after:
        parts.append(f"lends up to {_step(effect.lent_before, effect.lent_after)}")
    if effect.free_before != effect.free_after:
        parts.append(f"fits now {_step(effect.free_before, effect.free_after)}")
    used = f"{effect.in_use} in use"
    return ", ".join((*parts, f"{used}, which is more" if effect.is_above else used))


def _step(before: object, after: object) -> str:
    if before == after:
        return str(before)
    return f"{'(none)' if before is None else before} -> {'(none)' if after is None else after}"


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
