"""`kfleet run`: follows git and the clusters, writes what changed and nothing else, and one replica at a time."""

import json
import time
from datetime import UTC, datetime, timedelta

from reconciler.clients.lease import DURATION, MARGIN
from tests import fast_yaml
from tests.builders import team_documents
from tests.cluster.controller.conftest import StartController
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.support import Kfleet, eventually


def reasons_told(live_fleet: LiveFleet) -> set[str]:
    """The reasons of Events about the fleet."""
    events = live_fleet.api().list("/api/v1/namespaces/kueue-system/events")
    return {event["reason"] for event in events if event["involvedObject"]["name"] == f"kfleet-{live_fleet.name}"}


def test_run_follows_commits(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    controller = start()
    eventually(lambda: live_fleet.nominal_quota() == "9")
    eventually(lambda: controller.get("/readyz")[0] == 200)
    live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "12"}))
    eventually(lambda: live_fleet.nominal_quota() == "12")
    assert live_fleet.plan().code == 0
    assert controller.stop() == 0
    assert controller.said("stopped")
    assert all("level" in line for line in controller.lines), "a line of the log is not JSON"


def test_run_mends_drift_without_waiting_for_its_interval(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    controller = start("--interval", "600")
    eventually(lambda: live_fleet.finds("localqueues", "main", namespace=live_fleet.name))
    live_fleet.kubectl("delete", "localqueue", "-n", live_fleet.name, "main")
    eventually(lambda: live_fleet.finds("localqueues", "main", namespace=live_fleet.name))
    patch = [{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "1"}]
    live_fleet.kubectl("patch", "clusterqueue", live_fleet.name, "--type=json", "-p", json.dumps(patch))
    eventually(lambda: live_fleet.nominal_quota() == "9")
    eventually(lambda: "Corrected" in reasons_told(live_fleet))
    eventually(lambda: 'kfleet_writes_total{action="update"' in controller.get("/metrics")[1])
    assert controller.metric('kfleet_writes_total{action="update"') == 1


def test_run_that_has_nothing_to_do_writes_nothing(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    controller = start("--interval", "1")
    eventually(lambda: live_fleet.nominal_quota() == "9")
    before = live_fleet.quiet_versions()
    cycles = controller.metric("kfleet_reconcile_seconds_count")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= cycles + 3)
    assert live_fleet.versions() == before


def test_run_keeps_the_last_good_revision(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    controller = start("--interval", "1")
    eventually(lambda: live_fleet.nominal_quota() == "9")
    good = live_fleet.queue(live_fleet.name)["metadata"]["generation"]
    live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "a lot"}))
    eventually(lambda: controller.said("revision")[-1].get("problem"))
    problem = controller.said("revision")[-1]["problem"]
    assert "a lot" in problem and "fleet.yaml" in problem
    eventually(lambda: "RevisionRefused" in reasons_told(live_fleet))
    assert live_fleet.nominal_quota() == "9"
    assert live_fleet.queue(live_fleet.name)["metadata"]["generation"] == good
    live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "11"}))
    eventually(lambda: live_fleet.nominal_quota() == "11")


def test_run_that_is_refused_says_so_and_counts_no_writes(live_fleet: LiveFleet, start: StartController) -> None:
    policy = {"prune": {"maxDeletes": 0}}
    live_fleet.commit(*team_documents(live_fleet.name), policy=policy)
    controller = start("--interval", "1")
    eventually(lambda: live_fleet.finds("localqueues", "main", namespace=live_fleet.name))
    live_fleet.commit(*team_documents(live_fleet.name)[:2], policy=policy)
    eventually(lambda: "DeletesRefused" in reasons_told(live_fleet))
    eventually(lambda: controller.said("cycle")[-1]["refusals"] == 1)
    assert controller.said("cycle")[-1]["writes"] == 0
    assert live_fleet.finds("localqueues", "main", namespace=live_fleet.name)


