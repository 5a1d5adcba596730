"""How far a revision has come, and why no further, as values: for those who do not read logs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.edges.forge import CommitState, CommitStatus
from reconciler.plan import Reason
from reconciler.run.cycle import CycleReport
from reconciler.run.revisions import Followed
from reconciler.spec import FleetSpec
from reconciler.texts import counted

LONGEST = 500


class Result(StrEnum):
    APPLIED = "applied"
    SUSPENDED = "suspended"
    UNHEALTHY = "unhealthy"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"
    FAILED = "failed"


_STATES = {
    Result.APPLIED: CommitState.SUCCESS,
    Result.SUSPENDED: CommitState.PENDING,
    Result.UNHEALTHY: CommitState.PENDING,
    Result.INCOMPLETE: CommitState.PENDING,
    Result.REFUSED: CommitState.FAILURE,
    Result.FAILED: CommitState.FAILURE,
}


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """`problem` says why `refused`, a newer revision, is not followed, or why there may be one that nobody can see."""

    fleet: str
    revision: str
    result: Result
    message: str
    clusters: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    refused: str = ""

    @property
    def content(self) -> dict[str, str]:
        """As a ConfigMap holds it."""
        clusters = "\n".join(f"{name}: {state}" for name, state in self.clusters.items())
        parts = {
            "fleet": self.fleet,
            "revision": self.revision,
            "result": self.result.value,
            "message": _short(self.message),
            "clusters": clusters,
            "refusedRevision": self.refused,
            "problem": _short(self.problem),
        }
        return {name: text for name, text in parts.items() if text}


def status_of(report: CycleReport, followed: Followed) -> FleetStatus:
    spec, plan = report.computed.spec, report.plan
    troubles = [*_troubles(report)]
    first = troubles[0] if troubles else _Trouble(Result.APPLIED, "", _summary(report))
    clusters = {
        str(cluster.name): next(
            (f"{one.result}: {_short(one.text)}" for one in troubles if one.cluster == cluster.name), "applied"
        )
        for cluster in spec.clusters
    }
    return FleetStatus(
        plan.fleet, plan.revision, first.result, first.text, clusters, followed.problem, followed.refused
    )


def failed_status(spec: FleetSpec, problem: str, followed: Followed) -> FleetStatus:
    """A cycle that ended in an error."""
    message = f"the last cycle ended in an error: {problem}"
    return FleetStatus(spec.fleet.name, spec.revision, Result.FAILED, message, {}, followed.problem, followed.refused)


def commit_statuses(status: FleetStatus) -> Iterator[CommitStatus]:
    """What is said about the revision that is followed, and about a newer one that is not."""
    context = f"kfleet/{status.fleet}"
    yield CommitStatus(status.revision, _STATES[status.result], status.message, context)
    if status.refused and status.refused != status.revision:
        yield CommitStatus(status.refused, CommitState.FAILURE, f"not followed: {status.problem}", context)


@dataclass(frozen=True, slots=True)
class _Trouble:
    result: Result
    cluster: str
    text: str


def _troubles(report: CycleReport) -> Iterator[_Trouble]:
    """The worst first."""
    yield from _failures(report)
    for refusal in report.plan.refusals:
        yield _Trouble(Result.REFUSED, refusal.cluster or "", str(refusal))
    for gap in report.plan.gaps:
        yield _Trouble(Result.INCOMPLETE, gap.cluster, f"{gap} could not be seen")
    for outcome in report.outcomes:
        begun = (one for one in outcome.outcomes if one.is_waiting)
        yield from (_Trouble(Result.INCOMPLETE, outcome.name, f"{one.ref}: {one.problem}") for one in begun)
    for obstacle in report.plan.obstacles:
        yield _Trouble(Result.UNHEALTHY, obstacle.cluster, str(obstacle))
    for ailment in report.ailments:
        yield _Trouble(Result.UNHEALTHY, ailment.ref.cluster, str(ailment))
    for cluster in report.plan.clusters:
        if report.computed.spec.is_suspended(cluster.name):
            waiting = sum(change.reason is Reason.SUSPENDED for change in cluster.changes)
            yield _Trouble(
                Result.SUSPENDED, cluster.name, f"{cluster.name}: {counted(waiting, 'change')} held until it goes on"
            )


def _failures(report: CycleReport) -> Iterator[_Trouble]:
    for outcome in report.outcomes:
        failed = (one for one in outcome.outcomes if one.problem and not one.is_waiting)
        for problem in (outcome.problem, *(f"{one.ref}: {one.problem}" for one in failed)):
            if problem:
                yield _Trouble(Result.FAILED, outcome.name, problem)


def _summary(report: CycleReport) -> str:
    objects, clusters = len(report.computed.desired.objects), len(report.computed.spec.clusters)
    return f"{counted(objects, 'object')} on {counted(clusters, 'cluster')} as the fleet says"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
