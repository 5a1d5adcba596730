"""The loop of `kfleet run`: one leader at a time, one cycle per trigger, and the page of the last cycle."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from reconciler.capacity.model import ObservedCapacity
from reconciler.clients.forge import find_forge
from reconciler.clients.git_signature import check_keys
from reconciler.clients.http_server import HttpServer, Receiver
from reconciler.clients.lease import LeaseName, Loss, held_lease, new_holder
from reconciler.clients.nats_login import read_secret
from reconciler.controller.connections import Clusters
from reconciler.controller.cycle import Cycle, CycleReport
from reconciler.controller.metrics import Metrics
from reconciler.controller.revisions import ANY_COMMIT, DEFECT, Revisions, Trust, text_of
from reconciler.controller.status import Commits, StatusReporter, failed_status, status_of
from reconciler.controller.triggers import Wakeups, Webhook
from reconciler.errors import ClusterError, EdgeError, KfleetError, RefusedError
from reconciler.objects import ClusterName
from reconciler.pipeline.apply import lease_name
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Revision, Source
from reconciler.pipeline.observe import connect
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
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


log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=60)
# A longer cycle hangs, and the liveness probe fails so that the process is restarted.
# It must be long enough for two failed rollouts of Kueue's Configuration with their rollback, one after the other.
LONGEST_CYCLE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`webhook` and `commit_status` name the source of a secret and a token: a file, or env:NAME; empty is off.

    `ui` is the address of the page; empty is off.
    """

    source: Source
    interval: timedelta = timedelta(seconds=60)
    git_interval: timedelta = timedelta(seconds=30)
    timeout: timedelta = timedelta(seconds=5)
    listen: str = "127.0.0.1:9464"
    trust: Trust = ANY_COMMIT
    webhook: str = ""
    commit_status: str = ""
    forge: str = ""
    ui: str = ""


def run_loop(
    settings: RunSettings, stop: threading.Event, on_listening: Callable[[int], None] = lambda _: None
) -> None:
    """Run until `stop` is set. Errors are logged, counted and retried."""
    if settings.trust.keys:
        check_keys(settings.trust.keys)
    _Loop(settings, stop).run(on_listening)


