"""One writer at a time: who holds the fleet's lease is told, and a dead holder loses it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.apply.cluster import PARALLEL
from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.errors import ClusterError
from reconciler.lease import DURATION, MARGIN, LeaseName, held_lease
from reconciler.objects import ClusterName
from tests.cluster.engine.worlds import KUEUE_ROOT, SYSTEM, World
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.documents import flavor
from tests.support import eventually

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def lease_name(world: World) -> LeaseName:
    return LeaseName(SYSTEM, world.lease)


def lease_of(world: World, cluster: str = "worker1") -> dict[str, Any]:
    return world.api(cluster).get(lease_name(world).path)


def write_lease(world: World, holder: str, renewed: datetime, seconds: int = 15) -> None:
    when = renewed.strftime(TIME)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": when, "renewTime": when}
    metadata = {"name": world.lease, "namespace": SYSTEM}
    world.api().create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def test_apply_while_another_one_writes_names_the_holder_and_writes_nothing(world: World) -> None:
    world.commit(flavor(world.name))
    with held_lease(world.api(), lease_name(world), "laptop-of-ada/4711/abc"):
        since = lease_of(world)["spec"]["acquireTime"][:19].replace("T", " ")
        answer = world.apply()
        assert answer.code == 3
        where = f"worker1/Lease/{SYSTEM}/{world.lease}"
        assert f"{where}: held by laptop-of-ada/4711/abc since {since} UTC" in answer.err
        assert world.members() == {}
        # Looking is free.
        assert world.plan().code == 2
    world.converge()


def test_lease_of_a_dead_holder_is_taken_over(world: World) -> None:
    world.commit(flavor(world.name))
    write_lease(world, "dead/1/a", datetime.now(UTC) - timedelta(minutes=5))
    world.converge()
    spec = lease_of(world)["spec"]
    assert spec["leaseTransitions"] == 1 and not spec.get("holderIdentity")


def test_lease_of_a_holder_that_died_just_now_is_waited_for(world: World) -> None:
    """Like that of a pod which was evicted, when the one in its place starts."""
    world.commit(flavor(world.name))
    write_lease(world, "dead/1/a", datetime.now(UTC))
    world.converge()
    assert not lease_of(world)["spec"].get("holderIdentity")


def test_lease_that_is_being_renewed_is_not_taken_by_a_clock_that_is_ahead(world: World) -> None:
    """To whoever is a minute ahead, every renewal looks like one that was due long ago."""
    world.commit(flavor(world.name))
    ahead = timedelta(minutes=1)
    write_lease(world, "ada", datetime.now(UTC) - ahead)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(0.5):
            spec = {"renewTime": (datetime.now(UTC) - ahead).strftime(TIME)}
            world.api().patch(lease_name(world).path, {"spec": spec})

    with ThreadPoolExecutor(1) as pool:
        renewing = pool.submit(renew)
        answer = world.apply()
        ended.set()
    assert renewing.exception() is None
    assert answer.code == 3 and "held by ada since" in answer.err and world.members() == {}
    assert lease_of(world)["spec"]["holderIdentity"] == "ada"


def test_waiting_for_a_dead_holder_does_not_trust_its_clock(world: World) -> None:
    world.commit(flavor(world.name))
    write_lease(world, "dead/1/a", datetime.now(UTC) + timedelta(hours=1))
    world.converge()


def test_lease_that_lasts_for_hours_is_not_waited_for(world: World) -> None:
    world.commit(flavor(world.name))
    write_lease(world, "ada", datetime.now(UTC), seconds=7200)
    answer = world.apply()
    assert answer.code == 3 and "held by ada since" in answer.err and world.members() == {}
    assert "a dead holder loses it 7200 s after its last sign of life" in answer.err


def test_waiting_for_a_lease_ends_where_the_login_is_not_accepted(world: World) -> None:
    known = world.api().access
    expired = ApiServer(ClusterName("worker1"), Access(known.server, known.ca, token="of-nobody"))  # noqa: S106
    ended = threading.Event()
    end = threading.Timer(20, ended.set)
    end.start()
    with pytest.raises(ClusterError, match="401"), held_lease(expired, lease_name(world), "me", ended):
        raise AssertionError("nobody can have this lease")
    end.cancel()
    expired.close()


def test_lease_is_given_back_also_after_a_refusal(world: World) -> None:
    world.commit(flavor(world.name))
    world.converge()
    world.commit()
    assert world.apply().code == 3
    assert not lease_of(world)["spec"].get("holderIdentity")


def test_lease_of_a_fleet_with_a_manager_lies_there(wide_world: World) -> None:
    wide_world.commit(flavor(wide_world.name))
    wide_world.converge()
    assert not lease_of(wide_world, "manager")["spec"].get("holderIdentity")
    assert wide_world.api("worker1").find(lease_name(wide_world).path) is None


def test_fleet_whose_manager_cannot_be_reached_is_not_written(wide_world: World) -> None:
    wide_world.commit(flavor(wide_world.name))
    path = wide_world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: manager", "context: nowhere"))
    wide_world.commit_all()
    answer = wide_world.apply()
    assert answer.code == 1 and "without its lease nothing is written to any cluster" in answer.err
    assert wide_world.members("worker1") == {}


def test_renewals_that_fail_do_not_cost_the_lease(world: World) -> None:
    with proxied(world.sandbox, "worker1") as proxy:
        port = world.through(proxy)
        with held_lease(port, lease_name(world), "me") as lost:
            first = lease_of(world)["spec"]["renewTime"]
            proxy.inject(Fault(Deed.ANSWER, "/leases/", "GET|PUT", status=500, times=3))
            eventually(lambda: lost.is_set() or lease_of(world)["spec"]["renewTime"] != first)
            assert not lost.is_set()
        port.close()


def test_lease_is_renewed_while_everything_else_is_slow(world: World) -> None:
    """As many requests as there ever are at once, none of which is answered for a while."""
    with proxied(world.sandbox, "worker1") as proxy, ThreadPoolExecutor(PARALLEL) as pool:
        port = world.through(proxy)
        with held_lease(port, lease_name(world), "me") as lost:
            proxy.inject(Fault(Deed.HOLD, "/resourceflavors", "GET", times=PARALLEL))
            asked = [pool.submit(port.find, f"{KUEUE_ROOT}/resourceflavors/none") for _ in range(PARALLEL)]
            assert proxy.reached.wait(60)
            time.sleep((DURATION - MARGIN).total_seconds() + 2)
            assert not lost.is_set()
            proxy.let_go()
            assert [answer.result() for answer in asked] == [None] * PARALLEL
        port.close()
