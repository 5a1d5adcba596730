"""The arithmetic of effects beside real Kueue: who starts and who loses its quota after a change, 60 times and more."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.effects.find import find_effects
from reconciler.effects.model import Effects, Impact
from reconciler.objects import ClusterName, group_of, ref_of
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import DEFAULT_KUEUE
from reconciler.snapshot.objects import ClusterObjects, FleetObjects, KindKey
from reconciler.spec.enums import Role
from reconciler.state.applyset import Inventory, SetName
from tests.builders import Document, spec_of
from tests.cluster.scheduling.situations import Situation, flavors, make_situation
from tests.cluster.scheduling.world import Settlement, World
from tests.unit.view.live_objects import KUEUE_KINDS, NOW

CLUSTER = ClusterName("scheduling")
PART = f"{CLUSTER}/kueue"
COUNT, LEAST_KNOWN = 40, 36
LOST = {Impact.EVICTED, Impact.PREEMPTED}


@pytest.fixture(scope="module")
def world(fleet: Sandbox) -> Iterator[World]:
    fleet.add_cluster(CLUSTER, DEFAULT_KUEUE)
    made = World(fleet, CLUSTER)
    made.create(flavors())
    yield made
    fleet.remove_cluster(CLUSTER)


def test_effects_are_what_kueue_does(world: World) -> None:
    compare(world, [make_situation(number, is_fair=False) for number in range(COUNT)])


def test_effects_are_what_kueue_does_with_fair_sharing(world: World) -> None:
    world.sandbox.stop(PART)
    world.use_fair_sharing()
    world.sandbox.restart(PART)
    compare(world, [make_situation(number, is_fair=True) for number in range(COUNT)])


def compare(world: World, situations: list[Situation]) -> None:
    """Fill all situations, foretell what their changes do, make the changes, and look."""
    for situation in situations:
        world.create(situation.objects)
    world.sandbox.stop(PART)
    world.put(one for situation in situations for one in situation.workloads)
    world.sandbox.restart(PART)
    before = world.settle()
    assert before.holding
    foretold = {situation.name: foretell(world, situation, before) for situation in situations}
    world.replace(change for situation in situations for change in situation.changes)
    after = world.settle()
    wrong = [found for one in situations if (found := differences(one, foretold[one.name], before, after))]
    assert sum(not effects.unknown for effects in foretold.values()) >= LEAST_KNOWN
    assert not wrong, "\n".join(wrong)
    moved = [one for effects in foretold.values() for one in effects.workloads if one.impact in {*LOST, Impact.STARTS}]
    assert len(moved) > len(situations)  # the changes are such that something moves
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: world.api.delete(world.api.path_of(one)), after.workloads.values()))


def foretell(world: World, situation: Situation, before: Settlement) -> Effects:
    own = [one for one in before.workloads.values() if one["metadata"]["namespace"] == situation.name]
    objects: dict[KindKey, tuple[Document, ...]] = dict.fromkeys(KUEUE_KINDS, ())
    for one in (*world.listed(situation.name), *own):
        key = (group_of(one), one["kind"])
        objects[key] = (*objects.get(key, ()), one)
    seen = ClusterObjects(
        name=CLUSTER, role=Role.WORKER, objects=objects, kueue=f"v{DEFAULT_KUEUE}", configuration=world.configuration
    )
    changes = tuple(
        Change(ref_of(CLUSTER, one), Action.UPDATE, Reason.CHANGED, 0, manifest=one) for one in situation.changes
    )
    cluster = ClusterPlan(CLUSTER, "uid", changes, SetName("demo", "kueue-system"), Inventory())
    fleet = FleetObjects(taken_at=NOW, clusters={CLUSTER: seen})
    return find_effects(spec_of(), Plan("demo", "abc", (cluster,)), fleet)


def differences(situation: Situation, effects: Effects, before: Settlement, after: Settlement) -> str:
    own = {one["metadata"]["uid"]: one["metadata"]["name"] for one in situation.workloads}
    starts = {name for uid, name in own.items() if uid in after.holding - before.holding}
    lost = {name for uid, name in own.items() if uid in before.holding & after.evicted}
    said_starts = {one.name for one in effects.workloads if one.impact is Impact.STARTS}
    said_lost = {one.name for one in effects.workloads if one.impact in LOST}
    if effects.unknown or (starts, lost) == (said_starts, said_lost):
        return ""
    return f"{situation.name}: Kueue starts {starts}, ends {lost}; foretold {said_starts}, {said_lost}"
