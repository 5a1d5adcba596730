"""Views for those who read them: computed while a reader asks, and at most once per refresh interval.

There is no thread for it: the reader whose view is due computes it, and all others get the same one. So a controller
whose page is not open does no work for it.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from reconciler.errors import KfleetError
from reconciler.web.changes import find_changes
from reconciler.web.filter import Record, ViewScope, narrow
from reconciler.web.history import CapacityHistory, CapacitySample, history_record, sample_of

NO_PLAN: Record = {"madeAt": None, "problem": "no plan was made yet", "text": "", "plan": None, "effects": None}
NOT_FOR_TENANTS: Record = {**NO_PLAN, "problem": "the plan is shown to readers of the whole fleet"}
NO_HISTORY = history_record(CapacityHistory())


class ViewSource(Protocol):
    """Where views come from. Both calls may raise a KfleetError."""

    @property
    def is_live(self) -> bool:
        """Whether a later view can be different. That of a file cannot."""

    def read_view(self) -> Record: ...

    def read_plan(self) -> Record: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the page shows at one time. A `problem` is why nothing newer could be read."""

    number: int
    view: Record
    plan: Record = field(default_factory=lambda: NO_PLAN)
    history: Record = field(default_factory=lambda: NO_HISTORY)
    problem: str = ""
    is_live: bool = True


class Feed:
    def __init__(self, source: ViewSource, refresh: timedelta) -> None:
        self._source, self.refresh = source, refresh
        self._lock = threading.Lock()
        self._shown: Shown | None = None
        self._read_at = 0.0
        self._history = CapacityHistory()
        self._encoded: dict[tuple[int, ViewScope], bytes] = {}

    def latest(self) -> Shown:
        """What is not older than the refresh interval; while another reader computes that, what was before it."""
        before = self._shown
        if before is None:
            with self._lock:
                return self._renewed()
        if not self._lock.acquire(blocking=False):
            return before
        try:
            return self._renewed()
        finally:
            self._lock.release()

    def _renewed(self) -> Shown:
        if self._shown is None or self._is_due():
            self._shown = self._read(self._shown)
            self._encoded = {}
            self._read_at = time.monotonic()
        return self._shown

    def note(self, sample: CapacitySample) -> None:
        self._history = self._history.with_sample(sample)

    def change(self, before: Shown, after: Shown, scope: ViewScope) -> bytes:
        """The event that makes one view of another, encoded once for all readers with the same scope."""
        key = (before.number, scope)
        cached, is_current = self._encoded, after is self._shown
        if is_current and (found := cached.get(key)) is not None:
            return found
        difference = find_changes(narrow(before.view, scope), narrow(after.view, scope))
        made = event("change", {**_facts(after), "change": difference})
        if is_current:
            cached[key] = made
        return made

    def _is_due(self) -> bool:
        return self._source.is_live and time.monotonic() - self._read_at >= self.refresh.total_seconds()

    def _read(self, before: Shown | None) -> Shown:
        number = before.number + 1 if before else 1
        try:
            view, plan = self._source.read_view(), self._source.read_plan()
        except KfleetError as error:
            if before is None:
                raise
            return Shown(
                number=number,
                view=before.view,
                plan=before.plan,
                history=before.history,
                problem=str(error),
                is_live=before.is_live,
            )
        self.note(sample_of(view, datetime.now(UTC)))
        history = history_record(self._history)
        return Shown(number=number, view=view, plan=plan, history=history, is_live=self._source.is_live)


class Reader:
    """One open stream, and what it was sent last."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._sent: Shown | None = None
        self._scope: ViewScope | None = None

    def events(self, shown: Shown, scope: ViewScope) -> Iterator[bytes]:
        before = self._sent if self._scope == scope else None
        self._sent, self._scope = shown, scope
        if before is None:
            facts = {**_facts(shown), "scope": _scope_record(scope), "isLive": shown.is_live}
            yield event("view", {**facts, "view": narrow(shown.view, scope)})
        elif before.number != shown.number:
            yield self._feed.change(before, shown, scope)
        if before is None or before.plan != shown.plan:
            yield event("plan", plan_for(shown, scope))
        if scope.is_fleet and (before is None or before.history != shown.history):
            yield event("history", shown.history)


def plan_for(shown: Shown, scope: ViewScope) -> Record:
    return shown.plan if scope.is_fleet else NOT_FOR_TENANTS


def event(name: str, data: Record) -> bytes:
    """One server-sent event. JSON of orjson has no line breaks."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


def _facts(shown: Shown) -> Record:
    return {"now": datetime.now(UTC).isoformat(timespec="milliseconds"), "problem": shown.problem}


def _scope_record(scope: ViewScope) -> Record:
    return {"fleet": scope.is_fleet, "namespaces": sorted(scope.namespaces)}
