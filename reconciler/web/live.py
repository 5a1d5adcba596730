"""Views of live clusters, or of a snapshot: observed when a reader asks, with connections of their own.

Decision: the page does not use the clients of the controller, because those watch what they list, and a cycle would
start with every workload that changes.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from reconciler.capacity.view import pool_entries
from reconciler.clients.protocols import ClusterClient
from reconciler.effects.model import NO_EFFECTS, Effects
from reconciler.errors import EdgeError, KfleetError
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import plan_fleet, with_effects
from reconciler.pipeline.load import Revision
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.plan.model import Action, Cause, Change, Plan
from reconciler.plan.record import plan_record
from reconciler.report.text import effects_lines, effects_record, plan_text
from reconciler.snapshot.model import FleetObjects
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.view.build import build_view
from reconciler.view.model import PlanFacts
from reconciler.view.record import view_record
from reconciler.web.auth import Record
from reconciler.web.events import NO_PLAN

log = logging.getLogger(__name__)
OPENED_FOR, REOPEN_LOST = 60.0, 15.0  # seconds; tokens in files change, and a lost cluster may be back
PLAN_EVERY = timedelta(minutes=1)
DEFECT = "kfleet failed; its log has the reason"
Open = Callable[[FleetSpec], Connections]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade:
    """A plan, what it was made of, and which of its changes were written. `problem` is why there is none newer.

    `effects` are None for a plan that is applied at once: they would be over before a reader sees them.
    """

    plan: Plan
    rendered: Rendered
    made_at: datetime
    written: frozenset[Ref] = field(default_factory=frozenset)
    problem: str = ""
    effects: Effects | None = None


def page_view(spec: FleetSpec, objects: FleetObjects, made: PlanMade | None) -> Record:
    if made is None:
        return view_record(build_view(spec, objects))
    rendered = made.rendered
    quotas = ((entry.ref, entry.manifest) for entry in rendered.desired.objects)
    pools = pool_entries(spec, rendered.snapshot.capacity, quotas)
    capacity_gaps = rendered.snapshot.capacity.gaps if rendered.snapshot.capacity else ()
    return view_record(build_view(spec, objects, facts=facts_of_plan(made), pools=pools, gaps=capacity_gaps))


def page_plan(made: PlanMade) -> Record:
    return {
        "madeAt": made.made_at.isoformat(timespec="seconds"),
        "problem": made.problem,
        "text": plan_text(made.plan, effects=tuple(effects_lines(made.effects or NO_EFFECTS))),
        "plan": plan_record(made.plan),
        "effects": None if made.effects is None else effects_record(made.effects),
    }


def facts_of_plan(made: PlanMade) -> Mapping[ClusterName, PlanFacts]:
    """How many objects of each cluster are not as the revision says. A cluster with a gap has no facts."""
    unseen = {gap.cluster for gap in made.plan.gaps}
    return {
        cluster.name: _facts(cluster.changes, made.written)
        for cluster in made.plan.clusters
        if cluster.name not in unseen
    }


def _facts(changes: Collection[Change], written: Collection[Ref]) -> PlanFacts:
    left = [one for one in changes if one.action is not Action.KEEP and one.ref not in written]
    drifted = [one for one in left if any(entry.cause is Cause.DRIFT for entry in one.fields)]
    return PlanFacts(changes=len(left), drift=len(drifted))


@dataclass(frozen=True, slots=True)
class Current:
    """The revision that the page is about, and the last plan of it."""

    revision: Revision
    made: PlanMade | None = None


class ClusterSource:
    """`current` is asked for every view. `taken_at` is the time of a snapshot; None for live clusters."""

    def __init__(self, current: Callable[[], Current | None], open_: Open, taken_at: datetime | None = None) -> None:
        self._current, self._open, self._taken_at = current, open_, taken_at
        self._lock = threading.Lock()
        self._opened: tuple[float, FleetSpec, Connections] | None = None

    @property
    def is_live(self) -> bool:
        return self._taken_at is None

    def read_view(self) -> Record:
        current = self._now()
        spec = current.revision.spec
        objects = observe_fleet_objects(spec, self._connected(spec))
        if self._taken_at is not None:
            objects = replace(objects, taken_at=self._taken_at)
        return page_view(spec, objects, current.made)

    def read_plan(self) -> Record:
        made = self._now().made
        return NO_PLAN if made is None else page_plan(made)

    def home(self) -> ClusterClient | None:
        """The cluster that knows who a reader is; None while it cannot be reached."""
        spec = self._now().revision.spec
        return self._connected(spec).clients.get(home_cluster(spec).name)

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened[2].close()
            self._opened = None

    def _now(self) -> Current:
        current = self._current()
        if current is None:
            raise EdgeError("the page", "no revision of the fleet was read yet")
        return current

    def _connected(self, spec: FleetSpec) -> Connections:
        with self._lock:
            if self._opened is not None and self._is_usable(spec):
                return self._opened[2]
            before = self._opened
            opened = self._open(spec)
            self._opened = (time.monotonic(), spec, opened)
        if before is not None:
            before[2].close()
        return opened

    def _is_usable(self, spec: FleetSpec) -> bool:
        if self._opened is None:
            return False
        opened_at, of, connections = self._opened
        lasts = REOPEN_LOST if connections.gaps else OPENED_FOR
        return not self.is_live or (of is spec and time.monotonic() - opened_at < lasts)


class Planner:
    """Plans in the background while a reader asks: for a process that does not apply."""

    def __init__(self, load: Callable[[], Revision], open_: Open, options: ObserveOptions) -> None:
        self._load, self._open, self._options = load, open_, options
        self._current = Current(load())
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._is_busy = False

    def current(self) -> Current:
        """The last plan; starts the next one if that is old."""
        with self._lock:
            is_due = self._asked is None or time.monotonic() - self._asked > PLAN_EVERY.total_seconds()
            if is_due and not self._is_busy:
                self._is_busy = True
                threading.Thread(target=self._run, name="plan", daemon=True).start()
            return self._current

    def _run(self) -> None:
        try:
            self._current = self.plan_now()
        except KfleetError as error:
            self._fail(str(error))
        except ExceptionGroup as group:
            self._fail("; ".join(map(str, group.exceptions)))
        except Exception:  # any defect: the view must go on without a plan
            log.exception("plan")
            self._fail(DEFECT)
        finally:
            with self._lock:
                self._is_busy, self._asked = False, time.monotonic()

    def plan_now(self) -> Current:
        revision = self._load()
        return Current(revision, make_page_plan(revision, self._open, self._options))

    def _fail(self, problem: str) -> None:
        made = self._current.made
        log.warning("plan", extra={"problem": problem})
        if made is not None:
            self._current = replace(self._current, made=replace(made, problem=problem))


def make_page_plan(revision: Revision, open_: Open, options: ObserveOptions) -> PlanMade:
    with closing(open_(revision.spec)) as connections:
        made = with_effects(plan_fleet(revision, connections, options), connections)
    return PlanMade(plan=made.plan, rendered=made.rendered, made_at=datetime.now(UTC), effects=made.effects)
