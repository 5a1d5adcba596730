"""Guards: each refuses a plan that would damage a fleet, with the reason and the remedy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.capacity.masterqueue import is_asked_pool
from reconciler.kueue.workloads import holding_count
from reconciler.multikueue.model import FormerJobs
from reconciler.multikueue.plan import is_removed
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.blocked import is_dispatching
from reconciler.plan.model import Action, Change, Reason, Refusal, Refused
from reconciler.plan.prune import count_members, members_of
from reconciler.spec.enums import Dispatch, PrunePolicy
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import home_cluster
from reconciler.state.applyset import MEMBER_LABEL, TOOL, Inventory
from reconciler.state.model import ClusterView, SharedServers
from reconciler.state.queues import is_stopped

NEW_NAME = "it can join under its new name when all objects of the fleet under the old name are gone"
_SHOWN = 3
# What two fleets with MultiKueue on one manager would both write.
_SHARED_KINDS = frozenset(("ResourceFlavor", "MultiKueueConfig", "MultiKueueCluster"))
_WAY_BACK = "revert the change, set stopPolicy: Hold on the queues, and change the manager when the jobs have ended"


def join_foreign(spec: FleetSpec, view: ClusterView, refusals: Iterable[Refusal]) -> Iterator[Refusal]:
    """Join refusals about objects of the same foreign owner. On the home cluster the result stops the whole fleet.

    The home cluster holds what a fleet has only once. Otherwise a renamed fleet, or a second fleet on the same manager,
    would already write to the workers.
    """
    by_owner: dict[str, list[Refusal]] = {}
    is_sending_fleet = any(queue.dispatch is Dispatch.MULTIKUEUE for queue in spec.queues)
    is_manager = is_sending_fleet and spec.manager is not None and spec.manager.name == view.name
    for refusal in refusals:
        if refusal.reason is Refused.FOREIGN and refusal.ref:
            by_owner.setdefault(_foreign_owner(view, refusal.ref), []).append(refusal)
        else:
            yield refusal
    for owner, found in by_owner.items():
        refs = [refusal.ref for refusal in found if refusal.ref]
        is_sending = is_manager and any(ref.kind in _SHARED_KINDS for ref in refs)
        if len(refs) == 1 and not is_sending:
            yield from found
            continue
        cluster = None if view.name == home_cluster(spec).name else view.name
        yield Refusal(Refused.FOREIGN, _problem(view, owner, refs, is_sending=is_sending), cluster)


def _problem(view: ClusterView, owner: str, refs: list[Ref], *, is_sending: bool) -> str:
    listed = ", ".join(str(ref) for ref in refs[:_SHOWN])
    more = f" and {len(refs) - _SHOWN} more" if len(refs) > _SHOWN else ""
    name = view.fleets.get(owner, "")
    renamed = f"if this fleet was renamed, rename it back to {name}; " if name else ""
    separate = (
        "two fleets that use MultiKueue need two managers, or must be merged"
        if is_sending
        else "two fleets cannot have objects of the same name: rename the objects, or remove them from one fleet"
    )
    return f"{listed}{more} belong to {f'the fleet {name}' if name else owner}; {renamed}{separate}"


def _foreign_owner(view: ClusterView, ref: Ref) -> str:
    return str((view.live[ref]["metadata"].get("labels") or {}).get(MEMBER_LABEL, ""))


def guard_shared_server(spec: FleetSpec, view: ClusterView, shared: SharedServers) -> Iterator[Refusal]:
    others = ", ".join(shared.refused.get(view.name, ()))
    if not others:
        return
    if all(name not in {cluster.name for cluster in spec.clusters} for name in shared.refused[view.name]):
        yield Refusal(Refused.MOVED, f"its inventory names it {others}; {NEW_NAME}", view.name)
        return
    way_out = "give each cluster its own access, or remove one of them from the fleet"
    if spec.manager and spec.manager.name in (view.name, *shared.refused[view.name]):
        way_out += "; the manager runs jobs itself in Queues without dispatch"
    problem = f"it is the same API server as {others} (uid {view.uid}); {way_out}"
    yield Refusal(Refused.SHARED, problem, view.name)


def guard_server(spec: FleetSpec, view: ClusterView, manager: ClusterView | None) -> Iterator[Refusal]:
    """The cluster's own inventory is more precise than what the manager's inventory has about it."""
    yield from [*guard_identity(spec, view)] or [*guard_replacement(view, manager)]


def find_moved(spec: FleetSpec, views: Mapping[ClusterName, ClusterView]) -> frozenset[ClusterName]:
    """Clusters whose API server is not the one that it was. What it has says nothing about the cluster."""
    manager = views.get(spec.manager.name) if spec.manager else None
    known = manager if manager and manager.is_reachable else None
    return frozenset(name for name, view in views.items() if view.is_reachable and any(guard_server(spec, view, known)))


def guard_identity(spec: FleetSpec, view: ClusterView) -> Iterator[Refusal]:
    """Refuse a context that points to another cluster than before: kfleet would prune objects of another fleet."""
    known = view.inventory
    if known is None:
        return
    if known.tool and known.tool != TOOL:
        way_out = "give the fleet another name, or delete that ConfigMap when the other tool has released its objects"
        problem = f"the ApplySet {view.set_name.namespace}/{view.set_name.name} was created by {known.tool}; {way_out}"
        yield Refusal(Refused.MOVED, problem, view.name)
    elif known.cluster and known.cluster != view.name:
        way_out = "check the access of both clusters in the fleet"
        if is_removed(spec, ClusterName(known.cluster)):
            way_out = NEW_NAME
        problem = f"its inventory names it {known.cluster}; {way_out}"
        yield Refusal(Refused.MOVED, problem, view.name)
    elif known.cluster_uid and known.cluster_uid != view.uid:
        problem = (
            f"its uid is {view.uid}, and was {known.cluster_uid}; if the cluster was replaced on purpose, delete "
            f"the ConfigMap {view.set_name.namespace}/{view.set_name.name} there"
        )
        yield Refusal(Refused.MOVED, problem, view.name)


def guard_replacement(view: ClusterView, manager: ClusterView | None) -> Iterator[Refusal]:
    """Refuse a cluster that was created anew. It has no inventory, but the manager's inventory has its former uid."""
    known = manager.inventory.fleet.get(view.name) if manager and manager.inventory else None
    if manager and known and known != view.uid:
        forget = manager.set_name.forget(view.name)
        changed = f"its uid is {view.uid}, and was {known}"
        problem = f"{changed}; if the cluster was replaced on purpose, run on {manager.name}: {forget}"
        yield Refusal(Refused.MOVED, problem, view.name)


