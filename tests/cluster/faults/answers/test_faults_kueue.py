"""Kueue's webhooks that do not answer, and a policy that forbids what a plan wants to do."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.processes import is_alive
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
from tests.cluster.faults.shapes import COLLECTIONS, Shape, commit, members, recorded_kinds
from tests.support import eventually

KUEUE = "worker2/kueue"
OTHERS = ("manager", "worker1")
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


@pytest.fixture
def kueue_again(faulty: Sandbox) -> Iterator[None]:
    """Kueue runs again after the test, whatever happens."""
    yield
    if not is_alive(faulty.state.part(KUEUE)):
        faulty.restart(KUEUE)


@pytest.mark.usefixtures("kueue_again")
def test_apply_waits_for_a_webhook_that_comes_back(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    faulty.kill(KUEUE)
    with applying(repo, *PATIENTLY) as process:
        # Workers are written at the same time: once the others are done, this one has been tried.
        eventually(lambda: all(members(faulty.api(name), shape) == shape.objects(name) for name in OTHERS[1:]), 120)
        time.sleep(2)
        assert process.poll() is None
        faulty.restart(KUEUE)
        applied = finished(process)
    assert applied.returncode == 0, told(applied)
    assert_as_wanted(faulty, shape)
    assert_converges(faulty, repo, shape)


@pytest.mark.usefixtures("kueue_again")
def test_apply_reports_each_object_that_a_dead_webhook_keeps_away(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    faulty.kill(KUEUE)
    applied = run("apply", repo, *BRIEFLY)
    assert applied.returncode == 4, told(applied)
    lines = [line for line in applied.stdout.splitlines() if "failed calling webhook" in line]
    objects = {line.partition(":")[0] for line in lines}
    assert len(lines) == len(objects), told(applied)
    assert f"worker2/ResourceFlavor/{unique}" in objects
    assert {f"worker2/ClusterQueue/{unique}-{team}" for team in shape.teams} <= objects
    assert "Traceback" not in applied.stderr
    assert_as_wanted(faulty, shape, *OTHERS)
    faulty.restart(KUEUE)
    assert_converges(faulty, repo, shape)


@pytest.mark.usefixtures("kueue_again")
def test_apply_mends_drift_after_a_webhook_was_down_for_the_plan(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    roomier = replace(shape, quota="7")
    commit(repo, roomier)
    faulty.kill(KUEUE)
    planned = run("plan", repo, "--only", "worker2/*")
    assert "nominalQuota: 5 -> 7  (spec)" in planned.stdout, told(planned)
    assert "without a dry run" in planned.stdout
    applied = run("apply", repo, *BRIEFLY)
    assert applied.returncode == 4, told(applied)
    faulty.restart(KUEUE)
    assert_converges(faulty, repo, roomier)


def test_apply_goes_on_where_a_policy_denies_deletes(
    faulty: Sandbox, kubeconfigs: dict[str, Path], tmp_path: Path, unique: str
) -> None:
    shape = Shape(unique, kubeconfigs)
    repo = commit(tmp_path / "repo", shape)
    assert_converges(faulty, repo, shape)
    smaller = replace(shape, teams=("a", "b"), priority=20)
    commit(repo, smaller)
    api = faulty.api("worker1")
    for manifest in _forbidding(unique, f"{unique}-c"):
        api.create(manifest)
    eventually(lambda: _is_forbidden(faulty, f"{unique}-c"))

    applied = run("apply", repo)
    assert applied.returncode == 4, told(applied)
    failed = [line for line in applied.stdout.splitlines() if ": delete: " in line]
    assert failed[0].startswith(f"worker1/ClusterQueue/{unique}-c: delete: ")
    assert "queues stay here" in failed[0]
    assert [line for line in failed[1:] if "not tried" not in line] == [], told(applied)
    assert_as_wanted(faulty, smaller, "manager", "worker2")
    left = members(api, shape)
    assert f"ClusterQueue/{unique}-c" in left and f"LocalQueue/{unique}-c" not in left
    assert recorded_kinds(api, shape) == COLLECTIONS.keys()

    api.delete(f"{POLICIES}/{unique}")
    api.delete(f"{POLICIES.replace('policies', 'policybindings')}/{unique}")
    eventually(lambda: not _is_forbidden(faulty, f"{unique}-c"))
    assert_converges(faulty, repo, smaller)


def _forbidding(name: str, queue: str) -> list[dict[str, Any]]:
    rule = {
        "apiGroups": ["kueue.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["DELETE"],
        "resources": ["clusterqueues"],
        "resourceNames": [queue],
    }
    meta = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "queues stay here"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {**meta, "kind": "ValidatingAdmissionPolicy", "spec": policy},
        {**meta, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]


def _is_forbidden(sandbox: Sandbox, queue: str) -> bool:
    """Whether a delete would be denied, asked by a dry run: the server takes a moment to learn a policy."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
    api = sandbox.api("worker1")
    try:
        api._request("DELETE", f"{COLLECTIONS['ClusterQueue']}/{queue}", body=body)
    except ClusterError:
        return True
    return False
