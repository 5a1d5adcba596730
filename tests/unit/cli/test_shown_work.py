"""What a person at a terminal sees while clusters are looked at, and what a pipe does not."""

from reconciler.cli.output import count_changes
from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action, Change, ClusterPlan, Outcome, Plan, Reason
from reconciler.state.applyset import Inventory, SetName


def created(name: str) -> Change:
    return Change(Ref(ClusterName("hub"), "", "ConfigMap", "x", name), Action.CREATE, Reason.MISSING, 0)


def test_changes_are_counted_cluster_by_cluster_as_they_are_tried() -> None:
    changes = tuple(created(name) for name in ("a", "b"))
    kept = created("c")._replace(action=Action.KEEP)
    part = ClusterPlan(ClusterName("hub"), "uid", (*changes, kept), SetName("test", "x"), Inventory())
    told: list[tuple[str, str]] = []
    tell = count_changes(Plan("test", "", (part,)), lambda cluster, step: told.append((cluster, step)))
    tell(Outcome(changes[0].ref, Action.CREATE))
    tell(Outcome(changes[1].ref, Action.CREATE, "409 conflict"))
    assert told == [("hub", "0 of 2 changes"), ("hub", "1 of 2 changes"), ("hub", "2 of 2 changes")]
