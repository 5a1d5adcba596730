"""The line from a revision to its plan and its effects on people, in one order. No other package puts it together.

Decision: commands and the controller differ in what they pass and in how far they go, not in the order. A stage that
one of them forgot, or called earlier, would plan from other facts than the rest.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from reconciler.capacity.codec import read_look
from reconciler.effects.model import NO_EFFECTS, Effects, Impact, may_have_effects
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName, PreflightIssue, Ref
from reconciler.pipeline.capacity import NOW, ObserveOptions
from reconciler.pipeline.compare import Report, compare, ignore_progress, observe_objects
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import Connections, connect_recorded, observe, observe_permissions
from reconciler.pipeline.plan import WHOLE, Scope, plan, preflight
from reconciler.pipeline.render import Rendered, render
from reconciler.plan.make import Comparison
from reconciler.plan.model import Change, Plan, Refusal, Refused
from reconciler.plan.prune import RELEASED_KINDS
from reconciler.snapshot.model import FleetObjects
from reconciler.snapshot.recording import Recording
from reconciler.spec.model import FleetSpec
from reconciler.state.model import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What differs between two runs that plan.

    `rotations` are workers that get new tokens. `confirmed_deletes` overrides the limit of the policy. The controller
    passes its last Comparison as `before`, and `defers_preflight`: it checks what it observed after it has written, so
    that no quota waits for that. A snapshot is `is_thorough`: it also reads what only the preflight command needs.
    """

    scope: Scope = WHOLE
    rotations: frozenset[ClusterName] = frozenset()
    confirmed_deletes: int | None = None
    before: Comparison | None = None
    is_applying: bool = False
    is_thorough: bool = False
    defers_preflight: bool = False


