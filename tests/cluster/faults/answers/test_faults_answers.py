"""Answers that a busy server gives: they are tried again, and counted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.apply.retry import RetryPolicy
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.observe import connect
from reconciler.plan.model import ClusterOutcome, Plan
from reconciler.report.text import apply_exit_code, outcome_text
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy
from tests.cluster.faults.runs import assert_as_wanted, assert_converges, run, told
from tests.cluster.faults.shapes import COLLECTIONS, Shape, commit, recorded_kinds
from tests.cluster.stages import apply_fleet, plan_fleet

CLASSES = "/workloadpriorityclasses/"
BUSY = {
    "429": Fault(Deed.ANSWER, CLASSES, status=429, reason="TooManyRequests", retry_after="1"),
    "409": Fault(Deed.ANSWER, CLASSES, status=409, reason="Conflict"),
    "500": Fault(Deed.ANSWER, CLASSES, status=500, reason="InternalError"),
    "503": Fault(Deed.ANSWER, CLASSES, status=503, reason="ServiceUnavailable"),
    "closed": Fault(Deed.CLOSE, CLASSES),
}

ProxyOf = Callable[[str], FaultProxy]


def apply_here(repo: Path) -> tuple[Plan, tuple[ClusterOutcome, ...]]:
    """Plan and apply in this process, to see the outcome of each object."""
    computed = load_files(read_files(Source(str(repo), "HEAD")))
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        return plan, apply_fleet(computed, connections, plan, RetryPolicy())
    finally:
        connections.close()


@pytest.mark.parametrize("answer", BUSY)
def test_apply_tries_again_and_counts(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, answer: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    proxy.inject(replace(BUSY[answer], times=5))
    plan, outcomes = apply_here(repo)
    assert apply_exit_code(plan, outcomes) == 0, outcome_text(outcomes)
    (worker,) = (outcome for outcome in outcomes if outcome.name == "worker1")
    classes = [outcome for outcome in worker.outcomes if outcome.ref.kind == "WorkloadPriorityClass"]
    others = [outcome for outcome in worker.outcomes if outcome not in classes]
    assert sum(outcome.attempts for outcome in classes) == len(classes) + 5
    assert {outcome.attempts for outcome in others} == {1}
    sent = [request for request in proxy.requests if request.startswith("PATCH") and CLASSES in request]
    assert len([request for request in sent if "dryRun" not in request]) == len(classes) + 5
    assert_converges(faulty, repo, shape)


@pytest.mark.parametrize("answer", BUSY)
def test_apply_tries_a_delete_again(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, answer: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    smaller = replace(shape, teams=("a",))
    commit(repo, smaller)
    proxy.inject(replace(BUSY[answer], methods="DELETE", times=2))
    plan, outcomes = apply_here(repo)
    assert apply_exit_code(plan, outcomes) == 0, outcome_text(outcomes)
    deleted = [outcome for entry in outcomes for outcome in entry.outcomes if outcome.action == "delete"]
    assert sum(outcome.attempts - 1 for outcome in deleted) == 2
    assert_as_wanted(faulty, smaller)


def test_apply_tries_the_inventory_again(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    proxy.inject(Fault(Deed.CLOSE, "/configmaps/kfleet-", times=3))
    applied = run("apply", repo)
    assert applied.returncode == 0, told(applied)
    assert recorded_kinds(faulty.api("worker1"), shape) == COLLECTIONS.keys()
    assert_converges(faulty, repo, shape)


@pytest.mark.parametrize("answer", BUSY)
def test_apply_mends_drift_though_the_dry_runs_met_a_busy_server(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, answer: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    for team in shape.teams:
        path = f"{COLLECTIONS['WorkloadPriorityClass']}/{unique}-{team}"
        faulty.api("worker1").patch(f"{path}?fieldManager=kubectl-edit", {"value": 99})
    proxy.inject(replace(BUSY[answer], is_dry_run=True, times=2))
    applied = run("apply", repo)
    assert applied.returncode == 0, told(applied)
    assert "value: 99 -> 10  (drift" in applied.stdout, told(applied)
    assert_converges(faulty, repo, shape)


def test_plan_comes_back_when_a_busy_server_asks_it_to(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    proxy.inject(replace(BUSY["429"], path="/clusterqueues", methods="GET", times=2))
    planned = run("plan", repo, "--detailed-exitcode")
    assert planned.returncode == 0 and "no changes" in planned.stdout, told(planned)


NOTHING = '{"kind": "ClusterQueueList", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {}, "items": null}'
LOST = '{"kind": "Status", "reason": "NotFound", "message": "cluster not found", "code": 404}'
NO_ANSWERS = {
    "403": Fault(Deed.ANSWER, "/configmaps/kfleet-", "GET", status=403, reason="Forbidden", times=99),
    "404 of a proxy": Fault(Deed.ANSWER, "", "GET", status=404, page="<html>no such page</html>", times=999),
    "404 of a gateway": Fault(Deed.ANSWER, "", "GET", status=404, page=LOST, times=999),
    "login page": Fault(Deed.ANSWER, "", "GET", status=200, page='{"login": "please"}', times=999),
    "list of null": Fault(Deed.ANSWER, "/clusterqueues[?]", "GET", status=200, page=NOTHING, times=99),
}


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_answer_that_is_none_is_a_gap_of_its_cluster_alone(
    faulty: Sandbox, kubeconfigs: dict[str, Path], proxy_of: ProxyOf, tmp_path: Path, unique: str, answer: str
) -> None:
    proxy = proxy_of("worker1")
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    proxy.inject(NO_ANSWERS[answer])
    plan, outcomes = apply_here(repo)
    assert {gap.cluster for gap in plan.gaps} == {"worker1"}
    assert apply_exit_code(plan, outcomes) == 4
    assert all(outcome.is_done and outcome.outcomes for outcome in outcomes if outcome.name != "worker1")
    proxy.inject()
    assert_converges(faulty, repo, shape)
