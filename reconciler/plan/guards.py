"""Guards: reasons to write nothing at all, to one cluster or to the fleet. Each is a small function with facts."""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.desired.masterqueue import is_asked_pool
from reconciler.objects import ClusterName
from reconciler.ownership.applyset import FLEET, TOOL
from reconciler.plan.departures import is_departed
from reconciler.plan.model import Action, Change, Refusal, Refused
from reconciler.plan.prune import count_members
from reconciler.prediction import ClusterView
from reconciler.spec.choices import PrunePolicy
from reconciler.spec.model import FleetSpec


def guard_identity(spec: FleetSpec, view: ClusterView) -> Iterator[Refusal]:
    """A context that points to another cluster than before would make kfleet tidy up somebody else's house."""
    known = view.inventory
    if known is None:
        return
    if known.tool and known.tool != TOOL:
        way_out = "give the fleet another name, or delete that ConfigMap when the other tool has let go of its objects"
        problem = f"the applyset {view.set_name.namespace}/{view.set_name.name} was made by {known.tool}; {way_out}"
        yield Refusal(Refused.MOVED, problem, view.name)
    elif known.cluster and known.cluster != view.name:
        way_out = "check the access of both clusters in the fleet"
        if is_departed(spec, ClusterName(known.cluster)):
            way_out = "it can come in under its new name when all that the fleet has there under the old one is gone"
        problem = f"it calls itself {known.cluster}; {way_out}"
        yield Refusal(Refused.MOVED, problem, view.name)
    elif known.cluster_uid and known.cluster_uid != view.uid:
        problem = (
            f"its uid is {view.uid}, and was {known.cluster_uid}; if that is right, delete the ConfigMap "
            f"{view.set_name.namespace}/{view.set_name.name} there"
        )
        yield Refusal(Refused.MOVED, problem, view.name)


def guard_replacement(view: ClusterView, manager: ClusterView | None) -> Iterator[Refusal]:
    """A cluster that was made anew knows nothing of the fleet; the manager remembers which one it was."""
    known = manager.inventory.fleet.get(view.name) if manager and manager.inventory else None
    if manager and known and known != view.uid:
        forget = f"kubectl -n {manager.set_name.namespace} annotate configmap {manager.set_name.name} {FLEET}-"
        problem = f"its uid is {view.uid}, and was {known}; if that is right, on {manager.name}: {forget}"
        yield Refusal(Refused.MOVED, problem, view.name)


def guard_emptiness(views: Sequence[ClusterView], wanted: int) -> Iterator[Refusal]:
    """An empty fleet is far more often a mistake (a wrong path, a bad merge) than a wish."""
    if not wanted and (held := sum(count_members(view) for view in views)):
        problem = f"{held} objects would be deleted; delete them with kubectl if that is what you want"
        yield Refusal(Refused.EMPTY, problem)


def guard_deletes(
    spec: FleetSpec, views: Sequence[ClusterView], changes: Iterable[Change], confirmed: int | None
) -> Iterator[Refusal]:
    """Too many deletes stop the fleet; those of a cluster that left it stop nothing but its own tidying up.

    Flavors of pools that git still asks for do not count: they go when nobody has heard or used the pool for long
    enough, and a site that is switched off must not stop all the others.
    """
    deleted = [change.ref for change in changes if change.action is Action.DELETE]
    deletes = len(deleted)
    if not deletes or confirmed == deletes:
        return
    way_out = f"look at the plan, then repeat with --confirm-deletes {deletes}"
    if confirmed is not None:
        yield Refusal(Refused.TOO_MANY, f"{confirmed} were confirmed, but there are {deletes}; {way_out}")
        return
    live = {view.name: view.live for view in views}
    clusters = [ref.cluster for ref in deleted if not is_asked_pool(spec, live[ref.cluster][ref])]
    departed = {name: None for name in clusters if is_departed(spec, name)}
    policy, held = spec.fleet.policy.prune, sum(count_members(view) for view in views)
    if problem := _excess(sum(name not in departed for name in clusters), held, policy):
        yield Refusal(Refused.TOO_MANY, f"{problem}; {way_out}")
    elif problem := _excess(len(clusters), held, policy):
        yield from (Refusal(Refused.TOO_MANY, f"{problem}; {way_out}", name) for name in departed)


def _excess(deletes: int, held: int, policy: PrunePolicy) -> str:
    share = 100 * deletes / held if held else 0
    if deletes > policy.max_deletes:
        return f"{deletes}, and policy.prune.maxDeletes is {policy.max_deletes}"
    if share > policy.max_percent:
        return f"{deletes} of {held} objects ({share:.0f} %), and policy.prune.maxPercent is {policy.max_percent}"
    return ""
