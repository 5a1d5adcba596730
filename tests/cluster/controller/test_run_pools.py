"""`kfleet run` with pools on NATS: quotas follow what is said, and silence of the bus is no silence of the pools."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import nats
import pytest

from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import node_manifest
from tests import fast_yaml
from tests.builders import announcement, observed_flavor, open_queue
from tests.cluster.capacity.nats_servers import Server, running
from tests.cluster.capacity.pool_live_fleet import LEDGER, PoolLiveFleet
from tests.cluster.controller.conftest import StartController
from tests.cluster.controller.controllers import Controller
from tests.cluster.controller.test_follow import told
from tests.cluster.controller.test_run import reasons_told
from tests.cluster.live_fleet import LiveFleet
from tests.support import eventually


@pytest.fixture
def pools(live_fleet: LiveFleet, fleet: Sandbox, publish: Callable[[str, bytes], None]) -> Iterator[PoolLiveFleet]:
    made = PoolLiveFleet(live_fleet, fleet.state.nats_url, publish)
    yield made
    made.clean()


def flavor_of(pools: PoolLiveFleet, pool: str) -> str:
    return f"{pools.name}-nats-{pool}"


def say_until(pools: PoolLiveFleet, pool: str, cpu: str, want: Callable[[], bool]) -> None:
    """A pool speaks again and again: nobody keeps a message that was sent before somebody listened."""

    def said() -> bool:
        pools.publish(f"{pools.subject}.{pool}", announcement(cpu))
        return want()

    eventually(said)


def follow(pools: PoolLiveFleet, pool: str, cpu: str) -> None:
    say_until(pools, pool, cpu, lambda: pools.quotas().get(flavor_of(pools, pool)) == cpu)


def test_run_follows_pools(pools: PoolLiveFleet, start: StartController) -> None:
    pools.commit()
    controller = start("--interval", "600")
    follow(pools, "a", "8")
    follow(pools, "b", "4")
    follow(pools, "a", "16")
    assert pools.quotas() == {flavor_of(pools, "a"): "16", flavor_of(pools, "b"): "4"}
    assert controller.metric("kfleet_observation_age_seconds{") < 60
    eventually(pools.ledger)


def test_run_writes_only_what_a_message_changed(pools: PoolLiveFleet, start: StartController) -> None:
    pools.commit()
    controller = start("--interval", "600")
    follow(pools, "a", "8")
    follow(pools, "b", "4")
    pools.live_fleet.quiet_versions()
    before = written(controller)
    pools.publish(f"{pools.subject}.a", announcement("8"))
    pools.publish(f"{pools.subject}.a", announcement("12"))
    eventually(lambda: pools.quotas()[flavor_of(pools, "a")] == "12")
    pools.live_fleet.quiet_versions()
    # The master queue: the branch borrows by its own limits, and the flavors say nothing of quotas.
    assert written(controller) == before + 1


def written(controller: Controller) -> float:
    _, text = controller.get("/metrics")
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("kfleet_writes_total{"))


def test_pool_that_falls_silent_loses_its_quota_and_keeps_its_flavor(
    pools: PoolLiveFleet, start: StartController
) -> None:
    pools.commit(poolTimeout=1, policy={"capacity": {"shrinkDelay": "1s"}})
    start("--interval", "600")
    # Often enough to be known for speaking often: who speaks seldom is given more time.
    with pools.speaking(a=announcement("8"), b=announcement("4")):
        eventually(lambda: pools.quotas() == {flavor_of(pools, "a"): "8", flavor_of(pools, "b"): "4"})
    with pools.speaking(b=announcement("4")):
        eventually(lambda: pools.quotas() == {flavor_of(pools, "a"): "0", flavor_of(pools, "b"): "4"}, 120)
        assert pools.flavor("a") is not None
        eventually(lambda: "Capacity" in reasons_told(pools.live_fleet))
    with pools.speaking(a=announcement("8"), b=announcement("4")):
        eventually(lambda: pools.quotas() == {flavor_of(pools, "a"): "8", flavor_of(pools, "b"): "4"}, 60)


def test_run_follows_nodes(live_fleet: LiveFleet, fleet: Sandbox, start: StartController) -> None:
    labels, shape = {"test": live_fleet.name}, {"cpu": "8", "memory": "32Gi", "pods": "110"}
    flavor = observed_flavor(live_fleet.name, "nodes", nodeLabels=labels)
    live_fleet.commit(flavor, open_queue(live_fleet.name, live_fleet.name, {"cpu": "100%"}))
    start("--interval", "600")

    def cpu() -> str:
        (group,) = live_fleet.queue(live_fleet.name)["spec"]["resourceGroups"]
        return str(group["flavors"][0]["resources"][0]["nominalQuota"])

    eventually(lambda: cpu() == "0")
    fleet.add_nodes("worker1", [node_manifest(live_fleet.name, shape, labels)])
    try:
        eventually(lambda: cpu() == "8")
    finally:
        live_fleet.api().delete(f"/api/v1/nodes/{live_fleet.name}")
        ledger = LEDGER.format(live_fleet.name)
        if live_fleet.api().find(ledger):
            live_fleet.api().delete(ledger)


def test_restart_of_the_controller_changes_nothing(pools: PoolLiveFleet, start: StartController) -> None:
    pools.commit()
    first = start()
    follow(pools, "a", "8")
    eventually(lambda: "8" in str((pools.ledger() or {}).get("data")))
    assert first.stop() == 0
    before = pools.live_fleet.quiet_versions()
    second = start("--interval", "1")
    eventually(lambda: second.said("leading"))
    eventually(lambda: second.metric("kfleet_reconcile_seconds_count") >= 3)
    assert pools.live_fleet.versions() == before


def test_run_and_apply_mean_the_same_objects(pools: PoolLiveFleet, start: StartController) -> None:
    pools.commit()
    controller = start()
    follow(pools, "a", "8")
    follow(pools, "b", "4")
    controller.stop()
    planned = pools.plan(a=announcement("8"), b=announcement("4"))
    assert (planned.code, planned.actions) == (0, {}), planned


def has_bad_messages(controller: Controller, least: int) -> bool:
    return controller.metric("kfleet_nats_bad_messages_total{") >= least


def test_garbage_is_reported_and_changes_nothing(pools: PoolLiveFleet, start: StartController) -> None:
    pools.commit()
    controller = start()
    follow(pools, "a", "8")
    before = pools.live_fleet.quiet_versions()
    garbage = (b"\xff\xfe", b'{"quotas": []}', b'{"quotas": {"cpu": "many"}}', b"[" * 10_000)
    for number, payload in enumerate(garbage, 1):
        pools.publish(f"{pools.subject}.a", payload)
        eventually(partial(has_bad_messages, controller, number))
    assert any(f"{pools.subject}.a" in str(line.get("problem")) for line in controller.said("notice"))
    assert pools.live_fleet.versions() == before
    follow(pools, "a", "9")


@pytest.fixture
def own_bus(live_fleet: LiveFleet, tmp_path: Path) -> Iterator[tuple[PoolLiveFleet, Server]]:
    """A fleet whose pools speak on a server of their own, which the test may stop."""
    with running(tmp_path) as server:
        made = PoolLiveFleet(
            live_fleet, f"nats://{server.address}", lambda subject, payload: send(server, subject, payload)
        )
        yield made, server
        made.clean()


def send(server: Server, subject: str, payload: bytes) -> None:
    async def connect_and_send() -> None:
        connection = await nats.connect(server.address)
        await connection.publish(subject, payload)
        await connection.drain()

    asyncio.run(connect_and_send())


def test_bus_that_goes_down_leaves_the_pools_as_they_were(
    own_bus: tuple[PoolLiveFleet, Server], start: StartController
) -> None:
    pools, server = own_bus
    pools.commit()
    controller = start("--interval", "1")
    follow(pools, "a", "8")
    eventually(pools.ledger)
    server.stop()
    eventually(lambda: any(server.address in str(line.get("problem")) for line in controller.said("notice")))
    before = pools.live_fleet.quiet_versions()
    cycles = controller.metric("kfleet_reconcile_seconds_count")
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= cycles + 3)
    assert pools.live_fleet.versions() == before
    server.start()
    follow(pools, "a", "12")


def test_bus_that_is_down_at_the_start_is_heard_when_it_comes(
    own_bus: tuple[PoolLiveFleet, Server], start: StartController
) -> None:
    pools, server = own_bus
    server.stop()
    pools.commit()
    controller = start("--interval", "1")
    eventually(lambda: any(server.address in str(line.get("problem")) for line in controller.said("notice")))
    eventually(lambda: pools.queue()["spec"]["stopPolicy"] == "Hold")
    server.start()
    follow(pools, "a", "8")
    assert pools.queue()["spec"].get("stopPolicy", "None") == "None"


@pytest.fixture
def live(pools: PoolLiveFleet, definitions: None) -> PoolLiveFleet:  # noqa: ARG001  (only has to be there)
    """A fleet whose MasterQueues lie on the cluster."""
    live_fleet = pools.live_fleet
    live_fleet.write()
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = list(fast_yaml.safe_load_all(path.read_text()))
    documents[0]["spec"]["masterQueues"] = {"fromCluster": True}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()
    return pools


def test_run_follows_master_queues_of_the_cluster(live: PoolLiveFleet, start: StartController) -> None:
    start("--interval", "5")
    live.live_fleet.api().create(live.master())
    follow(live, "a", "8")


def test_master_queue_of_the_cluster_that_cannot_be_read_is_named(live: PoolLiveFleet, start: StartController) -> None:
    wrong = live.master()
    wrong["spec"]["flavors"][0]["nominalQuota"] = {"cpu": "many"}
    live.live_fleet.api().create(wrong)
    controller = start("--interval", "5")
    eventually(lambda: told(live.live_fleet)["result"] == "failed")
    assert f"worker1/MasterQueue/{live.name}: spec.flavors[0].nominalQuota.cpu: " in told(live.live_fleet)["message"]
    assert "'many'" in controller.said("cycle failed")[0]["problem"]
