"""What keeps a fleet from working, found on real clusters before it does."""

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from tests import fast_yaml
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import change_first, commit_sent, use_access
from tests.support import eventually

CONFIG_MAP = f"/api/v1/namespaces/{SYSTEM}/configmaps/kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture
def configured(wide_live_fleet: LiveFleet) -> Iterator[ApiServer]:
    """The manager, whose ConfigMap is as it was when the test is over. Its Kueue does not read it again."""
    api = wide_live_fleet.api("manager")
    before = api.get(CONFIG_MAP)
    yield api
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "data": before["data"]}
    if api.find(CONFIG_MAP):
        api.delete(CONFIG_MAP)
    api.create({**kept, "metadata": {"name": "kueue-manager-config", "namespace": SYSTEM}})


def enable(api: ApiServer, *frameworks: str) -> None:
    content = fast_yaml.safe_load(api.get(CONFIG_MAP)["data"][CONFIG_KEY])
    content["integrations"]["frameworks"] = list(frameworks)
    api.patch(CONFIG_MAP, {"data": {CONFIG_KEY: fast_yaml.safe_dump(content)}})


def preflight_issues(live_fleet: LiveFleet, command: str = "preflight") -> dict[str, dict[str, Any]]:
    """By cluster; a cluster with two is a failure of its own."""
    rows = live_fleet.run(command, "-o", "json").record["clusters"]
    found = {row["name"]: row["preflightIssues"] for row in rows if row["preflightIssues"]}
    assert all(len(entries) == 1 for entries in found.values()), found
    return {name.removeprefix(f"{live_fleet.name}-"): entries[0] for name, entries in found.items()}


def test_preflight_is_silent_where_nothing_is_in_the_way(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet)
    before = wide_live_fleet.run("preflight")
    assert before.code == 0, before
    assert wide_live_fleet.apply().code == 0
    after = wide_live_fleet.run("preflight")
    assert after.code == 0, after
    assert f"{wide_live_fleet.name}-worker2: ready, kueue v1beta2, v1beta1" in after.out


def test_kind_that_a_worker_does_not_know_is_reported_by_preflight_and_plan(
    wide_live_fleet: LiveFleet, configured: ApiServer
) -> None:
    commit_sent(wide_live_fleet)
    enable(configured, "batch/job", "jobset.x-k8s.io/jobset")
    found = preflight_issues(wide_live_fleet)
    assert {name: entry["check"] for name, entry in found.items()} == {"worker1": "frameworks", "worker2": "frameworks"}
    assert found["worker1"]["problem"].startswith("it does not serve JobSet.jobset.x-k8s.io, which")
    planned = wide_live_fleet.plan()
    assert {entry["check"] for entry in planned.record["preflightIssues"]} == {"frameworks"}
    assert planned.code == 2
    assert (
        f"preflight: {wide_live_fleet.name}-worker1: frameworks: it does not serve" in wide_live_fleet.run("plan").out
    )


def test_kind_that_the_kueue_of_a_worker_does_not_manage_is_reported(
    wide_live_fleet: LiveFleet, configured: ApiServer
) -> None:
    """Pods are known everywhere: that they run past every queue there stands in the Configuration alone."""
    commit_sent(wide_live_fleet)
    enable(configured, "batch/job", "pod")
    found = preflight_issues(wide_live_fleet)
    assert {name: entry["check"] for name, entry in found.items()} == {"worker1": "frameworks", "worker2": "frameworks"}
    assert found["worker1"]["problem"].startswith("its Kueue does not manage pod, and the manager's Kueue dispatches")
    config = {"integrations": {"frameworks": {"add": ["pod"]}}}
    # As it will be: the plan that enables a kind is not an obstacle to itself.
    change_first(wide_live_fleet, kueue={"config": config})
    wide_live_fleet.commit_all()
    assert [*preflight_issues(wide_live_fleet)] == ["worker2"]