class _Loop:
    def __init__(self, settings: RunSettings, stop: threading.Event) -> None:
        self._settings, self._stop = settings, stop
        self._wakeups = Wakeups()
        self._clusters = Clusters(settings.timeout, self._wakeups.wake)
        self._metrics = Metrics(lambda: self._revisions.state, self._fleet_name, self._clusters.silences)
        self._revisions = Revisions(settings.source, settings.git_interval, self._wakeups.wake, settings.trust)
        self._cycle = Cycle(self._clusters, self._wakeups.wake)
        self._reporter = StatusReporter(self._clusters, _commits(settings))
        self._page: Page | None = None
        self._failures = 0
        self._began: float | None = None
        self._holder = new_holder()
        self._told = ""  # why there is no lease: kfleet tries every second, and logs it once

    def run(self, on_listening: Callable[[int], None]) -> None:
        receivers = self._receivers()
        endpoint = HttpServer(self._settings.listen, self._metrics.registry, self._is_alive, self._is_ready, receivers)
        on_listening(endpoint.port)
        self._open_page()
        threading.Thread(target=self._wake_on_stop, daemon=True).start()
        try:
            self._revisions.start()
            while not self._stop.is_set():
                revision = self._revisions.now.revision
                if revision is None:
                    self._reporter.tell_unread(self._revisions.now)
                    self._wakeups.wait(self._settings.interval)
                else:
                    self._lead(revision)
        finally:
            self._revisions.close()
            self._cycle.close()
            self._reporter.close()
            self._clusters.close()
            endpoint.close()
            if self._page:
                self._page.close()
        log.info("stopped")

    def _open_page(self) -> None:
        if self._settings.ui:
            self._page = Page(self._settings.ui, lambda: self._revisions.now.revision, self._settings.timeout)
            log.info("page", extra={"address": self._settings.ui, "port": self._page.port})

    def _fleet_name(self) -> str:
        revision = self._revisions.now.revision
        return revision.spec.fleet.name if revision else ""

    def _lead(self, revision: Revision) -> None:
        """Run cycles while this replica holds the lease, and the home cluster stays the same."""
        place = cluster, name = _place_of(revision.spec)
        try:
            client = self._clusters.server(revision.spec, cluster)
            if not self._told:
                log.info("waiting for the lease", extra={"lease": f"{cluster}/{name.namespace}/{name.name}"})
            with held_lease(client, name, self._holder, waits=self._stop) as lost:
                log.info("leading", extra={"holder": self._holder})
                self._told = ""
                self._metrics.is_leader = True
                self._cycle.begin()
                self._reporter.begin()
                self._cycle_on(place, lost)
                if not lost.is_set():
                    self._cycle.end()
        except RefusedError:
            return
        except ClusterError as error:
            if error.problem != self._told:
                log.warning("no lease", extra={"cluster": cluster, "problem": error.problem})
            self._told = error.problem
            self._stop.wait(FIRST_PAUSE.total_seconds())
        finally:
            self._end_leading()

    def _end_leading(self) -> None:
        self._metrics.end_leading()
        if self._page:
            self._page.end_leading()

    def _cycle_on(self, place: tuple[ClusterName, LeaseName], lost: Loss) -> None:
        pause = timedelta()
        while not self._stop.is_set() and not lost.is_set():
            reasons = self._wakeups.wait(pause)
            revision = self._revisions.now.revision
            if self._stop.is_set() or lost.is_set() or revision is None or _place_of(revision.spec) != place:
                return
            pause = self._one(revision, reasons, lost)

    def _one(self, revision: Revision, reasons: tuple[str, ...], lost: Loss) -> timedelta:
        """Run one cycle; returns how long to wait for the next one without a trigger."""

        def forbidden() -> str:
            return lost.why() or ("kfleet is stopping; the next leader continues" if self._stop.is_set() else "")

        followed = self._revisions.now
        self._began = time.monotonic()
        try:
            self._reporter.tell_start(revision.spec)
            report = self._cycle.run(revision, followed.problem, forbidden)
            if not forbidden():
                self._reporter.tell(report.rendered.spec, status_of(report, followed))
        except (KfleetError, ExceptionGroup) as error:
            return self._failed(revision.spec, text_of(error), forbidden)
        except Exception:  # any defect: the next cycle may succeed, and a queue must not wait for an operator
            log.exception("cycle")
            return self._failed(revision.spec, DEFECT, forbidden)
        finally:
            self._began = None
        self._metrics.note(report)
        if self._page:
            self._page.note(report)
        self._failures = 0 if report.is_done else self._failures + 1
        _log(report, reasons)
        return min(report.due, self._settings.interval) if report.is_done else self._pause()

    def _failed(self, spec: FleetSpec, problem: str, forbidden: Callable[[], str]) -> timedelta:
        self._failures += 1
        self._metrics.note_failure()
        if self._page:
            self._page.note_failure(problem)
        log.error("cycle failed", extra={"problem": problem})
        if not forbidden():
            self._reporter.tell(spec, failed_status(spec, problem, self._revisions.now))
        return self._pause()

    def _pause(self) -> timedelta:
        return min(FIRST_PAUSE * int(2 ** min(self._failures - 1, 10)), LONGEST_PAUSE, self._settings.interval)

    def _receivers(self) -> dict[str, Receiver]:
        place = self._settings.webhook
        if not place:
            return {}
        read_secret("--webhook", place)  # fail at the start rather than with the first push
        secret = partial(read_secret, "--webhook", place)
        revision = self._settings.source.revision
        return {"/webhook": Webhook(secret, revision, self._revisions.look_now, self._metrics.note_webhook)}

    def _wake_on_stop(self) -> None:
        self._stop.wait()
        self._wakeups.wake("stop")

    def _is_alive(self) -> str:
        began = self._began
        hung = began is not None and time.monotonic() - began > LONGEST_CYCLE.total_seconds()
        return f"a cycle takes longer than {LONGEST_CYCLE}" if hung else ""

    def _is_ready(self) -> str:
        return self._revisions.unready


def _commits(settings: RunSettings) -> Commits | None:
    if not settings.commit_status:
        return None
    forge = find_forge(settings.source.repo, settings.forge)
    read_secret("--commit-status", settings.commit_status)
    return Commits(forge, partial(read_secret, "--commit-status", settings.commit_status))


def _place_of(spec: FleetSpec) -> tuple[ClusterName, LeaseName]:
    """The cluster and the name of the lease."""
    return home_cluster(spec).name, lease_name(spec)


def _log(report: CycleReport, reasons: tuple[str, ...]) -> None:
    facts = {
        "revision": report.plan.revision[:12],
        "reasons": list(reasons) or ["interval"],
        "writes": sum(one.is_done for outcome in report.outcomes for one in outcome.outcomes),
        "gaps": len(report.plan.gaps),
        "refusals": len(report.plan.refusals),
        "milliseconds": round(1000 * report.seconds),
    }
    is_news = report.plan.has_work or not report.is_done
    log.log(logging.INFO if is_news else logging.DEBUG, "cycle", extra=facts)
    for outcome in report.outcomes:
        failed = (one for one in outcome.outcomes if one.problem and not one.is_waiting)
        for problem in (outcome.problem, *(f"{one.ref}: {one.problem}" for one in failed)):
            if problem:
                log.error("write failed", extra={"cluster": outcome.name, "problem": problem})
