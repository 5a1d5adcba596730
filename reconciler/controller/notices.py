"""Notices of a cycle for Events, and a grace period for health: Kueue needs a moment to process a new object."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby

from reconciler.capacity.model import Condition
from reconciler.controller.fights import Fight
from reconciler.objects import PreflightIssue
from reconciler.plan.model import Plan, Reason, Refused
from reconciler.report.health import HealthIssue

GRACE_PERIOD = timedelta(seconds=10)

Trouble = HealthIssue | PreflightIssue
_TROUBLES = {
    Refused.CONTESTED: "Conflict",
    Refused.FOREIGN: "Conflict",
    Refused.TOO_MANY: "DeletesRefused",
    Refused.EMPTY: "DeletesRefused",
    Refused.MOVED: "ClusterReplaced",
    Refused.SHARED: "ClusterReplaced",
    Refused.DISRUPTION: "EvictionsRefused",
}


MOST_OF_A_REASON = 10
MOST_OF_A_BUS, A_WHILE = 10, timedelta(minutes=10)
# A separate number or quantity. Digits in a name (worker-1, a100) are part of the name.
_AMOUNT = re.compile(r"(?<![\w.-])\d[\d.]*\w*(?![\w-])")


class Debouncer:
    """When each issue was first observed. Issues of the first cycle are older than the process and persist."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] | None = None

    def begin(self) -> None:
        self._since = None

    def note(self, troubles: Iterable[Trouble]) -> None:
        """Record all current issues; every other issue has ended."""
        now, known = self._clock(), self._since
        first = now if known is not None else now - GRACE_PERIOD.total_seconds()
        self._since = {name: (known or {}).get(name, first) for name in map(_name, troubles)}

    def is_persistent(self, trouble: Trouble) -> bool:
        return self._age((self._since or {}).get(_name(trouble), self._clock())) >= GRACE_PERIOD

    def due(self) -> timedelta | None:
        """When the grace period of the next issue ends."""
        ages = (self._age(since) for since in (self._since or {}).values())
        return min((GRACE_PERIOD - age for age in ages if age < GRACE_PERIOD), default=None)

    def _age(self, since: float) -> timedelta:
        return timedelta(seconds=self._clock() - since)


def _name(trouble: Trouble) -> str:
    """The identity of an issue, without its reason, which may change while the issue persists."""
    return str(trouble.ref) if isinstance(trouble, HealthIssue) else f"{trouble.cluster}: {trouble.check}"


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """A notice for an Event. `reason` is one word, as in Kubernetes Events; `reason` and `about` identify the notice.

    The message is not compared: usage goes up and down, and each number would make a new notice.
    """

    reason: str
    about: str
    message: str = field(compare=False)
    bus: str = field(default="", compare=False)


class Told:
    """The notices of the last cycle: a notice is new if the last cycle did not have it.

    Conditions of pools can begin and end with every message. So only a few notices per message bus are sent in a time
    window; the status and the metrics contain all of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: frozenset[Notice] = frozenset()
        self._times: dict[str, list[float]] = {}

    def news(self, notices: frozenset[Notice]) -> frozenset[Notice]:
        fresh, self._known = notices - self._known, notices
        return frozenset(one for one in sorted(fresh) if not one.bus or self._has_room(one.bus))

    def _has_room(self, bus: str) -> bool:
        now = self._clock()
        times = [since for since in self._times.get(bus, ()) if now - since < A_WHILE.total_seconds()]
        has_room = len(times) < MOST_OF_A_BUS
        self._times[bus] = [*times, now] if has_room else times
        return has_room


def find_notices(
    plan: Plan, conditions: tuple[Condition, ...], health_issues: tuple[HealthIssue, ...], revision_problem: str
) -> frozenset[Notice]:
    """All notices of a cycle; `conditions` come from the observed capacity: lost pools, over-commit."""
    return frozenset((*_found(plan, conditions, revision_problem), *_unhealthy(plan, health_issues)))


def fight_notices(fights: Iterable[Fight]) -> frozenset[Notice]:
    return frozenset(Notice("WrittenBack", str(fight.ref), str(fight)) for fight in fights)


def in_short(notices: Iterable[Notice]) -> Iterator[Notice]:
    """A few notices per reason, and the number of others: if Kueue is down, thousands of objects are unhealthy."""
    for reason, group in groupby(sorted(notices), key=lambda notice: notice.reason):
        known = list(group)
        yield from known[:MOST_OF_A_REASON]
        if (more := len(known) - MOST_OF_A_REASON) > 0:
            yield Notice(reason, "", f"and {more} more like these; kfleet status shows all of them")


def _found(plan: Plan, conditions: tuple[Condition, ...], revision_problem: str) -> Iterator[Notice]:
    if revision_problem:
        yield Notice("RevisionRefused", revision_problem, revision_problem)
    for refusal in plan.refusals:
        yield Notice(_TROUBLES.get(refusal.reason, "Refused"), _without_amounts(str(refusal)), str(refusal))
    for gap in plan.gaps:
        yield Notice("NotSeen", f"{gap.cluster}: {gap.what}", str(gap))
    for condition in conditions:
        about = condition.about or _without_amounts(condition.text)
        yield Notice("Capacity", about, condition.text, condition.bus)
    for cluster in plan.clusters:
        if any(change.reason is Reason.SUSPENDED for change in cluster.changes):
            yield Notice("Suspended", cluster.name, f"{cluster.name}: changes are held while it is suspended")


def _unhealthy(plan: Plan, health_issues: tuple[HealthIssue, ...]) -> Iterator[Notice]:
    for preflight_issue in plan.preflight_issues:
        # The remedy distinguishes two issues of one check, and does not contain the number of attempts.
        about = f"{preflight_issue.cluster}: {preflight_issue.check}: {preflight_issue.remedy}"
        yield Notice("PreflightIssue", about, str(preflight_issue))
    for health_issue in health_issues:
        # Kueue's own message may change with every attempt. Issues without one are identified by their meaning.
        meaning = "" if health_issue.message else health_issue.meaning
        yield Notice("Unhealthy", f"{health_issue.ref}: {health_issue.reason}: {meaning}", str(health_issue))


def _without_amounts(text: str) -> str:
    return _AMOUNT.sub("N", text)
