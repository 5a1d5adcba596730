"""A suspended cluster: looked at, told of, and not written to."""

from tests import fast_yaml
from tests.builders import flavor, open_queue, team_documents
from tests.cluster.controller.conftest import StartController
from tests.cluster.controller.test_follow import told
from tests.cluster.controller.test_run import reasons_told
from tests.cluster.live_fleet import LiveFleet
from tests.support import eventually


def suspend(live_fleet: LiveFleet) -> None:
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [document for document in fast_yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        if document["kind"] == "Cluster":
            document["spec"]["suspend"] = True
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def test_suspended_cluster_is_looked_at_and_not_written_to(live_fleet: LiveFleet, start: StartController) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), open_queue(name, name))
    live_fleet.converge()
    before = live_fleet.quiet_versions()
    # A kind that the inventory does not know yet would widen it.
    live_fleet.write(*team_documents(name, {"cpu": "12"}))
    suspend(live_fleet)
    assert live_fleet.apply().code == 0
    status = live_fleet.run("status")
    assert "worker1: suspended, kubernetes v" in status.out
    controller = start("--interval", "1")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 2)
    eventually(lambda: "Suspended" in reasons_told(live_fleet))
    assert told(live_fleet)["result"] == "suspended"
    assert told(live_fleet)["clusters"] == "worker1: suspended: worker1: 3 changes held until it is resumed"
    assert live_fleet.versions() == before
