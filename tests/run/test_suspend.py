"""A suspended cluster: looked at, told of, and not written to."""

import yaml

from reconciler.spec import FleetSpec
from tests.engine.documents import flavor, queue, tenant
from tests.engine.worlds import World
from tests.plan.worlds import QUEUE, applied_world, parse, plan_of
from tests.run.conftest import StartController
from tests.run.test_follow import told
from tests.run.test_run import reasons_told
from tests.support import eventually

PAUSED = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, suspend: true}\n"
HUB = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n"


def suspend(world: World) -> None:
    path = world.folder / "fleet" / "fleet.yaml"
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        if document["kind"] == "Cluster":
            document["spec"]["suspend"] = True
    path.write_text(yaml.safe_dump_all(documents))
    world.commit_all()


def test_inventory_of_a_suspended_cluster_is_not_touched() -> None:
    spec: FleetSpec = parse(QUEUE, HUB, PAUSED)
    plan = plan_of(spec, applied_world(spec))
    assert {cluster.name: cluster.is_complete for cluster in plan.clusters} == {"hub": True, "east": False}


def test_suspended_cluster_is_looked_at_and_not_written_to(world: World, start: StartController) -> None:
    name = world.name
    world.commit(flavor(name), queue(name, name))
    world.converge()
    before = world.quiet_versions()
    # A kind that the inventory does not know yet would widen it.
    world.write(flavor(name), queue(name, name, cpu="12"), tenant(name, name))
    suspend(world)
    assert world.apply().code == 0
    status = world.run("status")
    assert "worker1: suspended, kubernetes v" in status.out
    controller = start("--interval", "1")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 2)
    eventually(lambda: "Suspended" in reasons_told(world))
    assert told(world)["result"] == "suspended"
    assert told(world)["clusters"] == "worker1: suspended: worker1: 3 changes held until it goes on"
    assert world.versions() == before
