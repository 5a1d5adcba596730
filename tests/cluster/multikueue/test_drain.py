"""Workers are drained while jobs run, on real clusters: every job runs to its end exactly once."""

from tests.cluster.engine.worlds import World
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
from tests.cluster.multikueue.worlds import account_path, connected, secret_path
from tests.support import eventually, revive


def test_drained_worker_ends_its_jobs_in_peace_and_leaves(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "first")
    drained = where(wide_world, "first")
    other = other_than(drained)

    commit_fleet(wide_world, {drained: True})
    applied = wide_world.apply()
    assert applied.code == 0, applied
    assert f"waiting: {wide_world.name}-{drained}: 1 of the manager's workloads still run there" in applied.out
    assert stop_policy(wide_world, drained) == "Hold"
    assert drained in seats(wide_world)
    submit(wide_world, "second")
    assert where(wide_world, "second") == other

    end(wide_world, drained, "first")
    end(wide_world, other, "second")
    apply_until(wide_world, drained)
    assert is_complete(wide_world, "first")
    assert eventually(lambda: is_complete(wide_world, "second"))
    assert (births.of("first"), births.of("second")) == ([drained], [other])
    assert not wide_world.finds("multikueueclusters", f"{wide_world.name}-{drained}", "manager")
    assert wide_world.api("manager").find(secret_path(wide_world, drained)) is None
    assert wide_world.api(drained).find(account_path(wide_world)) is None
    assert wide_world.finds("localqueues", "main", drained, namespace=wide_world.name)
    left = wide_world.plan()
    assert (left.code, left.actions, waiting(left, wide_world)) == (0, {}, {})


def test_worker_that_is_no_longer_drained_takes_jobs_again(wide_world: World) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, {"worker1": True})
    wide_world.apply()
    apply_until(wide_world, "worker1")

    commit_fleet(wide_world, {"worker2": True})
    wide_world.apply()
    eventually(lambda: connected(wide_world, "worker1"))
    assert stop_policy(wide_world, "worker1") == "None"
    submit(wide_world, "back")
    assert where(wide_world, "back") == "worker1"
    end(wide_world, "worker1", "back")
    assert eventually(lambda: is_complete(wide_world, "back"))


def test_evicted_job_goes_to_another_worker_and_ends_there_once(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "moved")
    drained = where(wide_world, "moved")
    other = other_than(drained)

    commit_fleet(wide_world, {drained: "evict"})
    assert wide_world.apply().code == 0
    assert stop_policy(wide_world, drained) == "HoldAndDrain"
    apply_until(wide_world, drained)
    end(wide_world, other, "moved")
    assert eventually(lambda: is_complete(wide_world, "moved"), 60)
    # It was begun where it is not wanted any more, and ran to its end in one other place.
    assert sorted(births.of("moved")) == sorted([drained, other])


def test_last_worker_keeps_its_seat_and_the_queue_waits(wide_world: World) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, {"worker1": True, "worker2": True})
    wide_world.apply()
    apply_until(wide_world, "worker2")
    assert seats(wide_world) == ["worker1"]
    assert stop_policy(wide_world, "manager") == "Hold"
    wide_world.converge()
    assert seats(wide_world) == ["worker1"]


def test_worker_that_is_lost_while_it_is_drained_keeps_its_seat_until_it_is_back(wide_world: World) -> None:
    start_fleet(wide_world)
    submit(wide_world, "lost")
    drained = where(wide_world, "lost")
    commit_fleet(wide_world, {drained: True})
    assert wide_world.apply().code == 0
    wide_world.sandbox.kill(f"{drained}/kube-apiserver")
    try:
        blind = wide_world.apply()
        assert blind.code == 4, blind
        assert drained in seats(wide_world)
    finally:
        revive(wide_world.sandbox, drained)
    # Kueue itself starts a job of a lost worker again elsewhere, after a while: how often it ran is its own matter.
    assert eventually(lambda: ends_anywhere(wide_world, "lost"), 60)
    apply_until(wide_world, drained)
