"""A simulation as text, as a comment, and as a JSON record that schemas/simulate.json describes. Pure."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from reconciler.quantity import Quantity
from reconciler.simulate.compare import team_totals
from reconciler.simulate.model import Fate, PlayedCluster, PlayedWorkload, Simulation, StartAfter, TeamTotals
from reconciler.text import Paint, counted, format_value, one_line, unpainted

MOST_ROWS = 10
COLOURS = {Fate.PREEMPTED: "red", Fate.EVICTED: "red", Fate.RESTARTED: "yellow", Fate.ADMITTED: "green"}
NOTHING = "the change touches no queue: there is nothing to simulate"
FORMAT = "kfleet.dev/simulate/v1"


def simulation_lines(simulation: Simulation, paint: Paint = unpainted) -> Iterator[str]:
    """At most ten rows of each fate, with the number of those left out."""
    if not simulation.clusters and not simulation.unknown:
        yield NOTHING
        return
    for cluster in simulation.clusters:
        yield from _cluster_lines(cluster, paint)
    yield from (paint(f"unknown: {gap}", "yellow") for gap in simulation.unknown)
    yield from _team_lines(team_totals(simulation.workloads), paint)
    yield from (f"note: {note}" for note in simulation.notes)
    yield paint(summary(simulation), "bold")


def summary(simulation: Simulation) -> str:
    counts = {fate: sum(one.fate is fate for one in simulation.workloads) for fate in Fate}
    said = ", ".join(f"{count} {fate}" for fate, count in counts.items() if count) or "no workloads"
    return f"{said} ({simulation.seconds:.0f} s)"


def _cluster_lines(cluster: PlayedCluster, paint: Paint) -> Iterator[str]:
    yield f"{paint(cluster.name, 'bold')}: Kueue {cluster.played}, quiet after {cluster.seconds:.0f} s"
    if not cluster.is_settled:
        yield paint(f"  still moving after {cluster.seconds:.0f} s: what follows is not final", "yellow")
    yield from (f"  note: {format_value(note)}" for note in cluster.notes)
    if cluster.moved:
        count = len(cluster.moved)
        yield f"  note: {count} moved before the change was made: {', '.join(cluster.moved[:3])}" + (
            " ..." if count > len(cluster.moved[:3]) else ""
        )
    if cluster.start is not None:
        yield f"  {_start_text(cluster.start)}"
    for fate in Fate:
        if fate not in {Fate.RUNS, Fate.ENDED}:
            yield from _fate_lines([one for one in cluster.workloads if one.fate is fate], fate, paint)


def _start_text(start: StartAfter) -> str:
    if start.waiting:
        ended = (
            f"after {counted(len(start.ends), 'end')} of running jobs" if start.ends else "and no running job is left"
        )
        return f"submitted jobs still wait {ended}: {', '.join(start.waiting[:MOST_ROWS])}"
    if not start.ends:
        return "submitted jobs start at once"
    shown = ", ".join(start.ends[:MOST_ROWS]) + (" ..." if len(start.ends) > MOST_ROWS else "")
    when = "no time is known for all of them" if start.latest is None else f"in {_span(start.latest)} at the latest"
    return f"submitted jobs start after {counted(len(start.ends), 'end')} of running jobs ({when}): {shown}"


def _span(time: timedelta) -> str:
    minutes = int(time.total_seconds()) // 60
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m{int(time.total_seconds()) % 60:02}s"


def _fate_lines(found: list[PlayedWorkload], fate: Fate, paint: Paint) -> Iterator[str]:
    painted = paint(fate.value, COLOURS.get(fate, "yellow"))
    yield from (f"  {painted}: {_text(one)}" for one in found[:MOST_ROWS])
    if len(found) > MOST_ROWS:
        yield f"  {fate.value}: and {len(found) - MOST_ROWS} more"


def _text(workload: PlayedWorkload) -> str:
    parts = [str(workload)]
    if workload.by:
        parts.append(f"by {workload.by}")
    if workload.why:
        parts.append(format_value(workload.why))
    return ": ".join(parts)


def _team_lines(teams: tuple[TeamTotals, ...], paint: Paint) -> Iterator[str]:
    changed = [one for one in teams if one.running[0] != one.running[1] or one.pending[0] != one.pending[1]]
    if not changed:
        return
    yield paint("per tenant", "bold")
    rows = [
        (_team_name(one), _step("running", one.running), _step("pending", one.pending), _held(one)) for one in changed
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"  {cells}  {row[3]}".rstrip()
    if len(teams) > len(changed):
        yield f"  unchanged: {len(teams) - len(changed)}"


def _team_name(team: TeamTotals) -> str:
    return team.name if team.is_tenant else f"namespace {team.name}"


def _step(noun: str, numbers: tuple[int, int]) -> str:
    before, after = numbers
    return f"{noun} {before}" if before == after else f"{noun} {before} -> {after}"


def _held(team: TeamTotals) -> str:
    return ", ".join(f"{name} {before} -> {after}" for name, (before, after) in team.held.items() if before != after)


def simulation_markdown(simulation: Simulation) -> str:
    """A section of a comment: ten lines, and the rest folded."""
    lines = list(simulation_lines(simulation))
    if not simulation.workloads and not simulation.unknown:
        return f"**Simulated**: {lines[-1]}"
    harmed = [one for one in simulation.workloads if one.fate.is_harm]
    shown = [*harmed, *(one for one in simulation.workloads if one.fate is Fate.ADMITTED)]
    parts = [f"**Simulated** with real Kueue: {summary(simulation)}", ""]
    parts += [f"- **{one.fate}**: {one_line(_text(one))}" for one in shown[:MOST_ROWS]]
    parts += [f"- unknown: {one_line(str(gap))}" for gap in simulation.unknown]
    parts += ["", "<details><summary>everything that was simulated</summary>", ""]
    return "\n".join([*parts, *(f"    {line}" for line in lines), "", "</details>"])


def simulation_record(simulation: Simulation) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "base": simulation.base,
        "head": simulation.head,
        "takenAt": simulation.taken_at.isoformat(),
        "settled": simulation.is_settled,
        "seconds": simulation.seconds,
        "counts": {fate.value: sum(one.fate is fate for one in simulation.workloads) for fate in Fate},
        "teams": [_team_record(one) for one in team_totals(simulation.workloads)],
        "clusters": [_cluster_record(one) for one in simulation.clusters],
        "unknown": [str(gap) for gap in simulation.unknown],
        "notes": list(simulation.notes),
    }


def _team_record(team: TeamTotals) -> dict[str, Any]:
    return {
        "name": team.name,
        "tenant": team.is_tenant,
        "running": {"before": team.running[0], "after": team.running[1]},
        "pending": {"before": team.pending[0], "after": team.pending[1]},
        "held": {
            resource: {"before": str(before), "after": str(after)} for resource, (before, after) in team.held.items()
        },
    }


def _cluster_record(cluster: PlayedCluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "kueue": {"runs": cluster.release, "played": cluster.played, "exact": cluster.is_exact},
        "settled": cluster.is_settled,
        "seconds": cluster.seconds,
        "moved": list(cluster.moved),
        "start": cluster.start and _start_record(cluster.start),
        "notes": list(cluster.notes),
        "workloads": [_workload_record(one) for one in cluster.workloads],
    }


def _start_record(start: StartAfter) -> dict[str, Any]:
    seconds = None if start.latest is None else start.latest.total_seconds()
    return {"ends": list(start.ends), "latestSeconds": seconds, "waiting": list(start.waiting)}


def _workload_record(workload: PlayedWorkload) -> dict[str, Any]:
    return {
        "fate": workload.fate.value,
        "namespace": workload.namespace,
        "kind": workload.kind,
        "name": workload.name,
        "queue": workload.queue,
        "tenant": workload.tenant,
        "submitted": workload.is_submitted,
        "before": _amounts(workload.held_before),
        "after": _amounts(workload.held_after),
        "reason": workload.reason,
        "why": workload.why,
        "by": workload.by,
    }


def _amounts(held: Mapping[str, Quantity]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in held.items()}
