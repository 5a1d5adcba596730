"""Only one writer at a time, also when both start at once, and when the lease is lost in the middle."""

import time
from collections.abc import Callable
from pathlib import Path

from reconciler.clients.lease import DURATION
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults import leases
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.cluster.faults.runs import applying, assert_as_wanted, assert_converges, finished, run, told
from tests.cluster.faults.shapes import Shape, commit, members
from tests.support import eventually

QUEUES = "/clusterqueues/"
HELD_WRITES = Fault(Deed.HOLD, QUEUES, times=1000)

ProxyOf = Callable[[str], FaultProxy]


def test_second_apply_ends_with_the_name_of_the_first(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    proxy.inject(HELD_WRITES)
    with applying(repo) as process:
        assert proxy.reached.wait(120)
        second = run("apply", repo)
        assert second.returncode == 3, told(second)
        assert f"held by {leases.holder_of(faulty, shape)} since " in second.stderr
        assert f"/{process.pid}/" in second.stderr
        proxy.let_go()
        first = finished(process)
    assert first.returncode == 0, told(first)
    assert leases.holder_of(faulty, shape) == ""
    assert_as_wanted(faulty, shape)
    assert_converges(faulty, repo, shape)


def test_two_applies_at_once_leave_the_objects_right(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs, tuple(f"t{number}" for number in range(12)))
    assert sum(len(shape.objects(cluster)) for cluster in kubeconfigs) > 100
    repo = commit(tmp_path / "repo", shape)
    with applying(repo) as one, applying(repo) as other:
        both = [finished(one), finished(other)]
    assert 0 in {answer.returncode for answer in both}, [told(answer) for answer in both]
    # Whoever comes late enough finds nothing to do.
    for late in (answer for answer in both if answer.returncode != 0):
        assert late.returncode == 3 and ("held by" in late.stderr or "took the lease first" in late.stderr), told(late)
    assert_as_wanted(faulty, shape)
    assert_converges(faulty, repo, shape)


def is_look_at_lease(request: str) -> bool:
    return request.startswith("GET") and "/leases/" in request


def test_apply_stops_writing_when_its_lease_is_stolen(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    manager, worker = proxy_of("manager"), proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    worker.inject(HELD_WRITES)
    with applying(repo) as process:
        assert worker.reached.wait(120)
        leases.steal(faulty, shape, "thief")
        manager.inject()
        eventually(lambda: any(is_look_at_lease(request) for request in list(manager.requests)), seconds=60)
        time.sleep(3)
        worker.let_go()
        applied = finished(process)
    assert applied.returncode == 4, told(applied)
    assert "the lease is lost, so another kfleet may be writing; kfleet stops writing" in applied.stdout
    # What was on its way arrived; nothing followed it, there or on the manager.
    assert not any(name.startswith("LocalQueue/") for name in members(faulty.api("worker1"), shape))
    assert members(faulty.api("manager"), shape) == set()
    assert leases.holder_of(faulty, shape) == "thief"
    leases.let_go(faulty, shape)
    assert_converges(faulty, repo, shape)


def test_apply_stops_writing_when_the_home_cluster_of_its_lease_is_silent(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    manager, worker = proxy_of("manager"), proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    worker.inject(HELD_WRITES)
    with applying(repo) as process:
        assert worker.reached.wait(120)
        manager.inject(Fault(Deed.HOLD, "/leases/", "GET|PUT", times=1000))
        assert manager.reached.wait(60)
        time.sleep(DURATION.total_seconds())
        worker.let_go()
        applied = finished(process)
    assert applied.returncode == 4, told(applied)
    assert "the lease is lost" in applied.stdout
    assert not any(name.startswith("LocalQueue/") for name in members(faulty.api("worker1"), shape))
    assert members(faulty.api("manager"), shape) == set()
    manager.let_go()
    leases.let_go(faulty, shape)
    assert_converges(faulty, repo, shape)
