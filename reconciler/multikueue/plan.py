"""Clusters that were removed from the spec: how long the manager keeps their record, and what the plan reports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.objects import ClusterName
from reconciler.plan.model import Action, Change, Reason, Waiting
from reconciler.plan.prune import members_of
from reconciler.render.model import Leaving
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import downsynced_by
from reconciler.state.applyset import Addresses, Inventory, addresses_of, digest_of
from reconciler.state.model import NOT_SHARED, ClusterView, SharedServers


@dataclass(frozen=True, slots=True)
class Memory:
    """The manager's record of the fleet's clusters after this plan."""

    uids: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)
    digests: frozenset[str] = frozenset()


def remember(
    spec: FleetSpec,
    manager: ClusterView,
    views: Sequence[ClusterView],
    shared: SharedServers = NOT_SHARED,
    leaving: Iterable[Leaving] = (),
) -> Memory:
    """Record all clusters of the spec, and removed ones until no object of the fleet is left there.

    A recorded uid stays until the operator removes it. An address is recorded if it led to the right cluster: where
    kfleet never was, there is nothing to prune. A name that leads to the API server of another name is dropped.
    """
    known = manager.inventory or Inventory()
    uids = {**{str(view.name): view.uid for view in views if view.is_reachable}, **known.fleet}
    staying = {entry.cluster for entry in leaving}
    gone = {view.name for view in views if _is_gone(view) and view.name not in staying} | shared.names
    kept = {name: address for name, address in known.addresses.items() if name not in gone}
    right = {view.name for view in views if view.is_reachable and view.uid == uids[view.name]}
    tried = {name: address for name, address in addresses_of(spec.clusters).items() if name in right - shared.names}
    # KubeStellar may have downsynced jobs to a worker that kfleet never reached: kfleet checks it on removal.
    served = addresses_of(one for one, _ in downsynced_by(spec) if one.name not in {*kept, *shared.names})
    names = dict.fromkeys((*(str(one.name) for one in spec.clusters if one.name not in shared.names), *kept))
    # An address that kfleet did not write gets no digest: keeping it must not make it trusted.
    proven = {**{name: one for name, one in known.verified(spec.fleet.name).items() if name in kept}, **served, **tried}
    digests = frozenset(digest_of(spec.fleet.name, name, address) for name, address in proven.items())
    return Memory({name: uids[name] for name in names if name in uids}, {**served, **kept, **tried}, digests)


def waiting_of(
    spec: FleetSpec, views: Iterable[ClusterView], leaving: Iterable[Leaving], manager: ClusterView | None
) -> Iterator[Waiting]:
    gone = {view.name: view for view in views if is_removed(spec, view.name) and view.gaps}
    for entry in leaving:
        view = gone.pop(entry.cluster, None)
        # The cluster cannot be observed, so the only alternative is to drop its record.
        way_out = _forgetting(entry.cluster, manager) if view and entry.is_whole else ""
        if entry.why:
            yield Waiting(entry.cluster, f"{entry.why}{way_out}")
    for view in gone.values():
        yield Waiting(view.name, _left_behind(view, manager))


def is_removed(spec: FleetSpec, name: ClusterName) -> bool:
    return all(cluster.name != name for cluster in spec.clusters)


def is_ending(changes: Iterable[Change]) -> bool:
    """Whether nothing of the fleet is left on a cluster after these changes."""
    return all(change.action is Action.DELETE or change.reason is Reason.RELEASED for change in changes)


def _is_gone(view: ClusterView) -> bool:
    return view.is_reachable and not view.gaps and view.inventory is None and not members_of(view)


def _left_behind(view: ClusterView, manager: ClusterView | None) -> str:
    why = "; ".join(f"{gap.what}: {gap.why}" for gap in view.gaps)
    problem = f"it was removed from the fleet and cannot be observed ({why}); the fleet's objects there stay until then"
    return f"{problem}{_forgetting(view.name, manager)}"


def _forgetting(cluster: ClusterName, manager: ClusterView | None) -> str:
    if manager is None:
        return ""
    return f". To drop it for good, run on {manager.name}: {manager.set_name.forget(cluster)}"
