"""One cycle of the controller: the whole pipeline, from the revision to the status."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from reconciler.apply.retry import RetryPolicy
from reconciler.clients.events import ConfigMapName, send_event
from reconciler.clients.protocols import ClusterClient
from reconciler.controller.capacity import Listening, Publishing
from reconciler.controller.connections import Clusters
from reconciler.controller.notices import (
    CORRECTED,
    GRACE_PERIOD,
    Debouncer,
    Fight,
    Fights,
    Notice,
    Told,
    correction_notices,
    fight_notices,
    find_notices,
    in_short,
    log_written,
)
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.pipeline.apply import Writers, apply
from reconciler.pipeline.capacity import read_master_queues
from reconciler.pipeline.line import PlanOptions, guarded_if_evicting, plan_fleet
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.plan import preflight
from reconciler.pipeline.render import Rendered
from reconciler.pipeline.report import health
from reconciler.plan.make import Comparison
from reconciler.plan.model import ClusterOutcome, Plan
from reconciler.plan.prune import takes_away
from reconciler.report.health import HealthIssue
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import SetName

log = logging.getLogger(__name__)

# Short limits: the next cycle starts soon, and one cluster must not delay the others.
READY_TIMEOUT, AWAITED = timedelta(seconds=5), timedelta(seconds=1)
# If failed writes took longer than this, the cluster is paused, so that it does not delay every cycle.
LONGEST_WAIT = 1.0
NO_DUE = timedelta(days=1)
# kfleet deletes only on observations that are not older than this: a working watch can be silent for a minute.
HEARD_WITHIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What a cycle observed and did; `due` is when the next one is needed even without a trigger.

    The preflight issues of its plan and its `health_issues` are only those that persist.
    """

    rendered: Rendered
    plan: Plan
    looks: Comparison
    seconds: float
    outcomes: tuple[ClusterOutcome, ...] = ()
    notices: frozenset[Notice] = field(default_factory=frozenset)
    due: timedelta = NO_DUE
    health_issues: tuple[HealthIssue, ...] = ()
    fights: tuple[Fight, ...] = ()

    @property
    def is_done(self) -> bool:
        return all(outcome.is_done for outcome in self.outcomes)


