"""A controller in a broken fleet: what is well goes on, what comes back is made right, and never do two write."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.controller.cycle import HEARD_WITHIN
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.controller.controllers import Controller
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.cluster.faults.runs import assert_as_wanted
from tests.cluster.faults.shapes import KUEUE, Shape, commit, members, priorities
from tests.support import eventually, revive

CLASSES = "/workloadpriorityclasses/"

Start = Callable[..., Controller]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Controller] = []

    def begin(repo: Path, *options: str) -> Controller:
        started.append(Controller(repo, ("--interval", "5", *options)))
        return started[-1]

    yield begin
    for controller in started:
        controller.kill()


@pytest.fixture
def shape(kubeconfigs: dict[str, Path], unique: str) -> Shape:
    return Shape(unique, kubeconfigs)


@contextmanager
def frozen(sandbox: Sandbox, part: str) -> Iterator[None]:
    """A server that takes connections and never answers."""
    process = sandbox.state.part(part).pid
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def has_priority(sandbox: Sandbox, shape: Shape, *clusters: str) -> bool:
    return all(priorities(sandbox.api(cluster), shape) == {shape.priority} for cluster in clusters)


def holds_all(sandbox: Sandbox, shape: Shape) -> bool:
    return all(members(sandbox.api(name), shape) == shape.objects(name) for name in shape.kubeconfigs)


def test_run_goes_on_with_the_others_while_a_cluster_hangs(
    faulty: Sandbox, shape: Shape, tmp_path: Path, start: Start
) -> None:
    repo = commit(tmp_path / "repo", shape)
    controller = start(repo)
    eventually(lambda: holds_all(faulty, shape), 60)
    later = replace(shape, priority=20)
    with frozen(faulty, "worker2/kube-apiserver"):
        commit(repo, later)
        eventually(lambda: has_priority(faulty, later, "manager", "worker1"), 60)
        latest = replace(shape, priority=30)
        eventually(lambda: controller.said("cluster lost"))
        commit(repo, latest)
        eventually(lambda: has_priority(faulty, latest, "manager", "worker1"), 60)
    eventually(lambda: controller.said("cluster back"), 120)
    eventually(lambda: has_priority(faulty, latest, "worker2"), 60)
    eventually(lambda: holds_all(faulty, latest))
    assert_as_wanted(faulty, latest)


def test_run_goes_on_with_the_others_while_a_login_page_answers_for_a_cluster(
    faulty: Sandbox, shape: Shape, proxy_of: Callable[[str], FaultProxy], tmp_path: Path, start: Start
) -> None:
    proxy, others = proxy_of("worker1"), ("manager", "worker2")
    proxy.inject(Fault(Deed.ANSWER, "", ".*", status=200, page='{"login": "please"}', times=100_000))
    repo = commit(tmp_path / "repo", shape)
    start(repo)
    eventually(lambda: has_priority(faulty, shape, *others), 60)
    later = replace(shape, priority=20)
    commit(repo, later)
    eventually(lambda: has_priority(faulty, later, *others), 60)
    proxy.let_go()
    eventually(lambda: has_priority(faulty, later, "worker1"), 120)
    eventually(lambda: holds_all(faulty, later))


def test_run_goes_on_where_one_collection_of_the_manager_hangs(
    faulty: Sandbox, shape: Shape, proxy_of: Callable[[str], FaultProxy], tmp_path: Path, start: Start
) -> None:
    """It is one gap: neither the lease nor the manager is lost."""
    proxy, workers = proxy_of("manager"), ("worker1", "worker2")
    proxy.inject(Fault(Deed.HOLD, "/workloadpriorityclasses[?]", "GET", times=1000))
    repo = commit(tmp_path / "repo", shape)
    controller = start(repo, "--cluster-timeout", "3")
    eventually(lambda: has_priority(faulty, shape, *workers), 60)
    later = replace(shape, priority=20)
    commit(repo, later)
    eventually(lambda: has_priority(faulty, later, *workers), 60)
    assert controller.metric('kfleet_gaps{cluster="manager"') == 1
    proxy.let_go()
    eventually(lambda: holds_all(faulty, later) and has_priority(faulty, later, "manager"), 60)
    assert not controller.said("cluster lost") and len(controller.said("leading")) == 1


def test_run_looks_again_before_it_deletes_where_a_watch_tells_nothing(
    faulty: Sandbox, shape: Shape, proxy_of: Callable[[str], FaultProxy], tmp_path: Path, start: Start
) -> None:
    proxy = proxy_of("worker1")
    proxy.inject(Fault(Deed.STALL, "watch=1", "GET", times=1000))
    repo = commit(tmp_path / "repo", shape)
    start(repo)
    eventually(lambda: holds_all(faulty, shape), 60)
    time.sleep(HEARD_WITHIN)
    proxy.requests.clear()
    fewer = replace(shape, teams=("a", "b"))
    commit(repo, fewer)
    eventually(lambda: members(faulty.api("worker1"), fewer) == fewer.objects("worker1"), 60)
    asked = list(proxy.requests)
    first = next(number for number, request in enumerate(asked) if request.startswith("DELETE"))
    assert any(f"{KUEUE}/clusterqueues?limit" in request for request in asked[:first])


def test_run_follows_an_api_server_through_its_restart(
    faulty: Sandbox, shape: Shape, tmp_path: Path, start: Start
) -> None:
    repo = commit(tmp_path / "repo", shape)
    controller = start(repo)
    eventually(lambda: holds_all(faulty, shape), 60)
    faulty.stop("worker2/kube-apiserver")
    later = replace(shape, priority=20)
    commit(repo, later)
    eventually(lambda: has_priority(faulty, later, "manager", "worker1"), 60)
    revive(faulty, "worker2")
    eventually(lambda: has_priority(faulty, later, "worker2"), 120)
    path = f"/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/{shape.name}-a"
    faulty.api("worker2").delete(path)
    eventually(lambda: faulty.api("worker2").find(path), 60)
    assert controller.process.poll() is None


@pytest.mark.parametrize("deed", [Deed.HOLD, Deed.HOLD_ANSWER])
def test_second_replica_ends_what_a_killed_leader_began(
    faulty: Sandbox,
    shape: Shape,
    proxy_of: Callable[[str], FaultProxy],
    tmp_path: Path,
    start: Start,
    deed: Deed,
) -> None:
    proxy = proxy_of("worker1")
    repo = commit(tmp_path / "repo", shape)
    first = start(repo)
    eventually(lambda: holds_all(faulty, shape), 60)
    second = start(repo)
    eventually(lambda: second.said("waiting for the lease"))
    proxy.inject(Fault(deed, CLASSES, after=1))
    later = replace(shape, priority=20, teams=("a", "b"))
    commit(repo, later)
    assert proxy.reached.wait(60)
    first.kill()
    proxy.drop()
    eventually(lambda: second.said("leading"), 60)
    eventually(lambda: holds_all(faulty, later) and has_priority(faulty, later, *shape.kubeconfigs), 60)
    assert_as_wanted(faulty, later)


def test_run_that_is_stopped_in_mid_write_ends_the_write_and_starts_no_other(
    faulty: Sandbox,
    shape: Shape,
    proxy_of: Callable[[str], FaultProxy],
    tmp_path: Path,
    start: Start,
) -> None:
    proxy = proxy_of("worker1")
    repo = commit(tmp_path / "repo", shape)
    controller = start(repo)
    eventually(lambda: holds_all(faulty, shape), 60)
    proxy.inject(Fault(Deed.HOLD_ANSWER, CLASSES))
    later = replace(shape, priority=20)
    commit(repo, later)
    assert proxy.reached.wait(60)
    controller.process.terminate()
    proxy.let_go()
    assert controller.stop() == 0
    assert controller.said("stopped")
    again = start(repo)
    eventually(lambda: has_priority(faulty, later, *shape.kubeconfigs), 60)
    eventually(lambda: holds_all(faulty, later))
    assert again.process.poll() is None
    assert_as_wanted(faulty, later)
