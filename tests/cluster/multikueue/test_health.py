"""What `kfleet status` finds on real clusters that Kueue itself does not say, or says too kindly."""

from tests.cluster.engine.worlds import World
from tests.cluster.multikueue.drains import apply_until, commit_fleet, start_fleet
from tests.documents import KUEUE
from tests.support import eventually, revive


def test_status_finds_a_local_queue_that_workers_lack(wide_world: World) -> None:
    start_fleet(wide_world)
    name = wide_world.name
    extra = {"metadata": {"name": "extra", "namespace": name}, "spec": {"clusterQueue": f"{name}-q"}}
    wide_world.api("manager").create({"apiVersion": KUEUE, "kind": "LocalQueue", **extra})
    status = wide_world.run("status")
    assert status.code == 4, status
    for worker in ("worker1", "worker2"):
        assert f"MissingOnWorker: Jobs that come through it are sent to {name}-{worker}" in status.out


def test_status_calls_a_check_degraded_whose_worker_is_lost(wide_world: World) -> None:
    start_fleet(wide_world)
    wide_world.sandbox.kill("worker1/kube-apiserver")
    try:
        said = eventually(lambda: _status_with(wide_world, "SomeActiveClusters"), 60)
    finally:
        revive(wide_world.sandbox, "worker1")
    assert "Some worker clusters of the check cannot be used; workloads go to the others." in said


def test_status_of_a_drained_worker_is_fine(wide_world: World) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, {"worker1": True})
    wide_world.apply()
    apply_until(wide_world, "worker1")
    status = eventually(lambda: (said := wide_world.run("status")).code == 0 and said, 30)
    assert f"{wide_world.name}-worker1: ok" in status.out


def _status_with(world: World, text: str) -> str:
    said = world.run("status").out
    return said if text in said else ""
