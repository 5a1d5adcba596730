"""One writer at a time: who holds the fleet's lease is told, and a dead holder loses it."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.errors import ClusterError
from reconciler.lease import LeaseName, held_lease
from reconciler.objects import ClusterName
from tests.engine.documents import flavor
from tests.engine.worlds import SYSTEM, World

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def lease_name(world: World) -> LeaseName:
    return LeaseName(SYSTEM, world.lease)


def lease_of(world: World, cluster: str = "worker1") -> dict[str, Any]:
    return world.api(cluster).get(lease_name(world).path)


def write_lease(world: World, holder: str, renewed: datetime) -> None:
    when = renewed.strftime(TIME)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": when, "renewTime": when}
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
