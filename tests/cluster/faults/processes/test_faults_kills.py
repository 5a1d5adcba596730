"""The process is killed at every point of an apply that matters; the next run finishes the work."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.builders import native
from tests.cluster.faults import leases
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.cluster.faults.runs import applying, assert_converges, finished, run, told
from tests.cluster.faults.shapes import COLLECTIONS, KUEUE, Shape, commit, members

BEFORE, AFTER = Deed.HOLD, Deed.HOLD_ANSWER
PARENT = "/configmaps/kfleet-"
WHILE_CREATING = {
    "before the lease": ("manager", Fault(BEFORE, "/leases")),
    "with the lease": ("manager", Fault(AFTER, "/leases")),
    "before the parent": ("worker1", Fault(BEFORE, PARENT)),
    "with the parent": ("worker1", Fault(AFTER, PARENT)),
    "among the namespaces": ("worker1", Fault(BEFORE, "/api/v1/namespaces/[^/]*[?]", after=1)),
    "with a flavor": ("worker1", Fault(AFTER, "/resourceflavors/")),
    "among the queues": ("worker1", Fault(AFTER, "/clusterqueues/", after=1)),
    "before the manager": ("manager", Fault(BEFORE, PARENT)),
    "before narrowing": ("worker1", Fault(BEFORE, PARENT, after=1)),
    "after narrowing": ("worker1", Fault(AFTER, PARENT, after=1)),
    "before the release of the lease": ("manager", Fault(BEFORE, "/leases", methods="PUT")),
}
WHILE_PRUNING = {
    "before the deletes": ("worker1", Fault(BEFORE, methods="DELETE")),
    "among the local queues": ("worker1", Fault(AFTER, "/localqueues/", methods="DELETE")),
    "among the queues": ("worker1", Fault(AFTER, "/clusterqueues/", methods="DELETE", after=1)),
    "before the cohort": ("worker1", Fault(BEFORE, "/cohorts/", methods="DELETE")),
    # The inventory was wide enough, so this is the first time that it is written.
    "before narrowing": ("worker1", Fault(BEFORE, PARENT)),
    "before narrowing the manager": ("manager", Fault(BEFORE, PARENT)),
}

ProxyOf = Callable[[str], FaultProxy]


def kill_at(proxy: FaultProxy, fault: Fault, repo: Path) -> None:
    proxy.inject(fault)
    with applying(repo) as process:
        is_reached = proxy.reached.wait(90)
        process.kill()
        killed = finished(process)
    proxy.drop()
    assert is_reached, told(killed)


@pytest.mark.parametrize("point", WHILE_CREATING)
def test_killed_first_apply_is_finished_by_the_next(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, point: str
) -> None:
    cluster, fault = WHILE_CREATING[point]
    proxy = proxy_of(cluster)
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    kill_at(proxy, fault, repo)
    leases.let_go(faulty, shape)
    assert_converges(faulty, repo, shape)


@pytest.mark.parametrize("point", WHILE_PRUNING)
def test_killed_prune_is_finished_by_the_next_apply(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, point: str
) -> None:
    cluster, fault = WHILE_PRUNING[point]
    proxy = proxy_of(cluster)
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    foreign = _foreign_objects(faulty, f"{unique}-foreign")
    smaller = replace(shape, teams=())
    commit(repo, smaller)
    kill_at(proxy, fault, repo)
    assert members(faulty.api("worker1"), shape) >= smaller.objects("worker1")
    leases.let_go(faulty, shape)
    assert_converges(faulty, repo, smaller)
    api = faulty.api("worker1")
    assert all(api.find(path) for path in foreign)
    # Namespaces are let go, never deleted.
    assert all(api.find(f"{COLLECTIONS['Namespace']}/{unique}-{team}") for team in shape.teams)


def test_killed_apply_that_is_never_followed_by_its_commit_is_tidied_up(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    """The commit is taken back after the crash: what it had already created is found and deleted."""
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs, teams=())
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    commit(repo, replace(shape, teams=("a", "b")))
    kill_at(proxy, Fault(AFTER, "/clusterqueues/"), repo)
    assert any(name.startswith("ClusterQueue/") for name in members(faulty.api("worker1"), shape))
    leases.let_go(faulty, shape)
    commit(repo, shape)
    assert_converges(faulty, repo, shape)


def test_killed_apply_loses_its_lease_in_time(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    kill_at(proxy, Fault(AFTER, PARENT), repo)
    assert leases.holder_of(faulty, shape)
    applied = run("apply", repo)
    assert applied.returncode == 0, told(applied)
    assert_converges(faulty, repo, shape)


def _foreign_objects(sandbox: Sandbox, name: str) -> list[str]:
    """Objects of somebody else, of kinds that the fleet prunes."""
    api = sandbox.api("worker1")
    api.create(native("ClusterQueue", name, {"namespaceSelector": {}}))
    api.create({**native("WorkloadPriorityClass", name), "value": 1})
    return [f"{KUEUE}/clusterqueues/{name}", f"{KUEUE}/workloadpriorityclasses/{name}"]
