"""Objects that another field manager reverts after every write: kfleet waits longer after each write.

Otherwise two controllers that watch an object and write it at once would write as fast as they can, without end.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.kueue.references import referrers
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.model import Action, Change, Plan, Reason
from reconciler.plan.outcome import ClusterOutcome
from reconciler.state.model import ClusterView

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=5)
# A manager that has not reverted a write for so long has stopped.
FORGOTTEN_AFTER = timedelta(minutes=1)
# A user may edit an object twice; kfleet reports it from the third write on.
TOLD_FROM = 3
_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}


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
    for field in change.fields:
        yield from filter(None, field.owner.split(", "))


def _kept(fight: Fight) -> float:
    return (fight.pause + FORGOTTEN_AFTER).total_seconds()


def _text(pause: timedelta) -> str:
    return f"{pause.total_seconds():.0f} s"
