"""The plan that ends a fleet, and what it leaves to a person.

Decision: it is the plan of a fleet without documents, so that every guard, order and wait of `apply` holds. Only two
things differ: the guard against an empty fleet is replaced by the number of deletes, which has to be confirmed however
small it is; and a cluster on which nothing is left loses its inventory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from reconciler.kueue.reading import at
from reconciler.multikueue.model import read_credential
from reconciler.multikueue.plan import is_ending, is_removed
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.guards import count_removals
from reconciler.plan.model import Action, Change, ClusterOutcome, ClusterPlan, Plan, Reason, Refusal, Refused
from reconciler.plan.prune import RELEASED_KINDS, members_of, pruned
from reconciler.spec.enums import CapacitySource
from reconciler.spec.model import Cluster, FleetSpec, Kueue
from reconciler.spec.places import home_cluster
from reconciler.spec.settings import ADMISSION_GROUP, CHECK_CONTROLLER, GUARD
from reconciler.state.model import ClusterView
from reconciler.state.queues import is_stopped
from reconciler.text import counted


class Ending(StrEnum):
    """What becomes of the objects of a fleet that ends."""

    RELEASE = "release"
    DELETE = "delete"


# What says that kfleet is not where it thinks it is. A released object loses nothing, so no other guard applies.
_ABOUT_IDENTITY = {Refused.MOVED, Refused.SHARED, Refused.SOURCE, Refused.HOME}
_REPLACED = {Refused.EMPTY, Refused.TOO_MANY}
_STOPPED = "kfleet had stopped it to delete it: it stays stopped until you remove spec.stopPolicy"


def without_documents(spec: FleetSpec) -> FleetSpec:
    """The fleet with its clusters, and nothing that they should have."""
    fleet = replace(spec.fleet, has_live_master_queues=False, monitoring=None)
    clusters = tuple(_bare(cluster) for cluster in spec.clusters)
    return replace(
        spec, fleet=fleet, clusters=clusters, flavors=(), queues=(), tenants=(), master_queues=(), objects=()
    )


def _bare(cluster: Cluster) -> Cluster:
    """Kueue keeps its Configuration, whatever kfleet has set in it."""
    kueue = Kueue(namespace=cluster.kueue.namespace, version=cluster.kueue.version)
    return replace(cluster, kueue=kueue, has_published_metrics=False)


def ending_plan(
    spec: FleetSpec, made: Plan, views: Sequence[ClusterView], ending: Ending, confirmed: int | None = None
) -> Plan:
    """The plan `made` of a fleet without documents, as the end of the fleet."""
    known = {view.name: view for view in views}
    if ending is Ending.RELEASE:
        return _releasing(spec, made, known)
    home, reachable = home_cluster(spec).name, [view for view in views if view.is_reachable]
    refusals = [refusal for refusal in made.refusals if refusal.reason not in _REPLACED]
    refusals += _unconfirmed(count_removals(reachable, made.changes), confirmed)
    clusters = tuple(
        replace(part, is_ending=part.is_complete and part.name != home and is_ending(part.changes))
        for part in made.clusters
    )
    return replace(made, clusters=clusters, refusals=tuple(refusals))


def _unconfirmed(count: int, confirmed: int | None) -> Iterator[Refusal]:
    if confirmed is not None and confirmed != count:
        problem = f"{confirmed} were confirmed, but there are {count}"
        yield Refusal(Refused.TOO_MANY, f"{problem}; check the plan, then repeat with --confirm-deletes {count}")
    elif count and confirmed is None:
        problem = f"{count}, and the end of a fleet is always confirmed by its count"
        yield Refusal(Refused.TOO_MANY, f"{problem}; check the plan, then repeat with --confirm-deletes {count}")


def _releasing(spec: FleetSpec, made: Plan, views: Mapping[ClusterName, ClusterView]) -> Plan:
    refusals = tuple(refusal for refusal in made.refusals if refusal.reason in _ABOUT_IDENTITY)
    refused, home = {refusal.cluster for refusal in refusals}, home_cluster(spec).name
    clusters: list[ClusterPlan] = []
    for part in made.clusters:
        view, is_suspended = views[part.name], spec.is_suspended(part.name)
        changes = tuple(_released(ref, live, is_suspended=is_suspended) for ref, live in _members(view))
        is_complete = not (view.gaps or is_suspended or part.name in refused)
        is_last = is_complete and part.name != home
        clusters.append(replace(part, changes=changes, is_complete=is_complete, is_ending=is_last))
    lost = tuple(one for one in made.waiting if one.cluster in views and not views[one.cluster].is_reachable)
    return replace(made, clusters=tuple(clusters), refusals=refusals, waiting=lost, placements=())


def _members(view: ClusterView) -> Iterable[tuple[Ref, Manifest]]:
    return sorted(members_of(view).items(), key=lambda item: str(item[0]))


def _released(ref: Ref, live: Manifest, *, is_suspended: bool) -> Change:
    if is_suspended:
        return pruned(ref, live, Action.HOLD, Reason.SUSPENDED)
    notes = (_STOPPED,) if is_stopped(live) else ()
    return pruned(ref, live, Action.UPDATE, Reason.RELEASED, *notes)


def left_over(spec: FleetSpec, plan: Plan, outcomes: Iterable[ClusterOutcome]) -> tuple[str, ...]:
    """Why the fleet has not ended yet; empty if only its record on the home cluster is left."""
    return tuple(dict.fromkeys(_left_over(spec, plan, {outcome.name: outcome for outcome in outcomes})))


def _left_over(spec: FleetSpec, plan: Plan, outcomes: Mapping[ClusterName, ClusterOutcome]) -> Iterator[str]:
    yield from (f"{refusal.cluster or plan.fleet}: refused: {refusal.problem}" for refusal in plan.refusals)
    yield from (f"{gap.cluster}: was not observed ({gap.what}: {gap.why}): what is there stays" for gap in plan.gaps)
    yield from (str(entry) for entry in plan.waiting)
    seen = {part.name for part in plan.clusters}
    reported = {gap.cluster for gap in plan.gaps} | {refusal.cluster for refusal in plan.refusals}
    silent = [cluster.name for cluster in spec.clusters if cluster.name not in seen | reported]
    yield from (f"{name}: was not observed: what is there stays" for name in silent)
    for part in plan.clusters:
        is_reported = part.name in reported or is_removed(spec, part.name)
        why = _why_left(part, outcomes.get(part.name), is_reported=is_reported)
        yield from [f"{part.name}: {why}"] if why else []
    if plan.placements:
        yield "jobs that KubeStellar has placed are still on workers"


def _why_left(part: ClusterPlan, outcome: ClusterOutcome | None, *, is_reported: bool) -> str:
    if held := [change for change in part.changes if not is_ending([change])]:
        first = next((change for change in held if change.action is not Action.KEEP), None)
        why = f"{first.ref}: {first.reason}" if first else "running jobs need them"
        return f"{counted(len(held), 'object')} of the fleet cannot go yet: {why}"
    if outcome is not None and not outcome.is_done:
        return "not all changes were made"
    return "" if part.is_complete or is_reported else "was not observed completely: what is there stays"


_WRITERS = "end what still applies this fleet (kfleet run, a CronJob, a pipeline): it would write everything again"


def find_remarks(spec: FleetSpec, views: Iterable[ClusterView], ending: Ending) -> tuple[str, ...]:
    """The remarks about a fleet, by its spec and by what it has on its clusters."""
    known = [*views]
    own = [*_kept(spec, known)] if ending is Ending.RELEASE else [*_undeleted(known)]
    return (*own, *_beside(spec), _WRITERS)


def _kept(spec: FleetSpec, views: Sequence[ClusterView]) -> Iterator[str]:
    for view in views:
        members = members_of(view)
        yield from (line for ref, live in sorted(members.items()) for line in _of_object(ref, live))
    if any(flavor.capacity.source is not CapacitySource.STATIC for flavor in spec.flavors) or spec.master_queues:
        yield "quotas that follow an observed capacity stay as they are now"


def _of_object(ref: Ref, live: Manifest) -> Iterator[str]:
    if ref.kind == "Secret":
        token = read_credential(live).token
        if token and token.expires:
            when = f"{token.expires:%Y-%m-%d %H:%M} UTC"
            problem = "no kfleet renews it, and MultiKueue then loses the worker and its jobs"
            yield f"{ref}: its token works until {when}; {problem}: put a kubeconfig of your own into it before"
    elif ref.kind == "AdmissionCheck" and at(live, "spec", "controllerName") == CHECK_CONTROLLER:
        problem = "kfleet answered it, so queues with it admit no further job, and jobs on workers report no end"
        yield f"{ref}: {problem}: remove it from its queues, or use --delete"
    elif (ref.group, ref.kind, ref.name) == (ADMISSION_GROUP, "ValidatingAdmissionPolicyBinding", GUARD):
        yield f"{ref}: it lets only kfleet place jobs: delete it to place them yourself"


def _undeleted(views: Iterable[ClusterView]) -> Iterator[str]:
    refs = [ref for view in views for ref in members_of(view) if ref.kind in RELEASED_KINDS]
    for kind in sorted({ref.kind for ref in refs}):
        names = sorted(str(ref) for ref in refs if ref.kind == kind)
        yield f"no {kind} is deleted, nor what is in it: {', '.join(names)}"


def _beside(spec: FleetSpec) -> Iterator[str]:
    for cluster in spec.clusters:
        if cluster.kueue.configuration:
            yield f"{cluster.name}: Kueue keeps the Configuration that spec.kueue.config has set"
        if cluster.has_published_metrics:
            yield f"{cluster.name}: its ClusterMetrics on the manager stay, and nothing brings them up to date"
