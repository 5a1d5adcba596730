"""One cycle: the whole line, from the revision to the status."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from reconciler.apply import Patience, apply_plan
from reconciler.edges.events import ConfigMapName, send_event
from reconciler.errors import ClusterError
from reconciler.health import Ailment
from reconciler.objects import ClusterName
from reconciler.outcome import ClusterOutcome
from reconciler.ownership.applyset import SetName
from reconciler.pipeline.capacity import with_master_queues
from reconciler.pipeline.offline import Computed
from reconciler.pipeline.online import ailments_of, look_at_fleet, observe_fleet, obstacles_of
from reconciler.plan import Looks, Plan, make_plan
from reconciler.ports import ClusterPort
from reconciler.run.clusters import Clusters
from reconciler.run.lasting import STANDS_AFTER, Lasting
from reconciler.run.listening import Listening
from reconciler.run.notices import Notice, find_notices, in_short
from reconciler.run.publishing import Publishing
from reconciler.spec.keeper import keeper_of

log = logging.getLogger(__name__)

# The next cycle comes soon: nobody has to wait long here for one cluster.
PATIENCE, AWAITED = timedelta(seconds=5), timedelta(seconds=1)
# Nobody waits longer than this, again and again, for a cluster that then does not do what it was asked.
LONGEST_WAIT = 1.0
NO_DUE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What a cycle saw and did; `due` is when the next one is needed even if nothing happens.

    The obstacles of its plan and its `ailments` are those that last.
    """

    computed: Computed
    plan: Plan
    looks: Looks
    seconds: float
    outcomes: tuple[ClusterOutcome, ...] = ()
    notices: frozenset[Notice] = field(default_factory=frozenset)
    due: timedelta = NO_DUE
    ailments: tuple[Ailment, ...] = ()

    @property
    def is_done(self) -> bool:
        return all(outcome.is_done for outcome in self.outcomes)


class Cycle:
    def __init__(self, clusters: Clusters, wake: Callable[[str], None]) -> None:
        self._clusters = clusters
        self._listening = Listening(wake)
        self._looks: Looks | None = None
        self._publishing = Publishing()
        self._told: frozenset[Notice] = frozenset()
        self._lasting = Lasting()

    def run(self, computed: Computed, revision_problem: str, forbidden: Callable[[], str]) -> CycleReport:
        started = time.monotonic()
        connections = self._clusters.connections(computed.spec)
        computed = with_master_queues(computed, connections.ports)
        looking = self._listening.looking(computed.spec, connections.ports)
        observed = observe_fleet(computed, connections, looking=looking)
        looks = self._looks = look_at_fleet(observed, connections, is_applying=True, before=self._looks)
        looked = time.monotonic()
        plan = make_plan(observed.spec, looks)
        manager = computed.spec.manager
        patience = Patience(total=PATIENCE, forbidden=forbidden, awaited=AWAITED)
        # Also without a change to write: inventories may have to follow, which costs nothing where they are right.
        outcomes = apply_plan(plan, connections.ports, manager.name if manager else None, patience)
        absent = find_absent(looks, outcomes, looked - started, time.monotonic() - looked)
        self._clusters.note(absent, [view.name for view in looks.views if view.name not in absent])
        is_writing = not computed.spec.is_suspended(keeper_of(computed.spec).name) and not forbidden()
        self._listening.remember(computed.spec, connections.ports if is_writing else {}, observed.look)
        if is_writing:
            self._publishing.begin(computed.spec, connections.ports, forbidden)
        plan, ailments = self._judged(observed, plan, looks)
        notices = find_notices(plan, observed.conditions, ailments, revision_problem)
        self._tell(observed, {} if forbidden() else connections.ports, notices)
        due = min(self._listening.due(computed.spec, observed.look) or NO_DUE, self._look_again(outcomes))
        return CycleReport(observed, plan, looks, time.monotonic() - started, outcomes, notices, due, ailments)

    def begin(self) -> None:
        """Forget what is known: while we did not lead, another one may have written."""
        self._looks = None
        self._lasting.begin()
        self._listening.forget()

    def end(self) -> None:
        """The last thing before the lease is given back."""
        self._publishing.end()
        self._listening.write_ledger()

    def close(self) -> None:
        self._listening.close()

    def _judged(self, observed: Computed, plan: Plan, looks: Looks) -> tuple[Plan, tuple[Ailment, ...]]:
        """The plan with what keeps it from working, and what is not well, by what was seen for it anyway.

        After the writes: judging thousands of objects takes a moment, for which no quota should wait.
        """
        obstacles, ailments = obstacles_of(observed, looks.views), ailments_of(observed, looks.views)
        self._lasting.note((*obstacles, *ailments))
        lasting = tuple(one for one in obstacles if self._lasting.is_lasting(one))
        return replace(plan, obstacles=lasting), tuple(one for one in ailments if self._lasting.is_lasting(one))

    def _look_again(self, outcomes: tuple[ClusterOutcome, ...]) -> timedelta:
        """When to see what Kueue made of what was written: its statuses wake nobody."""
        has_written = any(outcome.outcomes for outcome in outcomes)
        return min(self._lasting.due() or NO_DUE, STANDS_AFTER if has_written else NO_DUE)

    def _tell(self, computed: Computed, ports: Mapping[ClusterName, ClusterPort], notices: frozenset[Notice]) -> None:
        """An Event for what was not so a cycle ago."""
        keeper = keeper_of(computed.spec)
        port = ports.get(keeper.name)
        fresh, self._told = notices - self._told, notices
        for notice in in_short(fresh):
            log.warning("notice", extra={"reason": notice.reason, "problem": notice.message})
            try:
                if port is not None:
                    set_name = SetName(computed.spec.fleet.name, keeper.kueue.namespace)
                    about = ConfigMapName(set_name.namespace, set_name.name)
                    send_event(port, about, notice.reason, notice.message)
            except ClusterError as error:
                log.warning("event", extra={"problem": error.problem})


def find_absent(
    looks: Looks, outcomes: Iterable[ClusterOutcome], looking: float, writing: float
) -> dict[ClusterName, str]:
    """Clusters to leave alone for a while, with the reason: those that do not answer, and those that were waited for.

    `looking` and `writing` are the seconds that this took for all of them together. A cluster that refuses something at
    once keeps nobody waiting, and goes on with the rest.
    """
    failed = {one.name: problem for one in outcomes if writing > LONGEST_WAIT and (problem := _failure(one))}
    unseen = {
        view.name: view.gaps[0].why
        for view in looks.views
        if view.gaps and (not view.is_reachable or looking > LONGEST_WAIT)
    }
    return failed | unseen


def _failure(cluster: ClusterOutcome) -> str:
    failed = (f"{one.ref}: {one.problem}" for one in cluster.outcomes if one.problem and not one.is_waiting)
    return cluster.problem or next(failed, "")