def guard_home(spec: FleetSpec, views: Sequence[ClusterView]) -> Iterator[Refusal]:
    """Refuse to move the lease silently. In a fleet without a manager the first cluster by name holds it.

    If a new cluster that sorts first took it, two replicas on two commits would write at the same time, each with its
    own lease.
    """
    if spec.manager or spec.fleet.home:
        return
    names, home = {cluster.name for cluster in spec.clusters}, home_cluster(spec).name
    recorded = {view.inventory.home for view in views if view.inventory} & names
    if before := sorted(recorded - {home}):
        problem = (
            f"they are on {before[0]}, and {home} is the first cluster now; in the Fleet document, set homeCluster"
        )
        yield Refusal(Refused.HOME, f"{problem} to {before[0]} to keep them there, or to {home} to move them")


def guard_source(spec: FleetSpec, views: Sequence[ClusterView]) -> Iterator[Refusal]:
    """Refuse another source: a forgotten overlay, or another repository with a Fleet of the same name.

    It would prune the objects that the former source created.
    """
    if spec.source is None or spec.source.is_accepted:
        return
    known = {view.name: view.inventory.source for view in views if view.inventory}
    others = {name: source for name, source in known.items() if source and spec.source.is_other(source)}
    if others:
        names, before = ", ".join(others), next(iter(others.values()))
        way_out = (
            "if this is intended, repeat with --accept-source; another fleet needs another name in its Fleet document"
        )
        yield Refusal(Refused.SOURCE, f"on {names} from {before}, and this is {spec.source}; {way_out}")


def guard_manager(
    spec: FleetSpec,
    views: Sequence[ClusterView],
    former_jobs: FormerJobs,
) -> Iterator[Refusal]:
    """Refuse a new manager, or none, while workers run jobs of another one, or may run some.

    A manager's Kueue deletes every copy on its workers for which it has no job, and so the copies of another manager.
    Without a manager, kfleet would revoke the login of the former one, and delete what brings its jobs to workers.
    Clusters that could not be read matter only if another cluster was the manager before: a worker that does not
    answer must not stop every run.
    """
    unknown = sorted(former_jobs.uncounted - former_jobs.counts.keys()) if _is_exchanged(spec, views) else []
    found = {**former_jobs.counts, **dict.fromkeys(unknown)}
    if found:
        counts = ", ".join(f"{name} ({'not counted' if count is None else count})" for name, count in found.items())
        harm = (
            f"were not dispatched by {spec.manager.name}, and its Kueue would delete them"
            if spec.manager
            else "were dispatched by a manager that is no longer in the fleet, and would lose it"
        )
        yield Refusal(Refused.MANAGED, f"jobs on {counts} {harm}; {_WAY_BACK}")
        return
    for view in views:
        if spec.manager is None or view.name != spec.manager.name:
            yield from _guard_former_manager(spec, view)


