"""API servers that are gone: before the look, between look and apply, and in the middle of an apply."""

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.apply.retry import RetryPolicy
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.observe import connect
from reconciler.report.text import apply_exit_code, outcome_text
from reconciler.sandbox.certificates import write_kubeconfig
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.processes import is_alive
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.cluster.faults.runs import (
    BRIEFLY,
    PATIENTLY,
    applying,
    assert_as_wanted,
    assert_converges,
    finished,
    run,
    told,
)
from tests.cluster.faults.shapes import Shape, commit, members
from tests.cluster.stages import apply_fleet, plan_fleet
from tests.support import eventually, revive

SERVER = "worker2/kube-apiserver"
OTHERS = ("manager", "worker1")


@pytest.fixture
def stopped(faulty: Sandbox) -> Iterator[Callable[[], None]]:
    """Stop the server of a worker when the test says so; it runs again afterwards, whatever happens."""
    yield lambda: faulty.kill(SERVER)
    if not is_alive(faulty.state.part(SERVER)):
        revive(faulty, "worker2")


@pytest.fixture
def black_hole(faulty: Sandbox, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a worker that leads to a socket which takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        cluster = faulty.state.cluster("worker2")
        access = replace(cluster.access, server=f"https://127.0.0.1:{hole.getsockname()[1]}")
        path = tmp_path / "hole.kubeconfig"
        write_kubeconfig(path, [replace(cluster, access=access)])
        yield path


def test_apply_goes_on_without_a_server_that_is_down_before_the_look(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str, stopped: Callable[[], None]
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    held = members(faulty.api("worker2"), shape)
    smaller = replace(shape, teams=("a", "b"), priority=20)
    commit(repo, smaller)

    stopped()
    planned = run("plan", repo)
    assert planned.returncode == 4, told(planned)
    assert "gap: worker2: the cluster: " in planned.stdout and "connection refused" in planned.stdout
    applied = run("apply", repo)
    assert applied.returncode == 4, told(applied)
    assert "gap: worker2: the cluster: " in applied.stdout
    assert_as_wanted(faulty, smaller, *OTHERS)

    revive(faulty, "worker2")
    assert members(faulty.api("worker2"), shape) == held
    assert_converges(faulty, repo, smaller)


def test_apply_deletes_nothing_on_a_server_that_it_could_not_list(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: Callable[[str], FaultProxy], tmp_path: Path, unique: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    smaller = replace(shape, teams=("a", "b"))
    commit(repo, smaller)
    proxy.inject(Fault(Deed.ANSWER, "/localqueues", "GET", status=500, reason="InternalError", times=1000))
    applied = run("apply", repo)
    assert applied.returncode == 4, told(applied)
    assert "gap: worker1: LocalQueue.kueue.x-k8s.io: " in applied.stdout
    assert "this cluster was not observed completely" in applied.stdout
    assert members(faulty.api("worker1"), shape) == shape.objects("worker1")
    assert_as_wanted(faulty, smaller, "manager", "worker2")
    proxy.let_go()
    assert_converges(faulty, repo, smaller)


def test_apply_reports_a_server_that_goes_down_between_look_and_apply(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str, stopped: Callable[[], None]
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    computed = load_files(read_files(Source(str(repo), "HEAD")))
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        assert not plan.gaps and not plan.refusals
        stopped()
        outcomes = apply_fleet(computed, connections, plan, RetryPolicy(total=timedelta(seconds=5)))
    finally:
        connections.close()
    assert apply_exit_code(plan, outcomes) == 4
    assert "worker2: PATCH " in outcome_text(outcomes) and "connection refused" in outcome_text(outcomes)
    assert_as_wanted(faulty, shape, *OTHERS)
    revive(faulty, "worker2")
    assert members(faulty.api("worker2"), shape) == set()
    assert_converges(faulty, repo, shape)


def test_apply_gives_up_a_server_that_goes_down_in_the_middle(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str, stopped: Callable[[], None]
) -> None:
    shape = Shape(unique, kubeconfigs, tuple(f"t{number}" for number in range(60)))
    repo = commit(tmp_path / "repo", shape)
    started = time.monotonic()
    with applying(repo, *BRIEFLY) as process:
        eventually(lambda: len(members(faulty.api("worker2"), shape)) >= 5, seconds=120)
        stopped()
        applied = finished(process)
    took = time.monotonic() - started
    assert applied.returncode == 4, told(applied)
    lost = [line for line in applied.stdout.splitlines() if line.startswith("worker2/") and ": create: " in line]
    assert lost and all("connection" in line or "not tried" in line for line in lost), told(applied)
    assert_as_wanted(faulty, shape, *OTHERS)
    # Patience is for the server, not for each of its 180 objects.
    assert took < 200, took

    revive(faulty, "worker2")
    assert members(faulty.api("worker2"), shape) < shape.objects("worker2")
    assert_converges(faulty, repo, shape)


def test_apply_survives_a_restart_of_a_server_in_the_middle(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs, tuple(f"t{number}" for number in range(30)))
    repo = commit(tmp_path / "repo", shape)
    with applying(repo, *PATIENTLY) as process:
        eventually(lambda: len(members(faulty.api("worker2"), shape)) >= 5, seconds=120)
        faulty.kill(SERVER)
        faulty.restart(SERVER)
        applied = finished(process)
    revive(faulty, "worker2")
    assert applied.returncode == 0, told(applied)
    assert_converges(faulty, repo, shape)


def test_apply_waits_for_a_black_hole_no_longer_than_its_timeout(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str, black_hole: Path
) -> None:
    usual = Shape(unique, {name: path for name, path in kubeconfigs.items() if name != "worker2"})
    repo = commit(tmp_path / "usual", usual)
    started = time.monotonic()
    assert_converges(faulty, repo, usual)
    took_usually = time.monotonic() - started

    shape = Shape(f"{unique}-hole", kubeconfigs | {"worker2": black_hole})
    repo = commit(tmp_path / "repo", shape)
    started = time.monotonic()
    applied = run("apply", repo)
    took = time.monotonic() - started
    assert applied.returncode == 4, told(applied)
    assert "gap: worker2: the cluster: does not respond (no answer in time)" in applied.stdout, told(applied)
    assert_as_wanted(faulty, shape, *OTHERS)
    assert took < took_usually + 60, (took, took_usually)
    assert_converges(
        faulty, commit(repo, replace(shape, kubeconfigs=kubeconfigs)), replace(shape, kubeconfigs=kubeconfigs)
    )


def test_apply_writes_nothing_while_the_manager_is_down(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    faulty.kill("manager/kube-apiserver")
    try:
        applied = run("apply", repo)
    finally:
        revive(faulty, "manager")
    assert applied.returncode == 1, told(applied)
    assert "manager: " in applied.stderr and "connection refused" in applied.stderr
    assert "without its lease kfleet writes to no cluster" in applied.stderr
    assert all(members(faulty.api(cluster), shape) == set() for cluster in kubeconfigs)
    assert_converges(faulty, repo, shape)
