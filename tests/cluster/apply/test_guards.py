"""Guards on real clusters: what they refuse is not written, and what they let through is exactly what was confirmed."""

from typing import Any

import pytest

from tests.builders import Document, flavor, open_queue
from tests.cluster.live_fleet import LiveFleet

STRICT = {"prune": {"maxDeletes": 1, "maxPercent": 100}}
SMALL_PART = {"prune": {"maxDeletes": 10, "maxPercent": 25}}


def flavors(name: str, count: int) -> tuple[Document, ...]:
    return tuple(flavor(f"{name}-{number}") for number in range(count))


def refusals_of(live_fleet: LiveFleet, *options: str) -> list[dict[str, Any]]:
    """The refusals of an apply that writes nothing."""
    planned = live_fleet.plan(*options)
    assert planned.code == 3, planned
    before = live_fleet.quiet_versions()
    assert live_fleet.apply(*options).code == 3
    assert live_fleet.versions() == before
    found: list[dict[str, Any]] = planned.record["refusals"]
    return found


def test_empty_fleet_deletes_nothing(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*flavors(live_fleet.name, 2))
    live_fleet.converge()
    live_fleet.commit()
    (refusal,) = refusals_of(live_fleet, "--confirm-deletes", "2")
    assert refusal["reason"] == "empty" and refusal["problem"].startswith("2 objects would be deleted")


@pytest.mark.parametrize(
    ("policy", "words"),
    [(STRICT, "2, and policy.prune.maxDeletes is 1"), (SMALL_PART, "2 of 5 objects (40 %)")],
    ids=["number", "part"],
)
def test_more_deletes_than_allowed_need_to_be_confirmed(
    live_fleet: LiveFleet, policy: dict[str, Any], words: str
) -> None:
    live_fleet.commit(*flavors(live_fleet.name, 5), policy=policy)
    live_fleet.converge()
    live_fleet.commit(*flavors(live_fleet.name, 3), policy=policy)
    (refusal,) = refusals_of(live_fleet)
    assert refusal["reason"] == "too_many" and words in refusal["problem"]
    assert "--confirm-deletes 2" in refusal["problem"]
    (refusal,) = refusals_of(live_fleet, "--confirm-deletes", "3")
    assert refusal["problem"].startswith("3 were confirmed, but there are 2")
    live_fleet.converge("--confirm-deletes", "2")
    assert len(live_fleet.members()) == 3


def test_too_many_deletes_stop_nothing_but_the_deletes(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*flavors(name, 5), policy=STRICT)
    live_fleet.converge()
    live_fleet.commit(*flavors(name, 3), flavor(f"{name}-new"), policy=STRICT)
    assert live_fleet.apply().code == 3
    assert live_fleet.finds("resourceflavors", f"{name}-new")
    assert len(live_fleet.members()) == 6
    left = live_fleet.plan()
    assert sorted(left.actions.values()) == ["delete", "delete"], left
    live_fleet.converge("--confirm-deletes", "2")