def _guard_former_manager(spec: FleetSpec, view: ClusterView) -> Iterator[Refusal]:
    """Refuse while a former manager has dispatched workloads, or is the only one that knows of a removed cluster.

    Only a manager's inventory has other clusters.
    """
    known = view.inventory or Inventory()
    if not (known.fleet or known.addresses):
        return
    queues = (live for ref, live in members_of(view).items() if ref.kind == "ClusterQueue")
    if count := sum(holding_count(queue) for queue in queues if is_dispatching(view, queue)):
        problem = f"{view.name} was the manager, and {count} of its workloads are dispatched to workers"
        yield Refusal(Refused.MANAGED, f"{problem}; {_WAY_BACK}")
    for name in sorted(name for name in known.addresses if is_removed(spec, ClusterName(name))):
        problem = f"{view.name} was the manager, and has not pruned {name}, which left git and may still run its jobs"
        way_out = f"revert the change and apply until it is pruned, or drop it: {view.set_name.forget(name)}"
        yield Refusal(Refused.MANAGED, f"{problem}; {way_out}")


def _is_exchanged(spec: FleetSpec, views: Sequence[ClusterView]) -> bool:
    """Whether an inventory shows that another cluster was the manager: only a manager's has the fleet's clusters."""
    known = {view.name: view.inventory for view in views if view.inventory}
    own = known.pop(spec.manager.name, None) if spec.manager else None
    return (own is not None and not own.fleet) or any(one.fleet or one.addresses for one in known.values())


def guard_emptiness(views: Sequence[ClusterView], wanted: int) -> Iterator[Refusal]:
    """Refuse an empty fleet: it is usually a mistake (a wrong path, a bad merge)."""
    if not wanted and (held := sum(count_members(view) for view in views)):
        problem = f"{held} objects would be deleted; if this is intended, run: kfleet uninstall"
        yield Refusal(Refused.EMPTY, problem)


def guard_deletes(
    spec: FleetSpec, views: Sequence[ClusterView], changes: Iterable[Change], confirmed: int | None
) -> Iterator[Refusal]:
    """Refuse too many removals: none of them is started, and all other changes continue.

    Removals that must still wait count as well, and so do replacements: twenty removals are twenty, even if only a few
    are possible at a time. Removals that an earlier plan allowed and started do not count again.
    Flavors of pools that git still declares do not count: they are removed when the pool has been silent and unused
    for long enough, and a site that is switched off must not stop the removals of all others.
    """
    live = {view.name: view.live for view in views}
    removed = [*_removals(live, changes)]
    count = len(removed)
    if not count or confirmed == count:
        return
    way_out = f"check the plan, then repeat with --confirm-deletes {count}"
    if confirmed is not None:
        yield Refusal(Refused.TOO_MANY, f"{confirmed} were confirmed, but there are {count}; {way_out}")
        return
    clusters = [ref.cluster for ref in removed if not is_asked_pool(spec, live[ref.cluster][ref])]
    removed_clusters = {name: None for name in clusters if is_removed(spec, name)}
    policy, held = spec.fleet.policy.prune, sum(count_members(view) for view in views)
    if problem := prune_excess(sum(name not in removed_clusters for name in clusters), held, policy):
        yield Refusal(Refused.TOO_MANY, f"{problem}; {way_out}")
    elif problem := prune_excess(len(clusters), held, policy):
        yield from (Refusal(Refused.TOO_MANY, f"{problem}; {way_out}", name) for name in removed_clusters)


def count_removals(views: Iterable[ClusterView], changes: Iterable[Change]) -> int:
    """The number of removals that no earlier plan has allowed."""
    return len([*_removals({view.name: view.live for view in views}, changes)])


def _removals(live: Mapping[ClusterName, Mapping[Ref, Manifest]], changes: Iterable[Change]) -> Iterator[Ref]:
    return (change.ref for change in changes if _is_removal(change, live[change.ref.cluster]))


def _is_removal(change: Change, live: Mapping[Ref, Manifest]) -> bool:
    """Whether this plan deletes the object, or holds it for a later delete, and no earlier plan had allowed that."""
    if change.action in {Action.DELETE, Action.REPLACE}:
        return not is_stopped(live.get(change.ref) or {})
    is_waiting = change.reason in {Reason.STOPPED, Reason.IN_USE} and change.is_unfinished_removal
    return is_waiting and not is_stopped(live.get(change.ref) or {})


def prune_excess(deletes: int, held: int, policy: PrunePolicy) -> str:
    """By how much a number of deletes is more than the policy allows; empty if it is not."""
    share = 100 * deletes / held if held else 0
    if deletes > policy.max_deletes:
        return f"{deletes}, and policy.prune.maxDeletes is {policy.max_deletes}"
    if share > policy.max_percent:
        return f"{deletes} of {held} objects ({share:.0f} %), and policy.prune.maxPercent is {policy.max_percent}"
    return ""