class Cycle:
    def __init__(self, clusters: Clusters, wake: Callable[[str], None]) -> None:
        self._clusters = clusters
        self._listening = Listening(wake)
        self._looks: Comparison | None = None
        self._publishing = Publishing()
        self._told = Told()
        self._debouncer = Debouncer()
        self._fights = Fights()

    def run(self, revision: Revision, revision_problem: str, forbidden: Callable[[], str]) -> CycleReport:
        started = time.monotonic()
        connections = self._clusters.connections(revision.spec)
        rendered, looks, plan = self._planned(revision, connections)
        if takes_away(plan) and self._clusters.doubt(HEARD_WITHIN):
            rendered, looks, plan = self._planned(revision, connections)
        looked = time.monotonic()
        plan = self._fights.hold(plan, looks.views)
        # Even without a change: inventories may need an update, and those that are current cost no request.
        outcomes = apply(
            rendered,
            connections,
            plan,
            RetryPolicy(total=READY_TIMEOUT, forbidden=forbidden, awaited=AWAITED),
            writers=Writers(self._listening.remember, self._publishing.begin),
        )
        self._fights.note(plan, outcomes)
        absent = find_absent(looks, outcomes, time.monotonic() - looked)
        self._clusters.note(absent, [view.name for view in looks.views if view.name not in absent])
        plan, health_issues = self._with_health(rendered, plan, looks)
        fights = self._fights.told
        notices = find_notices(plan, rendered.conditions, health_issues, revision_problem) | fight_notices(fights)
        log_written(plan, outcomes)
        told = notices | correction_notices(plan, outcomes)
        self._tell(rendered.spec, {} if forbidden() else connections.clients, told)
        capacity_due = self._listening.due(rendered.spec, rendered.snapshot.capacity) or NO_DUE
        return CycleReport(
            rendered=rendered,
            plan=plan,
            looks=looks,
            seconds=time.monotonic() - started,
            outcomes=outcomes,
            notices=notices,
            due=min(capacity_due, self._look_again(plan, outcomes)),
            health_issues=health_issues,
            fights=fights,
        )

    def begin(self) -> None:
        """Drop all cached state: another replica may have written while this one was not the leader."""
        self._looks = None
        self._debouncer.begin()
        self._fights.begin()
        self._listening.forget()

    def end(self) -> None:
        """The last step before the lease is released."""
        self._publishing.end()
        self._listening.write_ledger()

    def close(self) -> None:
        self._listening.close()

    def _planned(self, revision: Revision, connections: Connections) -> tuple[Rendered, Comparison, Plan]:
        spec = read_master_queues(revision.spec, connections.clients)
        options = self._listening.looking(spec, connections.clients)
        chosen = PlanOptions(before=self._looks, is_applying=True, defers_preflight=True)
        planned = plan_fleet(revision, connections, replace(options, spec=spec), chosen)
        self._looks = planned.comparison
        return planned.rendered, planned.comparison, guarded_if_evicting(planned, connections).plan

    def _with_health(self, rendered: Rendered, plan: Plan, looks: Comparison) -> tuple[Plan, tuple[HealthIssue, ...]]:
        """The plan with its preflight issues, and the unhealthy objects, from the observations of this cycle.

        This runs after the writes: checking thousands of objects takes a moment, and must not delay a quota.
        """
        preflight_issues, health_issues = preflight(rendered, looks.views), health(rendered, looks.views)
        self._debouncer.note((*preflight_issues, *health_issues))
        persistent = tuple(one for one in preflight_issues if self._debouncer.is_persistent(one))
        return replace(plan, preflight_issues=persistent), tuple(
            one for one in health_issues if self._debouncer.is_persistent(one)
        )

    def _look_again(self, plan: Plan, outcomes: tuple[ClusterOutcome, ...]) -> timedelta:
        """When the next cycle is due: to check Kueue's status of written objects, or to write held ones.

        A status change does not trigger a cycle.
        """
        has_written = any(outcome.outcomes for outcome in outcomes)
        held = self._fights.due(plan)
        later = NO_DUE if held is None else max(held, timedelta())
        return min(self._debouncer.due() or NO_DUE, GRACE_PERIOD if has_written else NO_DUE, later)

    def _tell(self, spec: FleetSpec, clients: Mapping[ClusterName, ClusterClient], notices: frozenset[Notice]) -> None:
        """Send an Event for each notice that the last cycle did not have."""
        home = home_cluster(spec)
        client = clients.get(home.name)
        for notice in in_short(self._told.news(notices)):
            # What was corrected is in the log already, field by field.
            if notice.reason != CORRECTED:
                log.warning("notice", extra={"reason": notice.reason, "problem": notice.message})
            try:
                if client is not None:
                    set_name = SetName(spec.fleet.name, home.kueue.namespace)
                    about = ConfigMapName(set_name.namespace, set_name.name)
                    send_event(client, about, notice.reason, notice.message)
            except ClusterError as error:
                log.warning("event", extra={"problem": error.problem})


def find_absent(looks: Comparison, outcomes: Iterable[ClusterOutcome], writing: float) -> dict[ClusterName, str]:
    """Clusters to pause, with the reason: those that do not respond, and those whose failed writes delayed the cycle.

    `writing` are the seconds that all writes took together. A cluster that rejects a request at once delays nothing,
    and is not paused. Nor is one that was observed in part: its client skips requests that hang, and each is a gap.
    """
    failed = {one.name: problem for one in outcomes if writing > LONGEST_WAIT and (problem := _failure(one))}
    unseen = {view.name: view.gaps[0].why for view in looks.views if view.gaps and not view.is_reachable}
    return failed | unseen


def _failure(cluster: ClusterOutcome) -> str:
    failed = (f"{one.ref}: {one.problem}" for one in cluster.outcomes if one.problem and not one.is_waiting)
    return cluster.problem or next(failed, "")
