"""Stage 5: what happens to which object, why, and what is refused; of all objects, or of those that a scope selects.

Decision: objects that a selected object needs and that do not exist yet are added within the selected clusters. What
the selection excludes, but cannot do without, is a refusal that names it; kfleet never applies half of a dependency.
Guards count what is selected, because nothing else is written.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.references import referrers
from reconciler.multikueue.credentials import is_login
from reconciler.objects import ClusterName, Manifest, PreflightIssue, Ref
from reconciler.pipeline.render import Rendered
from reconciler.plan.blocked import needs_of
from reconciler.plan.guards import guard_deletes
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Refusal, Refused
from reconciler.plan.preflight import gather_facts, run_preflight
from reconciler.spec.model import FleetSpec
from reconciler.state.model import ClusterView

_WRITES = {Action.CREATE, Action.UPDATE, Action.REPLACE}
_REMOVALS = {Action.DELETE, Action.REPLACE}
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Clusters by name, and objects by patterns of `cluster/Kind/namespace/name`; empty means all of them."""

    clusters: tuple[ClusterName, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not (self.clusters or self.patterns)

    def has_cluster(self, name: ClusterName | None) -> bool:
        return not self.clusters or name in self.clusters

    def has_object(self, ref: Ref) -> bool:
        is_named = not self.patterns or any(fnmatchcase(str(ref), pattern) for pattern in self.patterns)
        return is_named and self.has_cluster(ref.cluster)


WHOLE = Scope()


def scoped(plan: Plan, scope: Scope, spec: FleetSpec, views: Sequence[ClusterView], confirmed: int | None) -> Plan:
    """The selected changes with what they need, and a refusal if they need something that is not selected."""
    if scope.is_whole:
        return plan
    manager = spec.manager.name if spec.manager else None
    everything = {change.ref: change for change in plan.changes}
    chosen = _closure({ref for ref in everything if scope.has_object(ref)}, everything, scope, spec.fleet.name)
    live = {ref: one for view in views for ref, one in view.live.items()}
    missing = [*_missing(chosen, everything, spec.fleet.name), *_referring(chosen, everything, live)]
    missing += _early(chosen, everything, manager)
    counted = [everything[ref] for ref in chosen]
    refusals = [one for one in plan.refusals if one.reason is not Refused.TOO_MANY and _is_about(one, scope)]
    refusals += [Refusal(Refused.SCOPE, _problem(missing))] if missing else []
    refusals += guard_deletes(spec, [view for view in views if view.is_reachable], counted, confirmed)
    is_placing = manager is not None and scope.has_cluster(manager) and not scope.patterns
    return replace(
        plan,
        clusters=tuple(_parts(plan.clusters, chosen, scope, manager)),
        refusals=tuple(refusals),
        gaps=tuple(gap for gap in plan.gaps if scope.has_cluster(gap.cluster)),
        preflight_issues=tuple(issue for issue in plan.preflight_issues if scope.has_cluster(issue.cluster)),
        waiting=tuple(entry for entry in plan.waiting if scope.has_cluster(entry.cluster)),
        placements=plan.placements if is_placing else (),
        contacted=tuple(name for name in plan.contacted if scope.has_cluster(name)),
    )


def _is_about(refusal: Refusal, scope: Scope) -> bool:
    if refusal.ref is not None:
        return scope.has_object(refusal.ref)
    return refusal.cluster is None or scope.has_cluster(refusal.cluster)


def _closure(chosen: set[Ref], everything: Mapping[Ref, Change], scope: Scope, fleet: str) -> set[Ref]:
    """Add what the selected objects need and what does not exist yet, within the selected clusters."""
    while more := {ref for ref in _needed(chosen, everything, fleet) if scope.has_cluster(ref.cluster)} - chosen:
        chosen = chosen | more
    return chosen


def _missing(chosen: set[Ref], everything: Mapping[Ref, Change], fleet: str) -> Iterator[str]:
    for ref in sorted(_needed(chosen, everything, fleet) - chosen, key=str):
        yield f"{ref}, which does not exist yet (add --cluster {ref.cluster})"


def _needed(chosen: set[Ref], everything: Mapping[Ref, Change], fleet: str) -> set[Ref]:
    """What the selected writes refer to, as far as this plan creates it."""
    created = {(ref.cluster, ref.kind, ref.name): ref for ref, one in everything.items() if one.action is Action.CREATE}
    found: set[Ref] = set()
    for change in (everything[ref] for ref in chosen):
        if change.action in _WRITES and change.manifest and change.rollout is None:
            names = ((change.ref.cluster, *name) for name in needs_of(change.ref, change.manifest))
            found |= {created[key] for key in names if key in created}
        if change.token:  # it is issued on the worker, where the login has to exist
            worker = change.token.worker
            found |= {ref for ref in created.values() if ref.cluster == worker and is_login(ref, fleet)}
    return found


def _referring(chosen: set[Ref], everything: Mapping[Ref, Change], live: Mapping[Ref, Manifest]) -> Iterator[str]:
    """What refers to a selected removal, and would be removed before it by the whole plan."""
    removed = [ref for ref in chosen if everything[ref].action in _REMOVALS]
    others = [ref for ref, one in everything.items() if one.action is Action.DELETE and ref not in chosen]
    for ref in sorted(others, key=str):
        names = referrers([live[ref]]) if ref in live else {}
        if any(gone.cluster == ref.cluster and (gone.kind, gone.name) in names for gone in removed):
            yield f"{ref}, which refers to what is removed and has to be removed first (add it to --only)"


def _early(chosen: set[Ref], everything: Mapping[Ref, Change], manager: ClusterName | None) -> Iterator[str]:
    """What the manager has to do before workers may lose objects: until then it may send jobs there."""
    if not any(everything[ref].action in _REMOVALS and ref.cluster != manager for ref in chosen):
        return
    for ref, change in everything.items():
        is_open = ref.group == GROUP and change.action in {*_WRITES, Action.DELETE}
        if is_open and ref.cluster == manager and ref not in chosen:
            yield f"{ref}, because workers lose objects only after the manager was changed (add --cluster {manager})"


def _problem(missing: Sequence[str]) -> str:
    more = f"; and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return f"it needs {'; '.join(missing[:_MOST_NAMED])}{more}"


def _parts(
    clusters: Iterable[ClusterPlan], chosen: set[Ref], scope: Scope, manager: ClusterName | None
) -> Iterator[ClusterPlan]:
    """A part of a cluster's plan does not determine its inventory, so it may only be widened."""
    is_removing = any(change.ref in chosen and change.action in _REMOVALS for one in clusters for change in one.changes)
    for cluster in clusters:
        if scope.has_cluster(cluster.name) and not scope.patterns:
            yield cluster
            continue
        changes = tuple(change for change in cluster.changes if change.ref in chosen)
        # Workers lose objects only after the manager: apply has to see that nothing is left to do there.
        if changes or (is_removing and cluster.name == manager):
            yield replace(cluster, changes=changes, is_complete=False, is_ending=False)


def plan(
    rendered: Rendered,
    comparison: Comparison,
    preflight_issues: tuple[PreflightIssue, ...] = (),
    *,
    confirmed_deletes: int | None = None,
    scope: Scope = WHOLE,
) -> Plan:
    made = make_plan(rendered.spec, comparison, preflight_issues, confirmed_deletes=confirmed_deletes)
    return scoped(made, scope, rendered.spec, comparison.views, confirmed_deletes)


def preflight(rendered: Rendered, views: Sequence[ClusterView]) -> tuple[PreflightIssue, ...]:
    """What will keep the fleet from working, by everything that was observed."""
    observed, probe = rendered.snapshot, rendered.snapshot.probe
    refused = probe.shared.refused if probe else {}
    known = [view for view in views if view.name not in refused]
    links = observed.observations.links
    return run_preflight(gather_facts(rendered.spec, rendered.desired, known, links, observed.inventory))
