"""The line of stages for the end of a fleet: the same stages, with a revision that has no documents left."""

from dataclasses import dataclass, replace

from reconciler.apply.cluster import end_lease, end_record
from reconciler.apply.retry import RetryPolicy
from reconciler.capacity.observe import ledger_place
from reconciler.effects.model import NO_EFFECTS, Effects
from reconciler.errors import ClusterError
from reconciler.objects import FIELD_MANAGER
from reconciler.pipeline.apply import apply_objects, lease_name
from reconciler.pipeline.capacity import NOW
from reconciler.pipeline.compare import Report, ignore_progress
from reconciler.pipeline.line import WITHOUT_PREFLIGHT, guarded, plan_fleet, with_effects
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import Connections
from reconciler.pipeline.render import Rendered
from reconciler.plan.guards import count_removals
from reconciler.plan.model import ClusterOutcome, Plan, Refused, Tell
from reconciler.render.compute import compute_desired
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import STATUS_MANAGER, SetName
from reconciler.uninstall.plan import Ending, ending_plan, find_remarks, left_over, without_documents


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The numbers that a person has confirmed."""

    deletes: int | None = None
    evictions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEnd:
    """The plan that ends a fleet, and what it leaves to a person.

    `unconfirmed` is the number of deletes that has to be confirmed first.
    """

    rendered: Rendered
    plan: Plan
    remarks: tuple[str, ...]
    effects: Effects = NO_EFFECTS
    unconfirmed: int | None = None

    @property
    def count(self) -> int:
        return len(self.rendered.spec.clusters)

    def with_count_confirmed(self) -> "PlannedEnd":
        """The same plan after a person has typed the number of its deletes."""
        refusals = tuple(refusal for refusal in self.plan.refusals if refusal.reason is not Refused.TOO_MANY)
        return replace(self, plan=replace(self.plan, refusals=refusals), unconfirmed=None)


def plan_end(
    revision: Revision,
    connections: Connections,
    ending: Ending,
    confirmed: Confirmed,
    report: Report = ignore_progress,
) -> PlannedEnd:
    spec = without_documents(revision.spec)
    empty = Revision(spec, compute_desired(spec), ())
    planned = plan_fleet(empty, connections, NOW, WITHOUT_PREFLIGHT, report)
    rendered, views = planned.rendered, planned.comparison.views
    planned = replace(planned, plan=ending_plan(rendered.spec, planned.plan, views, ending, confirmed.deletes))
    remarks = find_remarks(revision.spec, views, ending)
    if ending is Ending.RELEASE:
        return PlannedEnd(rendered=rendered, plan=planned.plan, remarks=remarks)
    planned = guarded(with_effects(planned, connections), confirmed.evictions)
    made, effects = planned.plan, planned.effects
    is_asked = any(refusal.reason is Refused.TOO_MANY for refusal in made.refusals)
    count = count_removals([view for view in views if view.is_reachable], made.changes)
    return PlannedEnd(
        rendered=rendered, plan=made, remarks=remarks, effects=effects, unconfirmed=count if is_asked else None
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome, and why the fleet has not ended yet; then the command can be repeated."""

    outcomes: tuple[ClusterOutcome, ...] = ()
    left: tuple[str, ...] = ()
    is_over: bool = False


NOTHING_DONE = Ended()


def left_of(planned: PlannedEnd) -> tuple[str, ...]:
    """What the plan itself leaves, before anything is written."""
    return left_over(planned.rendered.spec, planned.plan, ())


def end_fleet(planned: PlannedEnd, connections: Connections, policy: RetryPolicy, tell: Tell) -> Ended:
    """Carry out the plan, and delete the fleet's record on its home cluster when nothing else is left."""
    spec = planned.rendered.spec
    outcomes = apply_objects(planned.rendered, connections, planned.plan, policy, tell)
    left = left_over(spec, planned.plan, outcomes)
    if not left:
        home = home_cluster(spec)
        name = SetName(spec.fleet.name, home.kueue.namespace)
        records = {ledger_place(spec).path: FIELD_MANAGER, name.status_path: STATUS_MANAGER}
        end_record(connections.clients[home.name], name, records, policy)
    return Ended(outcomes, left, is_over=not left)


def forget_lease(spec: FleetSpec, connections: Connections) -> None:
    """Delete the lease, which is the last object of an ended fleet."""
    end_lease(connections.clients[home_cluster(spec).name], lease_name(spec).path)


def find_holder(spec: FleetSpec, connections: Connections) -> str:
    """Who holds the lease of the fleet now, for a run that takes no lease; empty if it is free or cannot be read."""
    client = connections.clients.get(home_cluster(spec).name)
    try:
        lease = client.find(lease_name(spec).path) if client else None
    except ClusterError:
        return ""
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")