def test_exchanged_clusters_are_refused_and_nothing_is_written(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    one, other = f"{name}-worker1", f"{name}-worker2"
    documents = (flavor(name), open_queue(f"{name}-one", name, clusters={"names": [one]}))
    wide_live_fleet.commit(*documents)
    wide_live_fleet.converge()
    contexts = wide_live_fleet.contexts
    before = wide_live_fleet.quiet_versions()
    wide_live_fleet.contexts = {**contexts, one: contexts[other], other: contexts[one]}
    wide_live_fleet.commit(*documents)
    planned = wide_live_fleet.plan()
    assert planned.code == 3
    assert {entry for entry in planned.refusals if entry[0] == "moved"} == {("moved", one), ("moved", other)}
    problems = {entry["cluster"]: entry["problem"] for entry in planned.record["refusals"]}
    assert f"its inventory names it {other}" in problems[one]
    assert wide_live_fleet.apply().code == 3
    wide_live_fleet.contexts = contexts
    assert wide_live_fleet.versions() == before


def test_cluster_that_was_made_anew_is_refused(live_fleet: LiveFleet) -> None:
    """A restored backup, or another cluster under the old address: the inventory is not of this cluster."""
    live_fleet.commit(*flavors(live_fleet.name, 1))
    live_fleet.converge()
    live_fleet.api().patch(
        live_fleet.set_name.path, {"metadata": {"annotations": {"kfleet.dev/cluster-uid": "of-another"}}}
    )
    (refusal,) = refusals_of(live_fleet)
    assert refusal["reason"] == "moved" and "and was of-another" in refusal["problem"]
    assert f"ConfigMap kueue-system/kfleet-{live_fleet.name}" in refusal["problem"]


def test_applyset_of_another_tool_is_refused(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*flavors(live_fleet.name, 1))
    live_fleet.converge()
    mark = {"applyset.kubernetes.io/tooling": "kubectl/v1.34"}
    live_fleet.api().patch(live_fleet.set_name.path, {"metadata": {"annotations": mark}})
    (refusal,) = refusals_of(live_fleet)
    assert f"kfleet-{live_fleet.name} was created by kubectl; give the fleet another name" in refusal["problem"]


def test_suspended_fleet_is_looked_at_and_not_written(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*flavors(live_fleet.name, 2))
    live_fleet.converge()
    before = live_fleet.quiet_versions()
    live_fleet.write(*flavors(live_fleet.name, 3)[1:])
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("spec:\n  policy:", "spec:\n  suspend: true\n  policy:"))
    live_fleet.commit_all()
    planned = live_fleet.plan()
    assert planned.code == 0
    assert set(planned.actions.values()) == {"hold"}
    assert {change["reason"] for change in planned.changes.values()} == {"suspended"}
    assert live_fleet.apply().code == 0
    assert live_fleet.versions() == before


def test_cluster_without_a_kind_of_the_fleet_says_so(live_fleet: LiveFleet) -> None:
    widget: Document = {"apiVersion": f"{live_fleet.name}.example.org/v1", "kind": "Widget", "metadata": {"name": "a"}}
    live_fleet.commit(flavor(live_fleet.name), widget)
    planned = live_fleet.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", "worker1/Widget/a")])
    problem = planned.record["refusals"][0]["problem"]
    assert problem.startswith(f"{live_fleet.name}.example.org/v1 Widget is not served; install its definition")


def test_field_that_its_kind_does_not_have_is_refused(live_fleet: LiveFleet) -> None:
    settings: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": live_fleet.name},
        "dato": {"a": "b"},
    }
    settings["metadata"]["namespace"] = "default"
    live_fleet.commit(flavor(live_fleet.name), settings)
    planned = live_fleet.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", f"worker1/ConfigMap/default/{live_fleet.name}")])
    assert ".dato: field not declared in schema" in planned.record["refusals"][0]["problem"]


def test_cluster_that_cannot_be_reached_is_a_gap_and_the_others_converge(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    wide_live_fleet.commit(flavor(name))
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker2", "context: nowhere"))
    wide_live_fleet.commit_all()
    planned = wide_live_fleet.plan()
    assert planned.code == 4
    (gap,) = planned.record["gaps"]
    assert gap["cluster"] == f"{name}-worker2" and "nowhere" in gap["why"]
    assert wide_live_fleet.apply().code == 4
    assert wide_live_fleet.finds("resourceflavors", name, "worker1")
    assert not wide_live_fleet.finds("resourceflavors", name, "worker2")


def test_fleet_that_was_renamed_is_refused_once_with_its_former_name(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*flavors(name, 5))
    live_fleet.converge()
    before = live_fleet.quiet_versions()
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    head = f"kind: Fleet\nmetadata:\n  name: {name}"
    path.write_text(path.read_text().replace(head, f"{head}-b"))
    live_fleet.commit_all()
    refused = live_fleet.plan()
    assert refused.refusals == [("foreign", "")]
    (told,) = refused.record["refusals"]
    assert (
        f"and 2 more belong to the fleet {name}; if this fleet was renamed, rename it back to {name}" in told["problem"]
    )
    assert live_fleet.apply().code == 3
    live_fleet.api().delete(f"/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases/{live_fleet.lease}-b")
    assert live_fleet.versions() == before
