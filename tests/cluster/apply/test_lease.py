"""One writer at a time: who holds the fleet's lease is told, and a dead holder loses it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.apply.cluster import PARALLEL
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.lease import DURATION, MARGIN, LeaseName, held_lease
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from tests.builders import flavor
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.support import eventually

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def lease_name(live_fleet: LiveFleet) -> LeaseName:
    return LeaseName(SYSTEM, live_fleet.lease)


def lease_of(live_fleet: LiveFleet, cluster: str = "worker1") -> dict[str, Any]:
    return live_fleet.api(cluster).get(lease_name(live_fleet).path)


def write_lease(live_fleet: LiveFleet, holder: str, renewed: datetime, seconds: int = 15) -> None:
    when = renewed.strftime(TIME)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": when, "renewTime": when}
    metadata = {"name": live_fleet.lease, "namespace": SYSTEM}
    live_fleet.api().create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    )


def test_apply_while_another_one_writes_names_the_holder_and_writes_nothing(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    with held_lease(live_fleet.api(), lease_name(live_fleet), "laptop-of-ada/4711/abc"):
        since = lease_of(live_fleet)["spec"]["acquireTime"][:19].replace("T", " ")
        answer = live_fleet.apply()
        assert answer.code == 3
        where = f"worker1/Lease/{SYSTEM}/{live_fleet.lease}"
        assert f"{where}: held by laptop-of-ada/4711/abc since {since} UTC" in answer.err
        assert live_fleet.members() == {}
        # Looking is free.
        assert live_fleet.plan().code == 2
    live_fleet.converge()


def test_lease_of_a_dead_holder_is_taken_over(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    write_lease(live_fleet, "dead/1/a", datetime.now(UTC) - timedelta(minutes=5), seconds=2)
    live_fleet.converge()
    spec = lease_of(live_fleet)["spec"]
    assert spec["leaseTransitions"] == 1 and not spec.get("holderIdentity")


def test_lease_of_a_holder_that_died_just_now_is_waited_for(live_fleet: LiveFleet) -> None:
    """Like that of a pod which was evicted, when the one in its place starts."""
    live_fleet.commit(flavor(live_fleet.name))
    write_lease(live_fleet, "dead/1/a", datetime.now(UTC), seconds=3)
    live_fleet.converge()
    assert not lease_of(live_fleet)["spec"].get("holderIdentity")


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(hours=2)])
def test_lease_that_is_being_renewed_is_not_taken_by_a_clock_that_is_ahead(
    live_fleet: LiveFleet, ahead: timedelta
) -> None:
    """To whoever is ahead, every renewal looks like one that was due long ago."""
    live_fleet.commit(flavor(live_fleet.name))
    write_lease(live_fleet, "ada", datetime.now(UTC) - ahead)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(0.5):
            spec = {"renewTime": (datetime.now(UTC) - ahead).strftime(TIME)}
            live_fleet.api().patch(lease_name(live_fleet).path, {"spec": spec})

    with ThreadPoolExecutor(1) as pool:
        renewing = pool.submit(renew)
        answer = live_fleet.apply()
        ended.set()
    assert renewing.exception() is None
    assert answer.code == 3 and "held by ada since" in answer.err and live_fleet.members() == {}
    assert lease_of(live_fleet)["spec"]["holderIdentity"] == "ada"


def test_waiting_for_a_dead_holder_does_not_trust_its_clock(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    write_lease(live_fleet, "dead/1/a", datetime.now(UTC) + timedelta(hours=1), seconds=3)
    live_fleet.converge()


def test_lease_that_lasts_for_hours_is_not_waited_for(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    write_lease(live_fleet, "ada", datetime.now(UTC), seconds=7200)
    answer = live_fleet.apply()
    assert answer.code == 3 and "held by ada since" in answer.err and live_fleet.members() == {}
    assert "a dead holder loses it 7200 s after its last renewal" in answer.err


def test_waiting_for_a_lease_ends_where_the_login_is_not_accepted(live_fleet: LiveFleet) -> None:
    known = live_fleet.api().access
    expired = ApiServer(ClusterName("worker1"), ClusterLogin(known.server, known.ca, token="of-nobody"))  # noqa: S106
    ended = threading.Event()
    end = threading.Timer(20, ended.set)
    end.start()
    with pytest.raises(ClusterError, match="401"), held_lease(expired, lease_name(live_fleet), "me", ended):
        raise AssertionError("nobody can have this lease")
    end.cancel()
    expired.close()


def test_lease_is_given_back_also_after_a_refusal(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    live_fleet.converge()
    live_fleet.commit()
    assert live_fleet.apply().code == 3
    assert not lease_of(live_fleet)["spec"].get("holderIdentity")


def test_lease_of_a_fleet_with_a_manager_lies_there(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(flavor(wide_live_fleet.name))
    wide_live_fleet.converge()
    assert not lease_of(wide_live_fleet, "manager")["spec"].get("holderIdentity")
    assert wide_live_fleet.api("worker1").find(lease_name(wide_live_fleet).path) is None


def test_fleet_whose_manager_cannot_be_reached_is_not_written(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(flavor(wide_live_fleet.name))
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: manager", "context: nowhere"))
    wide_live_fleet.commit_all()
    answer = wide_live_fleet.apply()
    assert answer.code == 1 and "without its lease kfleet writes to no cluster" in answer.err
    assert wide_live_fleet.members("worker1") == {}


LOGIN_PAGE = Fault(Deed.ANSWER, "/leases", "POST|PUT", status=200, page='{"kind": "Login", "metadata": {}}', times=3)
BROKEN = Fault(Deed.ANSWER, "/leases/", "GET|PUT", status=500, times=3)


@pytest.mark.parametrize("fault", [BROKEN, LOGIN_PAGE], ids=["500", "200 of a proxy"])
def test_renewals_that_fail_do_not_cost_the_lease(live_fleet: LiveFleet, fault: Fault) -> None:
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        port = live_fleet.through(proxy)
        with held_lease(port, lease_name(live_fleet), "me") as lost:
            first = lease_of(live_fleet)["spec"]["renewTime"]
            proxy.inject(fault)
            eventually(lambda: lost.is_set() or lease_of(live_fleet)["spec"]["renewTime"] != first)
            assert not lost.is_set()
        port.close()


def test_lease_that_only_a_proxy_has_taken_is_not_held(live_fleet: LiveFleet) -> None:
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        port = live_fleet.through(proxy)
        proxy.inject(LOGIN_PAGE)
        with (
            pytest.raises(ClusterError, match="does not answer like an API server"),
            held_lease(port, lease_name(live_fleet), "me"),
        ):
            raise AssertionError("no server has this lease")
        port.close()
    assert live_fleet.api().find(lease_name(live_fleet).path) is None


def test_lease_is_renewed_while_everything_else_is_slow(live_fleet: LiveFleet) -> None:
    """As many requests as there ever are at once, none of which is answered for a while."""
    with proxied(live_fleet.sandbox, "worker1") as proxy, ThreadPoolExecutor(PARALLEL) as pool:
        port = live_fleet.through(proxy)
        with held_lease(port, lease_name(live_fleet), "me") as lost:
            proxy.inject(Fault(Deed.HOLD, "/resourceflavors", "GET", times=PARALLEL))
            asked = [pool.submit(port.find, f"{KUEUE_ROOT}/resourceflavors/none") for _ in range(PARALLEL)]
            assert proxy.reached.wait(60)
            time.sleep((DURATION - MARGIN).total_seconds() + 2)
            assert not lost.is_set()
            proxy.let_go()
            assert [answer.result() for answer in asked] == [None] * PARALLEL
        port.close()


def test_collection_that_hangs_does_not_cost_the_lease(live_fleet: LiveFleet) -> None:
    """Also not while it is left alone because there was no answer: the lease has a connection of its own."""
    secrets = "/api/v1/secrets"
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        port = live_fleet.through(proxy, timeout=timedelta(seconds=4))
        with held_lease(port, lease_name(live_fleet), "me") as lost:
            proxy.inject(Fault(Deed.HOLD, secrets, "GET", times=10))
            with pytest.raises(ClusterError, match="no answer in time"):
                port.get(secrets)
            last = lease_of(live_fleet)["spec"]["renewTime"]
            eventually(lambda: lease_of(live_fleet)["spec"]["renewTime"] != last)
            with pytest.raises(ClusterError, match="not retried yet"):
                port.get(secrets)
            assert not lost.is_set() and port.find(f"{KUEUE_ROOT}/resourceflavors/none") is None
            proxy.let_go()
        port.close()
    assert not lease_of(live_fleet)["spec"].get("holderIdentity")


def test_renewal_that_hangs_does_not_cost_the_lease(live_fleet: LiveFleet) -> None:
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        port = live_fleet.through(proxy)
        with held_lease(port, lease_name(live_fleet), "me") as lost:
            proxy.inject(Fault(Deed.HOLD_ANSWER, "/leases/", "GET|PUT"))
            assert proxy.reached.wait(60)
            last = lease_of(live_fleet)["spec"]["renewTime"]
            eventually(lambda: lost.is_set() or lease_of(live_fleet)["spec"]["renewTime"] != last)
            assert not lost.is_set()
            proxy.let_go()
        port.close()
    assert not lease_of(live_fleet)["spec"].get("holderIdentity")
