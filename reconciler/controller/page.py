"""The page of `kfleet run`: the view of the clusters, and the plan of the last cycle."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from reconciler.capacity.model import ObservedCapacity
from reconciler.controller.cycle import CycleReport
from reconciler.errors import EdgeError
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import connect
from reconciler.web.auth import Reviewer
from reconciler.web.events import CapacitySample, Feed
from reconciler.web.live import ClusterSource, Current, PlanMade, Planner
from reconciler.web.server import WebServer, is_loopback

REFRESH = timedelta(seconds=5)


class Page:
    """Listens as soon as it is created. The leader shows what its cycles planned; a follower plans while it is read."""

    def __init__(self, address: str, revision: Callable[[], Revision | None], timeout: timedelta) -> None:
        self._revision, self._open = revision, partial(connect, timeout=timeout)
        self._made: PlanMade | None = None
        self._planner: Planner | None = None
        self._source = ClusterSource(self._current, self._open)
        self._feed = Feed(self._source, REFRESH)
        reviewer = None if is_loopback(address) else Reviewer(self._source.home)
        self._server = WebServer("--ui", address, self._feed, reviewer)

    @property
    def port(self) -> int:
        return self._server.port

    def note(self, report: CycleReport) -> None:
        """Keep the plan of a cycle. This is all that a page costs while it is not open."""
        written = frozenset(one.ref for outcome in report.outcomes for one in outcome.outcomes if one.is_done)
        now = datetime.now(UTC)
        self._made = PlanMade(plan=report.plan, rendered=report.rendered, made_at=now, written=written)
        self._planner = None
        if report.rendered.snapshot.capacity is not None:
            self._feed.note(_sample(report.rendered.snapshot.capacity, now))

    def note_failure(self, problem: str) -> None:
        if self._made is not None:
            self._made = replace(self._made, problem=problem)

    def end_leading(self) -> None:
        """Forget the plan: another replica makes the next one."""
        self._made = None

    def close(self) -> None:
        self._server.close()
        self._source.close()

    def _current(self) -> Current | None:
        revision, made = self._revision(), self._made
        if revision is None:
            return None
        if made is not None:
            return Current(revision, made)
        if self._planner is None:
            self._planner = Planner(self._loaded, self._open, ObserveOptions())
        return self._planner.current()

    def _loaded(self) -> Revision:
        revision = self._revision()
        if revision is None:
            raise EdgeError("the page", "no revision of the fleet was read yet")
        return revision


def _sample(capacity: ObservedCapacity, now: datetime) -> CapacitySample:
    amounts = (
        ((str(entry.source), resource), str(amount))
        for entry in capacity.ledger.entries
        for resource, amount in entry.granted.items()
    )
    return CapacitySample(now, dict(amounts))
