"""Sends commit statuses to a forge in the background: a slow or unreachable forge does not delay a cycle."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from reconciler.clients.forge import CommitState, CommitStatus, Forge, tell_commit
from reconciler.clients.protocols import ClusterClient
from reconciler.controller.connections import Clusters
from reconciler.controller.cycle import CycleReport
from reconciler.controller.revisions import Followed
from reconciler.errors import ClusterError, EdgeError
from reconciler.plan.model import Reason
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import STATUS_MANAGER, SetName
from reconciler.text import counted

log = logging.getLogger(__name__)
TRIED_EVERY = timedelta(seconds=30)
# The number of commits whose sent and pending statuses are kept.
REMEMBERED = 50
LONGEST = 500
_SINCE = "since"


class Commits:
    """Sends the latest status of each commit. A failed request is retried until there is a newer status."""

    def __init__(self, forge: Forge, token: Callable[[], str], pause: timedelta = TRIED_EVERY) -> None:
        self._forge, self._token, self._pause = forge, token, pause
        self._wanted: dict[str, CommitStatus] = {}
        self._told: dict[str, CommitStatus] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._problem = ""
        threading.Thread(target=self._go_on, name="commits", daemon=True).start()

    def want(self, status: CommitStatus) -> None:
        with self._changed:
            if (self._wanted.get(status.commit) or self._told.get(status.commit)) != status:
                self._wanted[status.commit] = status
                _forget_oldest(self._wanted)
                self._changed.notify_all()

    def close(self) -> None:
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def _go_on(self) -> None:
        while not self._ended.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._ended.is_set())
                wanted = list(self._wanted.values())
            if sum(self._tell(status) for status in wanted) < len(wanted):
                self._ended.wait(self._pause.total_seconds())

    def _tell(self, status: CommitStatus) -> bool:
        try:
            tell_commit(self._forge, self._token(), status)
        except EdgeError as error:
            if error.problem != self._problem:
                facts = {"revision": status.commit[:12], "forge": error.where, "problem": error.problem}
                log.warning("commit status not sent", extra=facts | ({"hint": error.hint} if error.hint else {}))
            self._problem = error.problem
            return False
        self._problem = ""
        with self._changed:
            self._told[status.commit] = status
            _forget_oldest(self._told)
            if self._wanted.get(status.commit) == status:
                del self._wanted[status.commit]
        return True


def _forget_oldest(statuses: dict[str, CommitStatus]) -> None:
    if len(statuses) > REMEMBERED:
        del statuses[next(iter(statuses))]


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
    """`problem` is why `refused`, a newer revision, is not followed, or why git cannot be read."""

    fleet: str
    revision: str
    result: Result
    message: str
    clusters: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    refused: str = ""

    @property
    def content(self) -> dict[str, str]:
        """The data of the ConfigMap."""
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
    spec, plan = report.rendered.spec, report.plan
    troubles = [*_troubles(report)]
    first = troubles[0] if troubles else _Trouble(Result.APPLIED, "", _summary(report))
    clusters = {
        str(cluster.name): next(
            (f"{one.result}: {_short(one.text)}" for one in troubles if one.cluster == cluster.name), "applied"
        )
        for cluster in spec.clusters
    }
    return FleetStatus(
        fleet=plan.fleet,
        revision=plan.revision,
        result=first.result,
        message=first.text,
        clusters=clusters,
        problem=followed.problem,
        refused=followed.refused,
    )


def failed_status(spec: FleetSpec, problem: str, followed: Followed) -> FleetStatus:
    """The status of a cycle that ended in an error."""
    message = f"the last cycle ended in an error: {problem}"
    return FleetStatus(
        fleet=spec.fleet.name,
        revision=spec.revision,
        result=Result.FAILED,
        message=message,
        clusters={},
        problem=followed.problem,
        refused=followed.refused,
    )


def commit_statuses(status: FleetStatus) -> Iterator[CommitStatus]:
    """The commit statuses of the followed revision, and of a newer one that is refused."""
    context = f"kfleet/{status.fleet}"
    yield CommitStatus(status.revision, _STATES[status.result], status.message, context)
    if status.refused and status.refused != status.revision:
        yield CommitStatus(status.refused, CommitState.FAILURE, f"not followed: {status.problem}", context)


_BEING_DELETED = frozenset({Reason.GOING, Reason.ENDING})


@dataclass(frozen=True, slots=True)
class _Trouble:
    result: Result
    cluster: str
    text: str


def _troubles(report: CycleReport) -> Iterator[_Trouble]:
    """All issues of a cycle, the worst first."""
    yield from _failures(report)
    for refusal in report.plan.refusals:
        yield _Trouble(Result.REFUSED, refusal.cluster or "", str(refusal))
    for gap in report.plan.gaps:
        yield _Trouble(Result.INCOMPLETE, gap.cluster, f"{gap} could not be observed")
    for outcome in report.outcomes:
        begun = (one for one in outcome.outcomes if one.is_waiting)
        yield from (_Trouble(Result.INCOMPLETE, outcome.name, f"{one.ref}: {one.problem}") for one in begun)
    # An object that is being deleted is the reason why others, which it refers to, are still in use.
    for change in sorted(report.plan.unfinished_removals, key=lambda one: one.reason not in _BEING_DELETED):
        yield _Trouble(
            Result.INCOMPLETE, change.ref.cluster, "; ".join((f"{change.ref}: {change.reason}", *change.notes))
        )
    yield from _unhealthy(report)
    yield from _suspended(report)


def _suspended(report: CycleReport) -> Iterator[_Trouble]:
    for cluster in report.plan.clusters:
        if report.rendered.spec.is_suspended(cluster.name):
            waiting = sum(change.reason is Reason.SUSPENDED for change in cluster.changes)
            yield _Trouble(
                Result.SUSPENDED, cluster.name, f"{cluster.name}: {counted(waiting, 'change')} held until it is resumed"
            )


def _unhealthy(report: CycleReport) -> Iterator[_Trouble]:
    for fight in report.fights:
        yield _Trouble(Result.UNHEALTHY, fight.ref.cluster, str(fight))
    for preflight_issue in report.plan.preflight_issues:
        yield _Trouble(Result.UNHEALTHY, preflight_issue.cluster, str(preflight_issue))
    for health_issue in report.health_issues:
        yield _Trouble(Result.UNHEALTHY, health_issue.ref.cluster, str(health_issue))


def _failures(report: CycleReport) -> Iterator[_Trouble]:
    for outcome in report.outcomes:
        failed = (one for one in outcome.outcomes if one.problem and not one.is_waiting)
        for problem in (outcome.problem, *(f"{one.ref}: {one.problem}" for one in failed)):
            if problem:
                yield _Trouble(Result.FAILED, outcome.name, problem)


def _summary(report: CycleReport) -> str:
    objects, clusters = len(report.rendered.desired.objects), len(report.rendered.spec.clusters)
    return f"{counted(objects, 'object')} on {counted(clusters, 'cluster')} in sync with the fleet"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


class StatusReporter:
    def __init__(self, clusters: Clusters, commits: Commits | None = None) -> None:
        self._clusters, self._commits = clusters, commits
        self._written: Mapping[str, str] | None = None
        self._problem = self._revision = ""

    def begin(self) -> None:
        """Drop the last status: another replica may have written one while this one was not the leader."""
        self._written = None

    def tell_unread(self, followed: Followed) -> None:
        """Report a commit that cannot be read. There is no fleet yet whose status could be written."""
        if self._commits and followed.refused:
            problem = f"not followed: {followed.problem}"
            self._commits.want(CommitStatus(followed.refused, CommitState.FAILURE, problem, "kfleet"))

    def tell_start(self, spec: FleetSpec) -> None:
        if self._commits and spec.revision != self._revision:
            context = f"kfleet/{spec.fleet.name}"
            self._commits.want(CommitStatus(spec.revision, CommitState.PENDING, "kfleet is reconciling it", context))
        self._revision = spec.revision

    def tell(self, spec: FleetSpec, status: FleetStatus) -> None:
        if self._commits:
            for commit in commit_statuses(status):
                self._commits.want(commit)
        content = status.content
        if content == self._written:
            return
        try:
            _keep(self._clusters.server(spec, home_cluster(spec).name), spec, content)
        except ClusterError as error:
            if error.problem != self._problem:
                log.warning("status not written", extra={"cluster": error.where, "problem": error.problem})
            self._problem = error.problem
            return
        self._written, self._problem = content, ""

    def close(self) -> None:
        if self._commits:
            self._commits.close()


def _keep(client: ClusterClient, spec: FleetSpec, content: Mapping[str, str]) -> None:
    """Write the status if it differs from the stored one, with the time of the change."""
    namespace = home_cluster(spec).kueue.namespace
    path = SetName(spec.fleet.name, namespace).status_path
    found = (client.find(path) or {}).get("data") or {}
    if {key: text for key, text in found.items() if key != _SINCE} == content:
        return
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": path.rpartition("/")[2], "namespace": namespace},
        "data": {**content, _SINCE: since},
    }
    client.apply_at(path, manifest, manager=STATUS_MANAGER, is_forced=True, is_dry_run=False)