def test_second_replica_waits_and_takes_over_within_15_seconds(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    first = start()
    eventually(lambda: first.said("leading"))
    eventually(lambda: live_fleet.nominal_quota() == "9")
    second = start()
    eventually(lambda: second.said("waiting for the lease"))
    time.sleep(2)
    assert not second.said("leading")
    assert (first.metric("kfleet_leader"), second.metric("kfleet_leader")) == (1, 0)
    first.kill()
    last_sign = lease_time(live_fleet, "renewTime")
    live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "13"}))
    eventually(lambda: second.said("leading"))
    assert lease_time(live_fleet, "acquireTime") - last_sign < timedelta(seconds=15)
    eventually(lambda: live_fleet.nominal_quota() == "13")


def lease_time(live_fleet: LiveFleet, field: str) -> datetime:
    lease = live_fleet.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{live_fleet.lease}")
    return datetime.fromisoformat(lease["spec"][field])


def test_replica_that_stops_gives_its_place_back_at_once(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    first = start()
    eventually(lambda: first.said("leading"))
    second = start()
    eventually(lambda: second.said("waiting for the lease"))
    assert first.stop() == 0
    stopped = datetime.now(UTC)
    eventually(lambda: second.said("leading"))
    # A lease that was not given back ends so long after its last renewal, which is at most two seconds old.
    assert lease_time(live_fleet, "acquireTime") - stopped < DURATION - MARGIN


def test_run_says_where_it_cannot_listen(live_fleet: LiveFleet, start: StartController, kfleet: Kfleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    repo = ("run", "--repo", str(live_fleet.folder))
    answer = kfleet(*repo, "--listen", f"127.0.0.1:{start().port}")
    assert answer.returncode == 1
    assert "cannot listen there: address already in use" in answer.stderr
    for address in ("nowhere", "127.0.0.1:http", "127.0.0.1:99999"):
        answer = kfleet(*repo, "--listen", address)
        assert answer.returncode == 1
        assert f"--listen {address}: is not an address\nhint:  use ADDRESS:PORT" in answer.stderr


def test_endpoint_tells_what_there_is(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    controller = start()
    assert controller.get("/nothing") == (404, "available paths: /metrics, /healthz and /readyz\n")
    eventually(lambda: controller.get("/healthz") == (200, "ok\n"))
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1)
    name = live_fleet.name
    assert controller.metric(f'kfleet_quota{{cluster="worker1",flavor="{name}",queue="{name}",resource="cpu"}}') == 9
    assert controller.metric('kfleet_cluster_reachable{cluster="worker1"}') == 1


def test_suspended_fleet_is_looked_at_and_not_written_to(live_fleet: LiveFleet, start: StartController) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    live_fleet.converge()
    before = live_fleet.quiet_versions()
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    live_fleet.write(*team_documents(live_fleet.name, {"cpu": "12"}))
    documents = [document for document in fast_yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        if document["kind"] == "Fleet":
            document.setdefault("spec", {})["suspend"] = True
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()
    controller = start("--interval", "1")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 2)
    assert controller.metric('kfleet_objects{action="hold"') == 1
    assert live_fleet.versions() == before


def test_run_does_not_fight_another_program_without_end(live_fleet: LiveFleet, start: StartController) -> None:
    """It writes less and less often, and says who changes the queue back."""
    name = live_fleet.name
    live_fleet.commit(*team_documents(name), policy={"conflicts": "take"})
    controller = start("--interval", "600")
    eventually(lambda: live_fleet.nominal_quota() == "9")
    api, path = live_fleet.api(), f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}"
    robot = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}}
    stop = {**robot, "spec": {"stopPolicy": "Hold"}}

    updates = 'kfleet_writes_total{action="update"'

    def is_written_back_four_times() -> bool:
        if api.get(path)["spec"]["stopPolicy"] != "Hold":
            api.apply_at(path, stop, manager="robot", is_forced=True, is_dry_run=False)
        return updates in controller.get("/metrics")[1] and controller.metric(updates) >= 4

    began = time.monotonic()
    eventually(is_written_back_four_times)
    # At once twice, then after 1 s and 2 s: without pauses there were five a second.
    assert time.monotonic() - began > 3
    eventually(lambda: "WrittenBack" in reasons_told(live_fleet))
    assert controller.metric('kfleet_written_back_objects{cluster="worker1",manager="robot"}') == 1
    eventually(lambda: live_fleet.queue(name)["spec"]["stopPolicy"] == "None")
