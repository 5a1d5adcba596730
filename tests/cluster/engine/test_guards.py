"""Guards on real clusters: what they refuse is not written, and what they let through is exactly what was confirmed."""

from typing import Any

import pytest

from tests.cluster.engine.worlds import World
from tests.documents import Document, flavor, queue

STRICT = {"prune": {"maxDeletes": 1, "maxPercent": 100}}
SMALL_PART = {"prune": {"maxDeletes": 10, "maxPercent": 25}}


def flavors(name: str, count: int) -> tuple[Document, ...]:
    return tuple(flavor(f"{name}-{number}") for number in range(count))


def refusals_of(world: World, *options: str) -> list[dict[str, Any]]:
    """The refusals of an apply that writes nothing."""
    planned = world.plan(*options)
    assert planned.code == 3, planned
    before = world.quiet_versions()
    assert world.apply(*options).code == 3
    assert world.versions() == before
    found: list[dict[str, Any]] = planned.record["refusals"]
    return found


def test_empty_fleet_deletes_nothing(world: World) -> None:
    world.commit(*flavors(world.name, 2))
    world.converge()
    world.commit()
    (refusal,) = refusals_of(world, "--confirm-deletes", "2")
    assert refusal["reason"] == "empty" and refusal["problem"].startswith("2 objects would be deleted")


@pytest.mark.parametrize(
    ("policy", "words"),
    [(STRICT, "2, and policy.prune.maxDeletes is 1"), (SMALL_PART, "2 of 5 objects (40 %)")],
    ids=["number", "part"],
)
def test_more_deletes_than_allowed_need_to_be_confirmed(world: World, policy: dict[str, Any], words: str) -> None:
    world.commit(*flavors(world.name, 5), policy=policy)
    world.converge()
    world.commit(*flavors(world.name, 3), policy=policy)
    (refusal,) = refusals_of(world)
    assert refusal["reason"] == "too_many" and words in refusal["problem"]
    assert "--confirm-deletes 2" in refusal["problem"]
    (refusal,) = refusals_of(world, "--confirm-deletes", "3")
    assert refusal["problem"].startswith("3 were confirmed, but there are 2")
    world.converge("--confirm-deletes", "2")
    assert len(world.members()) == 3


def test_exchanged_clusters_are_refused_and_nothing_is_written(wide_world: World) -> None:
    name = wide_world.name
    one, other = f"{name}-worker1", f"{name}-worker2"
    documents = (flavor(name), queue(f"{name}-one", name, clusters={"names": [one]}))
    wide_world.commit(*documents)
    wide_world.converge()
    contexts = wide_world.contexts
    before = wide_world.quiet_versions()
    wide_world.contexts = {**contexts, one: contexts[other], other: contexts[one]}
    wide_world.commit(*documents)
    planned = wide_world.plan()
    assert planned.code == 3
    assert {entry for entry in planned.refusals if entry[0] == "moved"} == {("moved", one), ("moved", other)}
    problems = {entry["cluster"]: entry["problem"] for entry in planned.record["refusals"]}
    assert f"it calls itself {other}" in problems[one]
    assert wide_world.apply().code == 3
    wide_world.contexts = contexts
    assert wide_world.versions() == before


def test_cluster_that_was_made_anew_is_refused(world: World) -> None:
    """A restored backup, or another cluster under the old address: the inventory is not of this cluster."""
    world.commit(*flavors(world.name, 1))
    world.converge()
    world.api().patch(world.set_name.path, {"metadata": {"annotations": {"kfleet.dev/cluster-uid": "of-another"}}})
    (refusal,) = refusals_of(world)
    assert refusal["reason"] == "moved" and "and was of-another" in refusal["problem"]
    assert f"ConfigMap kueue-system/kfleet-{world.name}" in refusal["problem"]


def test_applyset_of_another_tool_is_refused(world: World) -> None:
    world.commit(*flavors(world.name, 1))
    world.converge()
    mark = {"applyset.kubernetes.io/tooling": "kubectl/v1.34"}
    world.api().patch(world.set_name.path, {"metadata": {"annotations": mark}})
    (refusal,) = refusals_of(world)
    assert f"kfleet-{world.name} was made by kubectl; give the fleet another name" in refusal["problem"]


def test_suspended_fleet_is_looked_at_and_not_written(world: World) -> None:
    world.commit(*flavors(world.name, 2))
    world.converge()
    before = world.quiet_versions()
    world.write(*flavors(world.name, 3)[1:])
    path = world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("spec:\n  policy:", "spec:\n  suspend: true\n  policy:"))
    world.commit_all()
    planned = world.plan()
    assert planned.code == 0
    assert set(planned.actions.values()) == {"hold"}
    assert {change["reason"] for change in planned.changes.values()} == {"suspended"}
    assert world.apply().code == 0
    assert world.versions() == before


def test_cluster_without_a_kind_of_the_fleet_says_so(world: World) -> None:
    widget: Document = {"apiVersion": f"{world.name}.example.org/v1", "kind": "Widget", "metadata": {"name": "a"}}
    world.commit(flavor(world.name), widget)
    planned = world.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", "worker1/Widget/a")])
    problem = planned.record["refusals"][0]["problem"]
    assert problem.startswith(f"{world.name}.example.org/v1 Widget is not served; install what defines it")


def test_field_that_its_kind_does_not_have_is_refused(world: World) -> None:
    settings: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": world.name}, "dato": {"a": "b"}}
    settings["metadata"]["namespace"] = "default"
    world.commit(flavor(world.name), settings)
    planned = world.plan()
    assert (planned.code, planned.refusals) == (3, [("invalid", f"worker1/ConfigMap/default/{world.name}")])
    assert ".dato: field not declared in schema" in planned.record["refusals"][0]["problem"]


def test_cluster_that_cannot_be_reached_is_a_gap_and_the_others_converge(wide_world: World) -> None:
    name = wide_world.name
    wide_world.commit(flavor(name))
    path = wide_world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker2", "context: nowhere"))
    wide_world.commit_all()
    planned = wide_world.plan()
    assert planned.code == 4
    (gap,) = planned.record["gaps"]
    assert gap["cluster"] == f"{name}-worker2" and "nowhere" in gap["why"]
    assert wide_world.apply().code == 4
    assert wide_world.finds("resourceflavors", name, "worker1")
    assert not wide_world.finds("resourceflavors", name, "worker2")
