"""`kfleet run`: follows git and the clusters, writes what changed and nothing else, and one replica at a time."""

import json
import time
from datetime import datetime, timedelta

import yaml

from tests.cluster.engine.worlds import SYSTEM, World
from tests.cluster.run.conftest import StartController
from tests.documents import Document, flavor, queue, tenant
from tests.support import eventually


def small_fleet(name: str, cpu: str = "9") -> tuple[Document, ...]:
    return flavor(name), queue(name, name, cpu=cpu), tenant(name, name)


def quota(world: World) -> str:
    spec = world.queue(world.name)["spec"]
    return str(spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def reasons_told(world: World) -> set[str]:
    """The reasons of Events about the fleet."""
    events = world.api().list("/api/v1/namespaces/kueue-system/events")
    return {event["reason"] for event in events if event["involvedObject"]["name"] == f"kfleet-{world.name}"}


def test_run_follows_commits(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    controller = start()
    eventually(lambda: quota(world) == "9")
    eventually(lambda: controller.get("/readyz")[0] == 200)
    world.commit(*small_fleet(world.name, cpu="12"))
    eventually(lambda: quota(world) == "12")
    assert world.plan().code == 0
    assert controller.stop() == 0
    assert controller.said("stopped")


def test_run_mends_drift_without_waiting_for_its_interval(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    controller = start("--interval", "600")
    eventually(lambda: world.finds("localqueues", "main", namespace=world.name))
    world.kubectl("delete", "localqueue", "-n", world.name, "main")
    eventually(lambda: world.finds("localqueues", "main", namespace=world.name))
    patch = [{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "1"}]
    world.kubectl("patch", "clusterqueue", world.name, "--type=json", "-p", json.dumps(patch))
    eventually(lambda: quota(world) == "9")
    eventually(lambda: 'kfleet_writes_total{action="update"' in controller.get("/metrics")[1])
    assert controller.metric('kfleet_writes_total{action="update"') == 1


def test_run_that_has_nothing_to_do_writes_nothing(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    controller = start("--interval", "1")
    eventually(lambda: quota(world) == "9")
    before = world.quiet_versions()
    cycles = controller.metric("kfleet_reconcile_seconds_count")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= cycles + 3)
    assert world.versions() == before


def test_run_keeps_the_last_good_revision(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    controller = start("--interval", "1")
    eventually(lambda: quota(world) == "9")
    good = world.queue(world.name)["metadata"]["generation"]
    world.commit(*small_fleet(world.name, cpu="a lot"))
    eventually(lambda: controller.said("revision")[-1].get("problem"))
    problem = controller.said("revision")[-1]["problem"]
    assert "a lot" in problem and "fleet.yaml" in problem
    eventually(lambda: "RevisionRefused" in reasons_told(world))
    assert quota(world) == "9"
    assert world.queue(world.name)["metadata"]["generation"] == good
    world.commit(*small_fleet(world.name, cpu="11"))
    eventually(lambda: quota(world) == "11")


def test_run_that_is_refused_says_so_and_counts_no_writes(world: World, start: StartController) -> None:
    policy = {"prune": {"maxDeletes": 0}}
    world.commit(*small_fleet(world.name), policy=policy)
    controller = start("--interval", "1")
    eventually(lambda: world.finds("localqueues", "main", namespace=world.name))
    world.commit(*small_fleet(world.name)[:2], policy=policy)
    eventually(lambda: "DeletesRefused" in reasons_told(world))
    eventually(lambda: controller.said("cycle")[-1]["refusals"] == 1)
    assert controller.said("cycle")[-1]["writes"] == 0
    assert world.finds("localqueues", "main", namespace=world.name)


def test_second_replica_waits_and_takes_over_within_15_seconds(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    first = start()
    eventually(lambda: first.said("leading"))
    eventually(lambda: quota(world) == "9")
    second = start()
    eventually(lambda: second.said("waiting for the lease"))
    time.sleep(2)
    assert not second.said("leading")
    assert (first.metric("kfleet_leader"), second.metric("kfleet_leader")) == (1, 0)
    first.kill()
    last_sign = lease_time(world, "renewTime")
    world.commit(*small_fleet(world.name, cpu="13"))
    eventually(lambda: second.said("leading"))
    assert lease_time(world, "acquireTime") - last_sign < timedelta(seconds=15)
    eventually(lambda: quota(world) == "13")


def lease_time(world: World, field: str) -> datetime:
    lease = world.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{world.lease}")
    return datetime.fromisoformat(lease["spec"][field])


def test_replica_that_stops_gives_its_place_back_at_once(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    first = start()
    eventually(lambda: first.said("leading"))
    second = start()
    eventually(lambda: second.said("waiting for the lease"))
    assert first.stop() == 0
    eventually(lambda: second.said("leading"), 5)


def test_run_says_where_it_cannot_listen(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    first = start()
    answer = world.run("run", "--listen", f"127.0.0.1:{first.port}")
    assert answer.code == 1
    assert "cannot listen there: address already in use" in answer.err
    for address in ("nowhere", "127.0.0.1:http", "127.0.0.1:99999"):
        answer = world.run("run", "--listen", address)
        assert answer.code == 1
        assert f"--listen {address}: is no address\nhint:  say ADDRESS:PORT" in answer.err


def test_endpoint_tells_what_there_is(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    controller = start()
    assert controller.get("/nothing") == (404, "there are /metrics, /healthz and /readyz\n")
    eventually(lambda: controller.get("/healthz") == (200, "ok\n"))
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1)
    name = world.name
    assert controller.metric(f'kfleet_quota{{cluster="worker1",flavor="{name}",queue="{name}",resource="cpu"}}') == 9
    assert controller.metric('kfleet_cluster_reachable{cluster="worker1"}') == 1


def test_suspended_fleet_is_looked_at_and_not_written_to(world: World, start: StartController) -> None:
    world.commit(*small_fleet(world.name))
    world.converge()
    before = world.quiet_versions()
    path = world.folder / "fleet" / "fleet.yaml"
    world.write(*small_fleet(world.name, cpu="12"))
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    for document in documents:
        if document["kind"] == "Fleet":
            document.setdefault("spec", {})["suspend"] = True
    path.write_text(yaml.safe_dump_all(documents))
    world.commit_all()
    controller = start("--interval", "1")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 2)
    assert controller.metric('kfleet_objects{action="hold"') == 1
    assert world.versions() == before
