"""Changes and parts of plans as values, for tests of apply."""

from typing import Any

from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action, Change, ClusterPlan, Reason
from reconciler.state.applyset import Inventory, SetName

HUB, EAST, WEST = (ClusterName(name) for name in ("hub", "east", "west"))


def ref(name: str, cluster: ClusterName = HUB, kind: str = "ClusterQueue") -> Ref:
    return Ref(cluster, "kueue.x-k8s.io", kind, "", name)


def change(action: Action, reason: Reason, name: str = "night", cluster: ClusterName = HUB, **more: Any) -> Change:
    return Change(ref(name, cluster, more.pop("kind", "ClusterQueue")), action, reason, more.pop("wave", 0), **more)


def part(cluster: ClusterName, *changes: Change, **more: Any) -> ClusterPlan:
    inventory = more.pop("inventory", Inventory())
    return ClusterPlan(cluster, f"uid-of-{cluster}", changes, SetName("test", "kueue-system"), inventory, **more)
