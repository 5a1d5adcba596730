"""What a cycle tells: Events, a log line per written object, what other field managers revert, when health counts.

An object that another field manager reverts after every write is written after a longer pause each time. Otherwise two
controllers that watch an object and write it at once would write as fast as they can, without end.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby

from reconciler.capacity.model import Condition
from reconciler.kubestellar.model import PlacementStep
from reconciler.kueue.references import referrers
from reconciler.objects import ClusterName, Manifest, PreflightIssue, Ref
from reconciler.plan.model import Action, Cause, Change, ClusterOutcome, FieldChange, Plan, Reason, Refused
from reconciler.report.health import HealthIssue
from reconciler.state.model import ClusterView
from reconciler.text import format_value

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=5)
# A manager that has not reverted a write for so long has stopped.
FORGOTTEN_AFTER = timedelta(minutes=1)
# A user may edit an object twice; kfleet reports it from the third write on.
TOLD_FROM = 3
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}
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
CORRECTED = "Corrected"
# The first apply of a large fleet writes thousands of objects: git has their content.
MOST_LOGGED = 100
MOST_FIELDS = 20

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fight:
    """An object that was written `count` times with the same content, and the field managers that changed it since."""

    ref: Ref
    wanted: str
    managers: tuple[str, ...]
    count: int
    written_at: float

    @property
    def pause(self) -> timedelta:
        """The time between two writes. It is zero after the first write: kfleet reverts a manual edit at once."""
        return min(FIRST_PAUSE * 2 ** min(self.count - 2, 10), LONGEST_PAUSE) if self.count > 1 else timedelta()

    def __str__(self) -> str:
        who = ", ".join(self.managers) or "another client"
        way_out = "remove the object or these fields from one of the two"
        return f"{self.ref}: {who} reverts it each time kfleet writes it ({self.count} times); {way_out}"


class Fights:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Ref, Fight] = {}

    def begin(self) -> None:
        self._known = {}

    def hold(self, plan: Plan, views: Sequence[ClusterView]) -> Plan:
        """Hold writes that come too soon after the same write."""
        now = self._clock()
        self._known = {ref: one for ref, one in self._known.items() if now - one.written_at < _kept(one)}
        if not self._known:
            return plan
        live = {view.name: view.live for view in views}
        clusters = (
            replace(cluster, changes=_with_used([self._held(change, now) for change in cluster.changes], live))
            for cluster in plan.clusters
        )
        return replace(plan, clusters=tuple(clusters))

    def note(self, plan: Plan, outcomes: Iterable[ClusterOutcome]) -> None:
        """Record the writes of a cycle."""
        done = {one.ref for cluster in outcomes for one in cluster.outcomes if one.is_done}
        now = self._clock()
        for change in plan.writes:
            if change.ref in done and _is_comparable(change):
                known = self._same(change)
                managers = {*(known.managers if known else ()), *_owners(change)} if known else set()
                count = known.count + 1 if known else 1
                self._known[change.ref] = Fight(change.ref, change.wanted, tuple(sorted(managers)), count, now)

    @property
    def told(self) -> tuple[Fight, ...]:
        """The fights to report."""
        return tuple(one for _, one in sorted(self._known.items()) if one.count >= TOLD_FROM)

    def due(self, plan: Plan) -> timedelta | None:
        """When the next of the held objects may be written again."""
        now = self._clock()
        held = (self._known[change.ref] for change in plan.changes if change.reason is Reason.WRITTEN_BACK)
        return min((one.pause - timedelta(seconds=now - one.written_at) for one in held), default=None)

    def _held(self, change: Change, now: float) -> Change:
        known = self._same(change) if change.action in _WRITES else None
        if known is None or timedelta(seconds=now - known.written_at) >= known.pause:
            return change
        managers = tuple(sorted({*known.managers, *_owners(change)}))
        fight = self._known[change.ref] = replace(known, managers=managers)
        notes = (*change.notes, f"{', '.join(managers) or 'another client'}; tried again after {_text(fight.pause)}")
        return change._replace(action=Action.HOLD, reason=Reason.WRITTEN_BACK, notes=notes)

    def _same(self, change: Change) -> Fight | None:
        known = self._known.get(change.ref)
        return known if known and known.wanted == change.wanted and _is_comparable(change) else None


def _with_used(changes: Sequence[Change], live: Mapping[ClusterName, Mapping[Ref, Manifest]]) -> tuple[Change, ...]:
    """Hold deletes of objects that a held object still refers to."""
    held = [change.ref for change in changes if change.reason is Reason.WRITTEN_BACK]
    there = (live[ref.cluster][ref] for ref in held if ref in live.get(ref.cluster, {}))
    named = referrers(there)
    return tuple(
        change._replace(action=Action.HOLD, reason=Reason.IN_USE)
        if change.action is Action.DELETE and (change.ref.kind, change.ref.name) in named
        else change
        for change in changes
    )


def _is_comparable(change: Change) -> bool:
    """Whether writes can be compared. A token is new each time, and a rollout detects itself that it is reverted."""
    return change.action in _WRITES and change.token is None and change.rollout is None


def _owners(change: Change) -> Iterator[str]:
    for changed in change.fields:
        yield from filter(None, changed.owner.split(", "))


def _kept(fight: Fight) -> float:
    return (fight.pause + FORGOTTEN_AFTER).total_seconds()


def _text(pause: timedelta) -> str:
    return f"{pause.total_seconds():.0f} s"


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


def written_changes(plan: Plan, outcomes: Iterable[ClusterOutcome]) -> Iterator[Change]:
    """The changes that were made, in the order of the plan."""
    done = _done(outcomes)
    yield from (change for cluster in plan.clusters for change in cluster.changes if change.ref in done)


def made_placements(plan: Plan, outcomes: Iterable[ClusterOutcome]) -> Iterator[PlacementStep]:
    done = _done(outcomes)
    yield from (step for step in plan.placements if step.ref in done)


def _done(outcomes: Iterable[ClusterOutcome]) -> frozenset[Ref]:
    return frozenset(one.ref for cluster in outcomes for one in cluster.outcomes if one.is_done)


def log_written(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> None:
    changes = list(written_changes(plan, outcomes))
    for change in changes[:MOST_LOGGED]:
        fields = [_field_text(field) for field in change.fields[:MOST_FIELDS]]
        facts = {"object": str(change.ref), "action": change.action.value, "reason": str(change.reason)}
        log.info("written", extra={**facts, "fields": fields})
    if len(changes) > MOST_LOGGED:
        log.info("written", extra={"more": len(changes) - MOST_LOGGED})
    for step in made_placements(plan, outcomes):
        name = f"{step.ref.kind}/{step.ref.namespace}/{step.ref.name}"
        log.info(
            "placement", extra={"job": name, "step": step.verb.value, "target": step.cluster or "", "why": step.why}
        )


def correction_notices(plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> frozenset[Notice]:
    """One notice per object that another client had changed: which fields, from what to what, and whose they were."""
    return frozenset(
        Notice(CORRECTED, f"{change.ref}: {', '.join(field.path for field in drifted)}", _correction(change, drifted))
        for change in written_changes(plan, outcomes)
        if (drifted := [field for field in change.fields if field.cause is Cause.DRIFT])
    )


def _correction(change: Change, drifted: list[FieldChange]) -> str:
    more = f"; and {len(drifted) - MOST_FIELDS} more fields" if len(drifted) > MOST_FIELDS else ""
    return f"{change.ref}: corrected {'; '.join(_field_text(field) for field in drifted[:MOST_FIELDS])}{more}"


def _field_text(field: FieldChange) -> str:
    owner = f", held by {field.owner}" if field.owner else ""
    return f"{field.path}: {format_value(field.old)} -> {format_value(field.new)} ({field.cause.value}{owner})"
