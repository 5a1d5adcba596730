"""What `kfleet kueue` prints: the order before, the outcome after, and what runs on each cluster against git."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.kueue_install.model import (
    DEPLOYED,
    Harmony,
    HelmRecord,
    InstallAction,
    InstallPlan,
    InstallStep,
    KueueStatus,
    SeenKueue,
    StepOutcome,
    StepState,
    exact,
    wanted_version,
)
from reconciler.kueue_install.records import are_same_values
from reconciler.objects import Manifest
from reconciler.spec.model import Cluster, KueueInstall
from reconciler.text import Paint

_COLUMNS = ("cluster", "role", "git", "running", "helm release", "state", "health")


def plan_lines(plan: InstallPlan, paint: Paint) -> Iterator[str]:
    width = max((len(step.cluster) for step in plan.steps), default=0)
    for number, step in enumerate(plan.steps, start=1):
        yield f"{number:>2}. {step.cluster:<{width}}  {step.role:<10}  {_step_text(step, paint)}"
        yield from (f"      {note}" for note in step.notes)
        for refusal in step.refusals:
            yield f"      {paint('refused:', 'red')} {refusal.problem}"
            if refusal.remedy:
                yield f"        {refusal.remedy}"
    yield from (f"{paint('gap:', 'yellow')} {gap}" for gap in plan.gaps)


def _step_text(step: InstallStep, paint: Paint) -> str:
    where = f"Helm release {step.namespace}/{step.release}"
    match step.action:
        case InstallAction.CHECK:
            return f"{step.wanted}, nothing to do but to check that it is healthy"
        case InstallAction.SKIP:
            return paint("skipped", "yellow")
        case InstallAction.INSTALL:
            return f"{paint('install', 'bold')} {step.wanted}  ({where})"
    versions = step.wanted if step.running in {"", step.wanted} else f"{step.running} -> {step.wanted}"
    revision = f", revision {step.record.revision}" if step.record else ""
    return f"{paint(step.action, 'bold')} {versions}  ({where}{revision})"


def outcome_lines(outcomes: Sequence[StepOutcome], paint: Paint) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.state is StepState.NOT_STARTED:
            yield f"{outcome.cluster}: {paint('not started', 'yellow')}"
        else:
            yield outcome_line(outcome, paint)
    if any(outcome.state is StepState.FAILED for outcome in outcomes):
        yield "mend that and repeat the command: what is done is not done again"


def outcome_line(outcome: StepOutcome, paint: Paint) -> str:
    if outcome.state is StepState.FAILED:
        return f"{outcome.cluster}: {paint('failed', 'red')}: {outcome.problem}"
    return f"{outcome.cluster}: {paint(outcome.state, 'green')}, healthy after {outcome.seconds:.0f} s"


def status_lines(statuses: Sequence[KueueStatus], paint: Paint) -> Iterator[str]:
    rows = [_row(status) for status in statuses]
    widths = [max(len(row[index]) for row in (_COLUMNS, *rows)) for index in range(len(_COLUMNS))]
    for row in (tuple(title.upper() for title in _COLUMNS), *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for status in statuses:
        yield from (f"{paint('unhealthy:', 'red')} {status.cluster}: {problem}" for problem in status.unhealthy)
        if status.why:
            yield f"{paint('gap:', 'yellow')} {status.cluster}: {status.why}"


def _row(status: KueueStatus) -> tuple[str, ...]:
    health = "unknown" if status.why else "healthy" if status.running else "-"
    return (
        status.cluster,
        status.role,
        status.wanted or "-",
        status.running or ("unknown" if status.harmony is Harmony.UNKNOWN else "-"),
        _record_text(status.record),
        status.harmony,
        "unhealthy" if status.unhealthy else health,
    )


def _record_text(record: HelmRecord | None) -> str:
    return f"{record.chart} ({record.status}, revision {record.revision})" if record else "-"


def is_in_order(status: KueueStatus) -> bool:
    """Whether nothing is to be done about a cluster."""
    return status.harmony in {Harmony.SAME, Harmony.UNMANAGED} and not status.unhealthy


def plan_record(plan: InstallPlan, outcomes: Sequence[StepOutcome] = ()) -> Mapping[str, Any]:
    done = {outcome.cluster: outcome for outcome in outcomes}
    return {
        "command": plan.mode,
        "steps": [_step_record(step, done.get(step.cluster)) for step in plan.steps],
        "gaps": [{"cluster": gap.cluster, "what": gap.what, "why": gap.why} for gap in plan.gaps],
    }


def _step_record(step: InstallStep, outcome: StepOutcome | None) -> Mapping[str, Any]:
    record: dict[str, Any] = {
        "cluster": step.cluster,
        "role": step.role,
        "action": step.action,
        "from": step.running,
        "to": step.wanted,
        "release": f"{step.namespace}/{step.release}",
        "notes": list(step.notes),
        "refusals": [refusal._asdict() for refusal in step.refusals],
    }
    if outcome is not None:
        record |= {"state": outcome.state, "problem": outcome.problem, "seconds": round(outcome.seconds, 1)}
    return record


def status_record(statuses: Sequence[KueueStatus]) -> Mapping[str, Any]:
    return {"clusters": [_status_record(status) for status in statuses]}


def _status_record(status: KueueStatus) -> Mapping[str, Any]:
    record = status.record
    return {
        "cluster": status.cluster,
        "role": status.role,
        "git": status.wanted,
        "running": status.running,
        "helm": {"chart": record.chart, "status": record.status, "revision": record.revision} if record else None,
        "state": status.harmony,
        "unhealthy": list(status.unhealthy),
        "gap": status.why,
    }


def status_of(cluster: Cluster, seen: SeenKueue, unhealthy: tuple[str, ...] = (), why: str = "") -> KueueStatus:
    """`why` is what could not be observed of its health."""
    return KueueStatus(
        cluster=cluster.name,
        role=cluster.role,
        wanted=exact(wanted_version(cluster.kueue.install)),
        running=(exact(seen.version) or "unknown") if seen.is_there else "",
        record=seen.record,
        harmony=_harmony(cluster, seen),
        unhealthy=unhealthy,
        why=seen.unread or why,
    )


def unseen(cluster: Cluster, why: str) -> KueueStatus:
    """The status of a cluster that does not answer."""
    return KueueStatus(
        cluster=cluster.name,
        role=cluster.role,
        wanted=exact(wanted_version(cluster.kueue.install)),
        running="",
        record=None,
        harmony=Harmony.UNKNOWN,
        why=why,
    )


def _harmony(cluster: Cluster, seen: SeenKueue) -> Harmony:
    install, record = cluster.kueue.install, seen.record
    if install is None:
        return Harmony.UNMANAGED if seen.is_there else Harmony.SAME
    if not seen.is_there and record is None:
        return Harmony.MISSING
    if not seen.is_there or (record is not None and record.status != DEPLOYED):
        return Harmony.UNFINISHED
    return _compared(install, seen, cluster.kueue.configuration)


def _compared(install: KueueInstall, seen: SeenKueue, patch: Manifest) -> Harmony:
    running, wanted = seen.version, wanted_version(install)
    if running is None or wanted is None:
        return Harmony.UNKNOWN
    if running != wanted:
        return Harmony.OLDER if running < wanted else Harmony.NEWER
    if seen.record is None:
        return Harmony.SAME if seen.unread else Harmony.FOREIGN
    return Harmony.SAME if are_same_values(seen.record.values, install, patch) else Harmony.VALUES
