"""Workers leave the spec while jobs run, on real clusters: nothing runs twice, and nothing stays behind."""

from typing import Any

from reconciler.ownership.applyset import ADDRESSES
from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    end,
    ends_anywhere,
    is_complete,
    other_than,
    seats,
    start_fleet,
    stop_policy,
    submit,
    waiting,
    where,
)
from tests.cluster.multikueue.worlds import account_path, connected, secret_path, token
from tests.support import eventually, revive


def parent(world: World, cluster: str) -> dict[str, Any] | None:
    return world.api(cluster).find(world.set_name.path)


def remembers(world: World, worker: str) -> bool:
    annotations = (parent(world, "manager") or {})["metadata"]["annotations"]
    return f'"{world.name}-{worker}"' in annotations[ADDRESSES]


def test_worker_that_left_the_spec_is_held_waited_for_and_tidied_up(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "first")
    gone = where(wide_world, "first")
    other = other_than(gone)

    commit_fleet(wide_world, without=[gone])
    applied = wide_world.apply()
    assert applied.code == 0, applied
    assert f"waiting: {wide_world.name}-{gone}: 1 of the manager's workloads still run there" in applied.out
    assert stop_policy(wide_world, gone) == "Hold"
    assert seats(wide_world) == [other, gone]
    submit(wide_world, "second")
    assert where(wide_world, "second") == other
    held = wide_world.plan()
    assert set(held.actions.values()) == {"hold"}
    assert not is_complete(wide_world, "first")
    replace_revoked_login(wide_world, gone)

    end(wide_world, gone, "first")
    end(wide_world, other, "second")
    apply_until(wide_world, gone)
    assert is_complete(wide_world, "first")
    assert eventually(lambda: is_complete(wide_world, "second"))
    assert (births.of("first"), births.of("second")) == ([gone], [other])
    tidy_up(wide_world, gone)


def replace_revoked_login(world: World, worker: str) -> None:
    """A worker on its way out needs its login to the end, as much as any other."""
    old = token(world, worker)
    world.api(worker).delete(account_path(world))
    # A server remembers for a moment whom it let in.
    eventually(lambda: world.apply().code == 0 and token(world, worker) != old, 60)
    eventually(lambda: connected(world, worker), 60)


def tidy_up(world: World, gone: str) -> None:
    """Apply until nothing of the fleet is left on a worker, nor of the worker on the manager."""
    eventually(lambda: world.apply().code == 0 and parent(world, gone) is None, 60)
    assert world.members(gone) == {}
    assert world.api(gone).find(f"/api/v1/namespaces/{world.name}")
    assert not world.finds("multikueueclusters", f"{world.name}-{gone}", "manager")
    assert world.api("manager").find(secret_path(world, gone)) is None
    world.converge()
    assert not remembers(world, gone)


def test_worker_that_gets_another_name_is_no_second_cluster_while_a_job_runs_there(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "first")
    old = where(wide_world, "first")
    path = wide_world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace(f"name: {wide_world.name}-{old}\n", f"name: {wide_world.name}-far\n"))
    wide_world.commit_all()

    applied = wide_world.apply()
    assert applied.code == 3, applied
    assert f"it calls itself {wide_world.name}-{old}" in applied.out
    assert wide_world.api("manager").find(secret_path(wide_world, "far")) is None
    assert wide_world.run("credentials rotate").code == 3
    assert wide_world.api("manager").find(secret_path(wide_world, "far")) is None

    end(wide_world, old, "first")
    eventually(lambda: is_complete(wide_world, "first"), 60)
    assert births.of("first") == [old]
    # When nothing of the old name is left, the new one comes in.
    eventually(lambda: wide_world.apply().code == 0, 120)
    eventually(lambda: connected(wide_world, "far"), 60)


def test_worker_that_comes_back_while_it_leaves_takes_jobs_again(wide_world: World) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, without=["worker1"])
    assert wide_world.apply().code == 0
    assert stop_policy(wide_world, "worker1") == "Hold"
    commit_fleet(wide_world)
    wide_world.converge()
    assert stop_policy(wide_world, "worker1") == "None"
    assert seats(wide_world) == ["worker1", "worker2"]


def test_worker_that_left_and_cannot_be_reached_keeps_its_seat_while_a_job_runs_there(wide_world: World) -> None:
    start_fleet(wide_world)
    submit(wide_world, "far")
    gone = where(wide_world, "far")
    commit_fleet(wide_world, without=[gone])
    wide_world.sandbox.kill(f"{gone}/kube-apiserver")
    try:
        blind = wide_world.apply()
        assert blind.code == 0, blind
        assert gone in seats(wide_world)
        assert "1 of the manager's workloads still run there" in waiting(wide_world.plan(), wide_world)[gone]
    finally:
        revive(wide_world.sandbox, gone)
    # Kueue itself starts a job of a lost worker again elsewhere, after a while: how often it ran is its own matter.
    assert eventually(lambda: ends_anywhere(wide_world, "far"), 60)
    apply_until(wide_world, gone)
    tidy_up(wide_world, gone)


def test_worker_that_left_and_cannot_be_reached_is_let_go_and_tidied_up_when_it_is_back(wide_world: World) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, without=["worker1"])
    wide_world.sandbox.kill("worker1/kube-apiserver")
    try:
        blind = wide_world.apply()
        assert blind.code == 0, blind
        assert seats(wide_world) == ["worker2"]
        assert not wide_world.finds("multikueueclusters", f"{wide_world.name}-worker1", "manager")
        forget = f"kubectl -n kueue-system annotate configmap {wide_world.set_name.name} {ADDRESSES}-"
        assert forget in waiting(wide_world.plan(), wide_world)["worker1"]
        assert remembers(wide_world, "worker1")
    finally:
        revive(wide_world.sandbox, "worker1")
    assert wide_world.members("worker1")
    tidy_up(wide_world, "worker1")


def test_worker_that_a_queue_names_no_more_keeps_its_seat_while_a_job_runs_there(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "inner")
    gone = where(wide_world, "inner")
    other = other_than(gone)
    commit_fleet(wide_world, clusters={"names": [f"{wide_world.name}-{other}"]})
    assert wide_world.apply().code == 0
    assert stop_policy(wide_world, gone) == "Hold"
    assert seats(wide_world) == [other, gone]
    assert wide_world.finds("localqueues", "main", gone, namespace=wide_world.name)
    end(wide_world, gone, "inner")
    apply_until(wide_world, gone)
    assert is_complete(wide_world, "inner")
    assert births.of("inner") == [gone]
    wide_world.converge()
    assert wide_world.api(gone).find(f"{KUEUE_ROOT}/clusterqueues/{wide_world.name}-q") is None
