"""What `kfleet status` finds on real clusters that Kueue itself does not say, or says too kindly."""

from tests.builders import local_queue
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.drains import apply_until, commit_fleet, start_fleet
from tests.support import eventually, revive


def test_status_finds_a_local_queue_that_workers_lack(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    name = wide_live_fleet.name
    wide_live_fleet.api("manager").create(local_queue("extra", name, f"{name}-q"))
    status = wide_live_fleet.run("status")
    assert status.code == 4, status
    for worker in ("worker1", "worker2"):
        assert f"MissingOnWorker: MultiKueue dispatches its jobs to {name}-{worker}" in status.out


def test_status_calls_a_check_degraded_whose_worker_is_lost(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    wide_live_fleet.sandbox.kill("worker1/kube-apiserver")
    try:
        said = eventually(lambda: _status_with(wide_live_fleet, "SomeActiveClusters"), 60)
    finally:
        revive(wide_live_fleet.sandbox, "worker1")
    assert "Some worker clusters of the check cannot be used; workloads go to the others." in said


def test_status_of_a_drained_worker_is_fine(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, {"worker1": True})
    wide_live_fleet.apply()
    apply_until(wide_live_fleet, "worker1")
    status = eventually(lambda: (said := wide_live_fleet.run("status")).code == 0 and said, 30)
    assert f"{wide_live_fleet.name}-worker1: ok" in status.out


def _status_with(live_fleet: LiveFleet, text: str) -> str:
    said = live_fleet.run("status").out
    return said if text in said else ""
