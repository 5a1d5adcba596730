"""Workers are drained while jobs run, on real clusters: every job runs to its end exactly once."""

from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import account_path, connected, secret_path
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
from tests.support import eventually, revive


def test_drained_worker_ends_its_jobs_in_peace_and_leaves(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "first")
    drained = where(wide_live_fleet, "first")
    other = other_than(drained)

    commit_fleet(wide_live_fleet, {drained: True})
    applied = wide_live_fleet.apply()
    assert applied.code == 0, applied
    assert f"waiting: {wide_live_fleet.name}-{drained}: 1 of the manager's workloads still run there" in applied.out
    assert stop_policy(wide_live_fleet, drained) == "Hold"
    assert drained in seats(wide_live_fleet)
    submit(wide_live_fleet, "second")
    assert where(wide_live_fleet, "second") == other

    end(wide_live_fleet, drained, "first")
    end(wide_live_fleet, other, "second")
    apply_until(wide_live_fleet, drained)
    assert is_complete(wide_live_fleet, "first")
    assert eventually(lambda: is_complete(wide_live_fleet, "second"))
    assert (births.of("first"), births.of("second")) == ([drained], [other])
    assert not wide_live_fleet.finds("multikueueclusters", f"{wide_live_fleet.name}-{drained}", "manager")
    assert wide_live_fleet.api("manager").find(secret_path(wide_live_fleet, drained)) is None
    assert wide_live_fleet.api(drained).find(account_path(wide_live_fleet)) is None
    assert wide_live_fleet.finds("localqueues", "main", drained, namespace=wide_live_fleet.name)
    left = wide_live_fleet.plan()
    assert (left.code, left.actions, waiting(left, wide_live_fleet)) == (0, {}, {})


def test_worker_that_is_no_longer_drained_takes_jobs_again(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, {"worker1": True})
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, "worker1")

    commit_fleet(wide_live_fleet, {"worker2": True})
    wide_live_fleet.apply()
    eventually(lambda: connected(wide_live_fleet, "worker1"))
    assert stop_policy(wide_live_fleet, "worker1") == "None"
    submit(wide_live_fleet, "back")
    assert where(wide_live_fleet, "back") == "worker1"
    end(wide_live_fleet, "worker1", "back")
    assert eventually(lambda: is_complete(wide_live_fleet, "back"))


def test_evicted_job_goes_to_another_worker_and_ends_there_once(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "moved")
    drained = where(wide_live_fleet, "moved")
    other = other_than(drained)

    commit_fleet(wide_live_fleet, {drained: "evict"})
    assert wide_live_fleet.apply().code == 0
    assert stop_policy(wide_live_fleet, drained) == "HoldAndDrain"
    apply_until(wide_live_fleet, drained)
    end(wide_live_fleet, other, "moved")
    assert eventually(lambda: is_complete(wide_live_fleet, "moved"), 60)
    # It was begun where it is not wanted any more, and ran to its end in one other place.
    assert sorted(births.of("moved")) == sorted([drained, other])


def test_last_worker_keeps_its_seat_and_the_queue_waits(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, {"worker1": True, "worker2": True})
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, "worker2")
    assert seats(wide_live_fleet) == ["worker1"]
    assert stop_policy(wide_live_fleet, "manager") == "Hold"
    wide_live_fleet.converge()
    assert seats(wide_live_fleet) == ["worker1"]


def test_worker_that_is_lost_while_it_is_drained_keeps_its_seat_until_it_is_back(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    submit(wide_live_fleet, "lost")
    drained = where(wide_live_fleet, "lost")
    commit_fleet(wide_live_fleet, {drained: True})
    assert wide_live_fleet.apply().code == 0
    wide_live_fleet.sandbox.kill(f"{drained}/kube-apiserver")
    try:
        blind = wide_live_fleet.apply()
        assert blind.code == 4, blind
        assert drained in seats(wide_live_fleet)
    finally:
        revive(wide_live_fleet.sandbox, drained)
    # Kueue itself starts a job of a lost worker again elsewhere, after a while: how often it ran is its own matter.
    assert eventually(lambda: ends_anywhere(wide_live_fleet, "lost"), 60)
    apply_until(wide_live_fleet, drained)
