"""What becomes of clusters that left the spec: how long the manager remembers them, and what is said of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.desired import Leaving
from reconciler.objects import ClusterName
from reconciler.ownership.applyset import ADDRESSES, Inventory
from reconciler.ownership.memory import Addresses, addresses_of
from reconciler.plan.model import Action, Change, Reason, Waiting
from reconciler.plan.prune import members_of
from reconciler.prediction import ClusterView
from reconciler.spec.model import FleetSpec


@dataclass(frozen=True, slots=True)
class Memory:
    """What the manager knows of the fleet's clusters after this plan."""

    uids: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = field(default_factory=dict)


def remember(spec: FleetSpec, manager: ClusterView, views: Sequence[ClusterView]) -> Memory:
    """All clusters of the spec, and those that left it until nothing of the fleet is there any more.

    A uid that is known already stays until somebody takes it back. An address is kept that led to the right cluster:
    where nobody ever was, nothing has to be tidied up.
    """
    known = manager.inventory or Inventory()
    uids = {**{str(view.name): view.uid for view in views if view.is_reachable}, **known.fleet}
    gone = {view.name for view in views if _is_gone(view)}
    kept = {name: address for name, address in known.addresses.items() if name not in gone}
    right = {view.name for view in views if view.is_reachable and view.uid == uids[view.name]}
    tried = {name: address for name, address in addresses_of(spec.clusters).items() if name in right}
    names = dict.fromkeys((*(str(cluster.name) for cluster in spec.clusters), *kept))
    return Memory({name: uids[name] for name in names if name in uids}, {**kept, **tried})


def waiting_of(
    spec: FleetSpec, views: Iterable[ClusterView], leaving: Iterable[Leaving], manager: ClusterView | None
) -> Iterator[Waiting]:
    said = set()
    for entry in leaving:
        said.add(entry.cluster)
        yield Waiting(entry.cluster, entry.why)
    for view in views:
        if is_departed(spec, view.name) and view.gaps and view.name not in said:
            yield Waiting(view.name, _left_behind(view, manager))


def is_departed(spec: FleetSpec, name: ClusterName) -> bool:
    return all(cluster.name != name for cluster in spec.clusters)


def is_ending(changes: Iterable[Change]) -> bool:
    """Whether nothing of the fleet is left on a cluster after these changes."""
    return all(change.action is Action.DELETE or change.reason is Reason.RELEASED for change in changes)


def _is_gone(view: ClusterView) -> bool:
    return view.is_reachable and not view.gaps and view.inventory is None and not members_of(view)


def _left_behind(view: ClusterView, manager: ClusterView | None) -> str:
    why = "; ".join(f"{gap.what}: {gap.why}" for gap in view.gaps)
    problem = f"it left the fleet and cannot be seen ({why}); what the fleet has there stays until it can"
    if manager is None:
        return problem
    place = f"-n {manager.set_name.namespace} annotate configmap {manager.set_name.name}"
    return f"{problem}. To forget it for good, on {manager.name}: kubectl {place} {ADDRESSES}-"
