"""What the page shows of a plan: the facts per cluster for the view, and the plan itself. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.capacity.view import pool_entries
from reconciler.effects.model import NO_EFFECTS, Effects
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.render import Rendered
from reconciler.plan.model import Action, Cause, Change, Plan
from reconciler.plan.record import plan_record
from reconciler.report.text import effects_lines, effects_record, plan_text
from reconciler.snapshot.model import FleetObjects
from reconciler.spec.model import FleetSpec
from reconciler.view.build import build_view
from reconciler.view.model import PlanFacts
from reconciler.view.record import view_record
from reconciler.web.filter import Record


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
