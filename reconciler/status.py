"""Stage 7: a plan and its outcomes as text, and the exit code that they mean."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any

from reconciler.outcome import ClusterOutcome
from reconciler.plan import Action, Change, Plan

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
CHANGES, REFUSED, INCOMPLETE = 2, 3, 4
COMMENT_LIMIT = 65_536
MARKER = "<!-- kfleet plan -->"
_NOTE_ROOM = 200
_BACKTICKS = re.compile("`+")
_COLUMNS = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE, Action.HOLD, Action.KEEP)

Paint = Callable[[str, str], str]


def plan_exit_code(plan: Plan, *, is_detailed: bool) -> int:
    if plan.refusals:
        return REFUSED
    if plan.gaps:
        return INCOMPLETE
    return CHANGES if is_detailed and plan.writes else 0


def apply_exit_code(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> int:
    if plan.refusals:
        return REFUSED
    is_done = all(outcome.is_done for outcome in outcomes) and not plan.gaps
    return 0 if is_done else INCOMPLETE


def plan_text(plan: Plan, paint: Paint = lambda text, _: text, took: str = "") -> str:
    """Every change with its reason and fields; objects that stay as they are are only counted."""
    lines = [line for cluster in plan.clusters for line in _cluster_lines(cluster.name, cluster.changes, paint)]
    lines += [paint(f"gap: {gap}", "yellow") for gap in plan.gaps]
    lines += [paint(f"refused: {refusal}", "red") for refusal in plan.refusals]
    return "\n".join((*lines, summary(plan, took)))


def narrowed(plan: Plan, patterns: tuple[str, ...]) -> Plan:
    """The part of a plan about objects like `cluster/Kind/namespace/name`; everything without patterns."""
    if not patterns:
        return plan
    clusters = tuple(
        replace(
            cluster,
            changes=tuple(
                change
                for change in cluster.changes
                if any(fnmatchcase(str(change.ref), pattern) for pattern in patterns)
            ),
        )
        for cluster in plan.clusters
    )
    return replace(plan, clusters=clusters)


def plan_markdown(plan: Plan, limit: int = COMMENT_LIMIT) -> str:
    """A comment for a pull request: a table, then a foldable part per cluster, as far as there is room."""
    head = [MARKER, f"### kfleet plan for `{plan.fleet}`", "", *_markdown_table(plan), ""]
    head += [f"- **refused** {_one_line(str(refusal))}" for refusal in plan.refusals]
    head += [f"- **gap** {_one_line(str(gap))}" for gap in plan.gaps]
    shown = _fitting(head, limit - _NOTE_ROOM)
    left_out = len(head) - len(shown)
    parts = [part for cluster in plan.clusters if (part := _markdown_part(cluster.name, cluster.changes)).lines]
    for number, part in enumerate(parts):
        room = limit - _NOTE_ROOM - _length(shown)
        lines = _fitting(part.lines, room // (len(parts) - number) - _length(part.frame))
        shown += part.framed(lines) if lines else []
        left_out += len(part.lines) - len(lines)
    note = [f"\n{left_out} lines are left out: the comment would be too long."] if left_out else []
    return "\n".join((*shown, *note))


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


@dataclass(frozen=True, slots=True)
class _Part:
    """A foldable part of a comment: lines in a frame that no line can break out of."""

    title: str
    lines: list[str]

    @property
    def frame(self) -> list[str]:
        return self.framed([])

    def framed(self, lines: list[str]) -> list[str]:
        longest = max((len(run) for line in self.lines for run in _BACKTICKS.findall(line)), default=0)
        fence = "`" * max(3, longest + 1)
        head = f"<details><summary>{self.title}</summary>"
        return [head, "", f"{fence}text", *lines, fence, "", "</details>"]


def _markdown_part(name: str, changes: tuple[Change, ...]) -> _Part:
    shown = [change for change in changes if change.action is not Action.KEEP]
    lines = [line for change in shown for line in _change_lines(change, lambda text, _: text)]
    return _Part(f"{name}: {len(shown)} objects", lines)


def _fitting(lines: list[str], room: int) -> list[str]:
    """The first lines, as many as there is room for."""
    ends = accumulate(len(line) + 1 for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= room]


def _length(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def summary(plan: Plan, took: str = "") -> str:
    """`+3 ~2 -1 =2994 (4 clusters, 1.2 s)`."""
    counts = " ".join(f"{SIGNS[action]}{count}" for action in Action if (count := plan.count(action)))
    clusters = f"{len(plan.clusters)} cluster" + ("" if len(plan.clusters) == 1 else "s")
    idle = ": the look was incomplete" if plan.gaps else ": no changes"
    facts = ", ".join(filter(None, (clusters, took)))
    return f"{counts or 'no objects'} ({facts})" + ("" if plan.writes or plan.refusals else idle)


def outcome_text(outcomes: tuple[ClusterOutcome, ...], paint: Paint = lambda text, _: text) -> str:
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
    shown = [change for change in changes if change.action is not Action.KEEP]
    if not shown:
        return
    yield paint(name, "bold")
    for change in shown:
        yield from _change_lines(change, paint)


def _change_lines(change: Change, paint: Paint) -> Iterator[str]:
    what = "/".join(part for part in (change.ref.kind, change.ref.namespace, change.ref.name) if part)
    static = ", compared without the server" if change.is_static else ""
    yield "  " + paint(f"{SIGNS[change.action]} {what}", COLOURS[change.action]) + f"  ({change.reason}{static})"
    for note in change.notes:
        yield f"      {note}"
    for field in change.fields:
        owner = f", held by {field.owner}" if field.owner else ""
        yield f"      {field.path}: {_shown(field.old)} -> {_shown(field.new)}  ({field.cause}{owner})"


def _shown(value: Any) -> str:
    """On one line, and without anything that a terminal would obey."""
    if value is None:
        return "(none)"
    if isinstance(value, str) and value and value.isprintable():
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
