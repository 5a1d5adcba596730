"""The part of `plan` that is about people: what a plan does to queues, teams and running jobs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from reconciler.capacity.codec import read_look
from reconciler.effects.model import NO_EFFECTS, Effects, Impact, may_have_effects
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_text, at
from reconciler.objects import Ref
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.compare import compare
from reconciler.pipeline.load import Revision
from reconciler.pipeline.objects import observe_queue_objects
from reconciler.pipeline.observe import Connections, connect_recorded, observe
from reconciler.pipeline.plan import plan as make_plan
from reconciler.pipeline.render import render
from reconciler.plan.model import Change, Plan, Refusal, Refused
from reconciler.plan.prune import RELEASED_KINDS
from reconciler.snapshot.model import FleetObjects
from reconciler.snapshot.recording import Recording
from reconciler.spec.model import FleetSpec


def observe_effects(spec: FleetSpec, plan: Plan, connections: Connections) -> Effects:
    """Live workloads and queues are listed only if the plan changes what decides about admission."""
    if not may_have_effects(plan):
        return NO_EFFECTS
    from reconciler.effects.find import find_effects  # noqa: PLC0415  (the scheduler; a plan without changes needs none)

    return find_effects(spec, plan, observe_queue_objects(spec, connections))


def observe_effects_between(base: Revision, head: Revision, recording: Recording) -> Effects:
    """What the step from one revision to another does, on the clusters of a snapshot.

    What the base itself has still to do there is not an effect of the step.
    """
    from reconciler.effects.find import Start, find_effects  # noqa: PLC0415  (the same)

    old, new = _planned(base, recording), _planned(head, recording)
    kept = {ref for ref, _ in new.desired}
    gone = tuple(ref for ref, _ in old.desired if ref not in kept and ref.kind not in RELEASED_KINDS)
    changed = dict.fromkeys(ref.cluster for ref, _ in old.desired ^ new.desired if ref.group == GROUP)
    return find_effects(head.spec, new.plan, new.objects, Start(plan=old.plan, removed=gone, touched=tuple(changed)))


class _Planned(NamedTuple):
    """The plan of a revision on a snapshot, its objects with their content, and the live ones."""

    plan: Plan
    desired: frozenset[tuple[Ref, str]]
    objects: FleetObjects


def _planned(revision: Revision, recording: Recording) -> _Planned:
    capacity = read_look(recording.capacity) if recording.capacity else None
    with closing(connect_recorded(revision.spec, recording)) as connections:
        rendered = render(revision, observe(revision, connections, ObserveOptions(timedelta(), capacity)))
        made = make_plan(rendered, compare(rendered, connections))
        desired = frozenset((one.ref, repr(one.manifest)) for one in rendered.desired.objects)
        return _Planned(made, desired, observe_queue_objects(rendered.spec, connections))


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
