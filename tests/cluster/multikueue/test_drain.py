"""Workers are drained while jobs run, on real clusters: every job runs to its end exactly once."""

from reconciler.kueue.reading import ORIGIN
from reconciler.kueue.workloads import has_begun
from tests import fast_yaml
from tests.builders import flavor, main_job, main_tenant, open_queue, workload
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import account_path, connected, secret_path
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    copies,
    end,
    ends_anywhere,
    is_complete,
    memberships,
    other_than,
    running,
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
    assert drained in memberships(wide_live_fleet)
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


def test_evicted_job_does_not_start_again_where_it_was_when_the_worker_comes_back(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "moved")
    drained = where(wide_live_fleet, "moved")
    other = other_than(drained)
    name = wide_live_fleet.name
    eventually(lambda: wide_live_fleet.queue(f"{name}-q", drained)["status"]["reservingWorkloads"] > 0)
    commit_fleet(wide_live_fleet, {drained: "evict"})
    planned = wide_live_fleet.plan()
    # An older Kueue makes a second workload of the job, which is of nobody else.
    *_, note = planned.changes[f"{name}-{drained}/ClusterQueue/{name}-q"]["notes"]
    assert note.startswith(f"evicts 1 workloads ({name}/job-moved-") and note.endswith("on other workers")
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, drained)
    assert not [copy for copy in copies(wide_live_fleet, drained) if has_begun(copy)]
    eventually(lambda: running(wide_live_fleet, other, "moved"), 60)

    commit_fleet(wide_live_fleet)
    eventually(lambda: wide_live_fleet.apply().code == 0 and stop_policy(wide_live_fleet, drained) == "None")
    assert copies(wide_live_fleet, drained) == []
    eventually(lambda: connected(wide_live_fleet, drained))
    end(wide_live_fleet, other, "moved")
    assert eventually(lambda: is_complete(wide_live_fleet, "moved"), 60)
    assert sorted(births.of("moved")) == sorted([drained, other])


def test_copy_that_was_left_on_a_worker_keeps_its_queue_closed_until_it_is_gone(wide_live_fleet: LiveFleet) -> None:
    """As an older kfleet left it there, or a worker that could not be reached for a while."""
    name = wide_live_fleet.name
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, {"worker1": True})
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, "worker1")
    left = workload("left", name)
    left["metadata"]["labels"] = {ORIGIN: "multikueue"}
    wide_live_fleet.api("worker1").create(left)

    commit_fleet(wide_live_fleet)
    change = wide_live_fleet.plan().changes[f"{name}-worker1/ClusterQueue/{name}-q"]
    assert change["action"] == "hold" and change["notes"][0].startswith("1 workloads that the manager runs elsewhere")
    assert wide_live_fleet.apply().code == 0
    assert stop_policy(wide_live_fleet, "worker1") == "Hold"
    assert "worker1" in memberships(wide_live_fleet)
    # The manager's Kueue, connected again, finds nothing that it belongs to.
    eventually(lambda: not copies(wide_live_fleet, "worker1"), 90)
    wide_live_fleet.converge()
    assert stop_policy(wide_live_fleet, "worker1") == "None"


def test_local_jobs_that_a_drain_evicts_are_named(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    documents = (
        flavor(f"{name}-cpu"),
        open_queue(f"{name}-q", f"{name}-cpu", clusters={"names": [f"{name}-worker1"]}),
        main_tenant(name, f"{name}-q"),
    )
    wide_live_fleet.commit(*documents)
    wide_live_fleet.converge()
    wide_live_fleet.api("worker1").create(main_job("local", name))
    eventually(lambda: wide_live_fleet.queue(f"{name}-q", "worker1")["status"]["reservingWorkloads"] == 1)
    wide_live_fleet.write(*documents)
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    every = [*fast_yaml.safe_load_all(path.read_text())]
    for entry in every:
        if entry["metadata"]["name"] == f"{name}-worker1":
            entry["spec"]["drain"] = "evict"
    path.write_text(fast_yaml.safe_dump_all(every))
    wide_live_fleet.commit_all()
    (note,) = wide_live_fleet.plan().changes[f"{name}-worker1/ClusterQueue/{name}-q"]["notes"]
    assert note.startswith(f"evicts 1 workloads ({name}/job-local-")
    assert note.endswith("which start again when the queue is resumed")


def test_last_worker_stays_a_member_and_the_queue_waits(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, {"worker1": True, "worker2": True})
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, "worker2")
    assert memberships(wide_live_fleet) == ["worker1"]
    assert stop_policy(wide_live_fleet, "manager") == "Hold"
    wide_live_fleet.converge()
    assert memberships(wide_live_fleet) == ["worker1"]


def test_worker_that_is_lost_while_it_is_drained_stays_a_member_until_it_is_back(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    submit(wide_live_fleet, "lost")
    drained = where(wide_live_fleet, "lost")
    commit_fleet(wide_live_fleet, {drained: True})
    assert wide_live_fleet.apply().code == 0
    wide_live_fleet.sandbox.kill(f"{drained}/kube-apiserver")
    try:
        blind = wide_live_fleet.apply()
        assert blind.code == 4, blind
        assert drained in memberships(wide_live_fleet)
    finally:
        revive(wide_live_fleet.sandbox, drained)
    # Kueue itself starts a job of a lost worker again elsewhere, after a while: how often it ran is its own matter.
    assert eventually(lambda: ends_anywhere(wide_live_fleet, "lost"), 60)
    apply_until(wide_live_fleet, drained)
