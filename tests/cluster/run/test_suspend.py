"""A suspended cluster: looked at, told of, and not written to."""

import yaml

from tests.cluster.engine.worlds import World
from tests.cluster.run.conftest import StartController
from tests.cluster.run.test_follow import told
from tests.cluster.run.test_run import reasons_told
from tests.documents import flavor, queue, tenant
from tests.support import eventually


def suspend(world: World) -> None:
    path = world.folder / "fleet" / "fleet.yaml"
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        if document["kind"] == "Cluster":
            document["spec"]["suspend"] = True
    path.write_text(yaml.safe_dump_all(documents))
    world.commit_all()


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