PLAIN = PlanOptions()
WITHOUT_PREFLIGHT = PlanOptions(defers_preflight=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and what it was made of."""

    rendered: Rendered
    comparison: Comparison
    plan: Plan
    effects: Effects = NO_EFFECTS

    @property
    def spec(self) -> FleetSpec:
        return self.rendered.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFleet:
    """What keeps a fleet from working, and what was observed for that."""

    rendered: Rendered
    views: tuple[ClusterView, ...]
    issues: tuple[PreflightIssue, ...]


def ignore_rendered(_rendered: Rendered) -> None:
    pass


def observe_and_render(revision: Revision, connections: Connections, options: ObserveOptions = NOW) -> Rendered:
    """The objects of a revision, with what was observed; for commands that compare nothing."""
    return render(revision, observe(revision, connections, options))


def plan_fleet(
    revision: Revision,
    connections: Connections,
    options: ObserveOptions = NOW,
    chosen: PlanOptions = PLAIN,
    report: Report = ignore_progress,
    on_rendered: Callable[[Rendered], None] = ignore_rendered,
) -> Planned:
    """Observe, render, compare and plan. `on_rendered` is called before the clusters are compared."""
    snapshot = observe(revision, connections, options, rotations=chosen.rotations, is_thorough=chosen.is_thorough)
    rendered = render(revision, snapshot)
    if not chosen.defers_preflight:
        rendered = observe_permissions(rendered, connections)
    on_rendered(rendered)
    comparison = compare(rendered, connections, report, is_applying=chosen.is_applying, before=chosen.before)
    issues = () if chosen.defers_preflight else preflight(rendered, comparison.views)
    made = plan(rendered, comparison, issues, confirmed_deletes=chosen.confirmed_deletes, scope=chosen.scope)
    return Planned(rendered=rendered, comparison=comparison, plan=made)


def with_effects(planned: Planned, connections: Connections) -> Planned:
    """The plan with what it does to queues, teams and running jobs."""
    return replace(planned, effects=observe_effects(planned.spec, planned.plan, connections))


def guarded(planned: Planned, confirmed_evictions: int | None = None) -> Planned:
    """The plan, refused where its effects evict more workloads than the policy allows."""
    made = guard_disruption(planned.spec, planned.plan, planned.effects, confirmed_evictions)
    return replace(planned, plan=made)


def guarded_if_evicting(planned: Planned, connections: Connections) -> Planned:
    """The same for the controller: without a limit, or a queue to drain, the workloads need not be listed."""
    if planned.spec.fleet.policy.max_evictions is None or not may_evict(planned.plan):
        return planned
    return guarded(with_effects(planned, connections))


def check_fleet(revision: Revision, connections: Connections, options: ObserveOptions) -> CheckedFleet:
    """Only the preflight checks, with everything that they can use, and without a plan."""
    rendered = render(revision, observe(revision, connections, options, is_thorough=True))
    rendered = observe_permissions(rendered, connections)
    views = tuple(observe_objects(rendered, connections))
    return CheckedFleet(rendered=rendered, views=views, issues=preflight(rendered, views))


def observe_effects_between(base: Revision, head: Revision, recording: Recording) -> Effects:
    """What the step from one revision to another does, on the clusters of a snapshot.

    What the base itself has still to do there is not an effect of the step.
    """
    from reconciler.effects.find import Start, find_effects  # noqa: PLC0415  (the scheduler; most commands need none)

    old, new = _on_snapshot(base, recording), _on_snapshot(head, recording)
    kept = {ref for ref, _ in new.desired}
    gone = tuple(ref for ref, _ in old.desired if ref not in kept and ref.kind not in RELEASED_KINDS)
    changed = dict.fromkeys(ref.cluster for ref, _ in old.desired ^ new.desired if ref.group == GROUP)
    return find_effects(head.spec, new.plan, new.objects, Start(plan=old.plan, removed=gone, touched=tuple(changed)))


class _Between(NamedTuple):
    """The plan of a revision on a snapshot, its objects with their content, and the live ones."""

    plan: Plan
    desired: frozenset[tuple[Ref, str]]
    objects: FleetObjects


def _on_snapshot(revision: Revision, recording: Recording) -> _Between:
    from reconciler.pipeline.objects import observe_queue_objects  # noqa: PLC0415  (lists workloads, for effects only)

    capacity = read_look(recording.capacity) if recording.capacity else None
    with closing(connect_recorded(revision.spec, recording)) as connections:
        made = plan_fleet(revision, connections, ObserveOptions(timedelta(), capacity), WITHOUT_PREFLIGHT)
        desired = frozenset((one.ref, repr(one.manifest)) for one in made.rendered.desired.objects)
        return _Between(made.plan, desired, observe_queue_objects(made.spec, connections))


def observe_effects(spec: FleetSpec, plan: Plan, connections: Connections) -> Effects:
    """Live workloads and queues are listed only if the plan changes what decides about admission."""
    if not may_have_effects(plan):
        return NO_EFFECTS
    from reconciler.effects.find import find_effects  # noqa: PLC0415  (the scheduler; a plan without changes needs none)
    from reconciler.pipeline.objects import observe_queue_objects  # noqa: PLC0415  (the same)

    return find_effects(spec, plan, observe_queue_objects(spec, connections))


def guard_disruption(spec: FleetSpec, plan: Plan, effects: Effects, confirmed: int | None = None) -> Plan:
    """Refuse the clusters on which the plan evicts more workloads in sum than the policy allows."""
    most, count = spec.fleet.policy.max_evictions, effects.count(Impact.EVICTED)
    if most is None:
        return plan
    if unknown := tuple(_unknown(plan, effects)):
        return replace(plan, refusals=(*plan.refusals, *unknown))
    if confirmed == count or (count <= most and confirmed is None):
        return plan
    by_cluster = Counter(one.cluster for one in effects.workloads if one.impact is Impact.EVICTED)
    way_out = f"check the plan, then repeat with --confirm-evictions {count}"
    problem = f"{count} workloads in sum, and policy.disruption allows {most}; {way_out}"
    if confirmed is not None:
        problem = f"{confirmed} evictions were confirmed, but there are {count}; {way_out}"
    refusals = tuple(
        Refusal(Refused.DISRUPTION, f"{found} here; {problem}", cluster) for cluster, found in by_cluster.items()
    )
    return replace(plan, refusals=(*plan.refusals, *refusals))


def _unknown(plan: Plan, effects: Effects) -> Iterator[Refusal]:
    """What was not observed cannot be counted, so it may be too much."""
    for gap in effects.unknown:
        if any(_evicts(change) for change in plan.writes if change.ref.cluster == gap.cluster):
            problem = f"how many is not known: {gap.why}; repeat when the cluster can be observed"
            yield Refusal(Refused.DISRUPTION, problem, gap.cluster)


def may_evict(plan: Plan) -> bool:
    """Whether the plan stops a queue in the way that evicts workloads. Only then the guard needs to observe them."""
    return any(map(_evicts, plan.writes))


def _evicts(change: Change) -> bool:
    return change.is_drained or as_text(at(change.manifest, "spec", "stopPolicy")) == "HoldAndDrain"
