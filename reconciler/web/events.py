"""Views for those who read them: computed while a reader asks, at most once per refresh interval; changes and history.

There is no thread for it: the reader whose view is due computes it, and all others get the same one. So a controller
whose page is not open does no work for it.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from reconciler.errors import KfleetError
from reconciler.web.auth import Record, ViewScope, narrow

EVERY = timedelta(minutes=1)
KEPT = 6 * 60
# The lists of a view, and what identifies an entry of each.
KEYS: Mapping[str, tuple[str, ...]] = {
    "clusters": ("name",),
    "queues": ("id",),
    "cohorts": ("cluster", "name"),
    "joined": ("name",),
    "jobs": ("id",),
    "pools": ("cluster", "source", "name", "flavor"),
    "tenants": ("name",),
    "gaps": ("cluster", "what"),
}
NO_PLAN: Record = {"madeAt": None, "problem": "no plan was made yet", "text": "", "plan": None, "effects": None}
NOT_FOR_TENANTS: Record = {**NO_PLAN, "problem": "the plan is shown to readers of the whole fleet"}


@dataclass(frozen=True, slots=True)
class CapacitySample:
    """What each source counted at one time, by its name and the resource. A source that is missing was unknown."""

    at: datetime
    amounts: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class CapacityHistory:
    samples: tuple[CapacitySample, ...] = ()

    def with_sample(self, sample: CapacitySample) -> "CapacityHistory":
        """The history with one more sample, unless the last one is from the same minute."""
        if not sample.amounts or (self.samples and sample.at - self.samples[-1].at < EVERY):
            return self
        return CapacityHistory((*self.samples, sample)[-KEPT:])


def sample_of(view: Record, at: datetime) -> CapacitySample:
    counted = (
        ((pool["name"], resource), amount)
        for pool in view["pools"] or ()
        if pool["state"] != "unknown"
        for resource, amount in (pool["counted"] or {}).items()
    )
    return CapacitySample(at, dict(counted))


def history_record(history: CapacityHistory) -> Record:
    """One series per source and resource; an amount that was unknown at its time is null."""
    keys = sorted({key for sample in history.samples for key in sample.amounts})
    return {
        "times": [_stamp(sample.at) for sample in history.samples],
        "series": [
            {"name": name, "resource": resource, "amounts": list(_amounts(history.samples, (name, resource)))}
            for name, resource in keys
        ],
    }


def _amounts(samples: Iterable[CapacitySample], key: tuple[str, str]) -> Iterable[str | None]:
    return (sample.amounts.get(key) for sample in samples)


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def key_of(name: str, entry: Record) -> str:
    """The key of an entry of a list; the page computes the same."""
    return "\n".join(str(entry[field]) for field in KEYS[name])


def find_changes(before: Record, after: Record) -> Record:
    """The entries to set and the keys to remove, per list; which lists are unknown; and all values beside the lists."""
    found = {name: _difference(name, before[name] or (), after[name] or ()) for name in KEYS}
    return {
        **{name: value for name, value in after.items() if name not in KEYS},
        "set": {name: entries for name, (entries, _) in found.items() if entries},
        "remove": {name: keys for name, (_, keys) in found.items() if keys},
        "unknown": [name for name in KEYS if after[name] is None],
    }


def _difference(name: str, before: Iterable[Record], after: Iterable[Record]) -> tuple[list[Record], list[str]]:
    old, new = ({key_of(name, entry): entry for entry in entries} for entries in (before, after))
    changed = [entry for key, entry in new.items() if old.get(key) != entry]
    return changed, [key for key in old if key not in new]


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