def test_role_follows_the_frameworks_of_the_manager(wide_live_fleet: LiveFleet, configured: ApiServer) -> None:
    commit_sent(wide_live_fleet)
    wide_live_fleet.converge()
    path = f"{ROLES}/kfleet-{wide_live_fleet.name}-multikueue"
    assert {tuple(rule["resources"]) for rule in wide_live_fleet.api("worker1").get(path)["rules"]} == {
        ("workloads",),
        ("workloads/status",),
        ("jobs",),
    }
    enable(configured, "batch/job", "pod")
    wide_live_fleet.converge()
    assert ["pods"] in [rule["resources"] for rule in wide_live_fleet.api("worker1").get(path)["rules"]]


def test_role_keeps_its_rights_while_the_frameworks_cannot_be_read(
    wide_live_fleet: LiveFleet, configured: ApiServer
) -> None:
    commit_sent(wide_live_fleet)
    wide_live_fleet.converge()
    path = f"{ROLES}/kfleet-{wide_live_fleet.name}-multikueue"
    before = wide_live_fleet.api("worker1").get(path)
    configured.delete(CONFIG_MAP)
    planned = wide_live_fleet.plan()
    name = f"{wide_live_fleet.name}-worker1/ClusterRole/kfleet-{wide_live_fleet.name}-multikueue"
    assert (planned.code, planned.actions[name]) == (4, "hold")
    assert [entry["what"] for entry in planned.record["gaps"]] == ["the frameworks of Kueue"]
    assert wide_live_fleet.apply().code == 4
    after = wide_live_fleet.api("worker1").get(path)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_second_manager_of_the_same_origin_is_reported(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet)
    role = f"{wide_live_fleet.name}-other"
    metadata = {
        "name": role,
        "labels": {"kfleet.dev/multikueue": "true"},
        "annotations": {"kfleet.dev/multikueue-origin": "multikueue@another-cluster"},
    }
    api = wide_live_fleet.api("worker1")
    api.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata})
    try:
        found = preflight_issues(wide_live_fleet)
        assert {name: entry["check"] for name, entry in found.items()} == {"worker1": "origin"}
        assert f"({role})" in found["worker1"]["problem"]
    finally:
        api.delete(f"{ROLES}/{role}")


def test_rights_that_kfleet_lacks_are_reported(wide_live_fleet: LiveFleet) -> None:
    """A fleet whose account on the first worker may only look."""
    commit_sent(wide_live_fleet)
    assert wide_live_fleet.apply().code == 0
    use_account(wide_live_fleet)
    # What an account may do is known a moment after it was said.
    rows = eventually(lambda: rows_with_two_lacks(wide_live_fleet))
    found = rows[f"{wide_live_fleet.name}-worker1"]["preflightIssues"]
    assert "create serviceaccounts/token" in found[0]["problem"]
    assert "create, patch, delete clusterqueues.kueue.x-k8s.io" in found[0]["problem"]
    assert "permissions that it lacks itself" in found[1]["problem"]
    assert "escalate and bind on clusterroles" in found[1]["remedy"]
    assert rows[f"{wide_live_fleet.name}-worker2"]["preflightIssues"] == []


def rows_with_two_lacks(live_fleet: LiveFleet) -> dict[str, Any]:
    rows = {row["name"]: row for row in live_fleet.run("preflight", "-o", "json").record["clusters"]}
    checks = [entry["check"] for entry in rows[f"{live_fleet.name}-worker1"]["preflightIssues"]]
    return rows if checks == ["rights", "rights"] else {}


def use_account(live_fleet: LiveFleet) -> None:
    """Let the fleet log in to its first worker as an account that may read everything."""
    api, role = live_fleet.api("worker1"), f"{live_fleet.name}-reader"
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    account = {"name": role, "namespace": live_fleet.name}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    rbac = "rbac.authorization.k8s.io"
    named = {"apiVersion": f"{rbac}/v1", "metadata": {"name": role}}
    api.create({**named, "kind": "ClusterRole", "rules": rules})
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": role}
    api.create(
        {
            **named,
            "kind": "ClusterRoleBinding",
            "roleRef": reference,
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = api.post(f"/api/v1/namespaces/{live_fleet.name}/serviceaccounts/{role}/token", request)
    use_access(live_fleet, "reader", user={"token": answer["status"]["token"]})
