"""The part of `plan` that is about people: what a plan does to queues, teams and running jobs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from reconciler.effects.model import NO_EFFECTS, Effects, Impact, may_have_effects
from reconciler.kueue.reading import as_text, at
from reconciler.pipeline.objects import observe_queue_objects
from reconciler.pipeline.observe import Connections
from reconciler.plan.model import Change, Plan, Refusal, Refused
from reconciler.spec.model import FleetSpec


def observe_effects(spec: FleetSpec, plan: Plan, connections: Connections) -> Effects:
    """Live workloads and queues are listed only if the plan changes what decides about admission."""
    if not may_have_effects(plan):
        return NO_EFFECTS
    from reconciler.effects.find import find_effects  # noqa: PLC0415  (the scheduler; a plan without changes needs none)

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
