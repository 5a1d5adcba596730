"""The way from the manager to its workers on real clusters: issued, kept, renewed, and worth little elsewhere."""

from base64 import b64encode
from typing import Any

import pytest

from reconciler.errors import ClusterError
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import (
    WORKERS,
    account_path,
    as_manager,
    commit_sent,
    connect_all,
    connected,
    kubeconfig,
    secret_path,
    server,
    token,
    use_access,
)
from tests.cluster.multikueue.drains import end, is_complete, submit, where
from tests.support import eventually

JOBS = "/apis/batch/v1/namespaces"


def test_credentials_connect_the_manager_from_empty_clusters_and_leave_nothing_to_do(
    wide_live_fleet: LiveFleet,
) -> None:
    commit_sent(wide_live_fleet)
    wide_live_fleet.converge()
    connect_all(wide_live_fleet)
    user = kubeconfig(wide_live_fleet)["users"][0]
    assert set(user["user"]) == {"token"}
    assert set(kubeconfig(wide_live_fleet)["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}


def workload_of(live_fleet: LiveFleet, name: str) -> dict[str, Any] | None:
    """The manager's Workload of a job, once a worker has it."""
    found = live_fleet.api("manager").list(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads")
    owned = [entry for entry in found if entry["metadata"]["ownerReferences"][0]["name"] == name]
    return next((entry for entry in owned if (entry.get("status") or {}).get("clusterName")), None)


def admission(workload: dict[str, Any]) -> tuple[Any, ...]:
    """When it was admitted and where, and everything that would tell of an eviction."""
    status = workload["status"]
    times = [
        (entry["type"], entry["status"], entry["lastTransitionTime"])
        for entry in status["conditions"]
        if entry["type"] in {"Admitted", "QuotaReserved", "Evicted", "Requeued"}
    ]
    return workload["metadata"]["uid"], status["clusterName"], status.get("requeueState"), sorted(times)


def test_rotation_leaves_a_running_job_alone(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet)
    assert wide_live_fleet.apply().code == 0
    connect_all(wide_live_fleet)
    submit(wide_live_fleet, "long")
    worker = where(wide_live_fleet, "long")
    # Until its pods have started, the workload is still being written to.
    path = f"{JOBS}/{wide_live_fleet.name}/jobs/long"
    eventually(lambda: wide_live_fleet.api("manager").get(path)["status"].get("active"))
    before = admission(workload_of(wide_live_fleet, "long") or {})
    old = {name: token(wide_live_fleet, name) for name in WORKERS}
    rotated = wide_live_fleet.run("credentials rotate")
    assert rotated.code == 0, rotated
    assert all(token(wide_live_fleet, name) != text for name, text in old.items())
    assert wide_live_fleet.plan().actions == {}
    assert not is_complete(wide_live_fleet, "long")
    # By the new token the manager hears of the end, and sends what comes next.
    end(wide_live_fleet, worker, "long")
    eventually(lambda: is_complete(wide_live_fleet, "long"), 60)
    assert admission(workload_of(wide_live_fleet, "long") or {}) == before
    submit(wide_live_fleet, "next")
    end(wide_live_fleet, where(wide_live_fleet, "next"), "next")
    eventually(lambda: is_complete(wide_live_fleet, "next"), 60)


@pytest.fixture
def sent(wide_live_fleet: LiveFleet) -> LiveFleet:
    """A fleet that is applied."""
    commit_sent(wide_live_fleet)
    applied = wide_live_fleet.apply()
    assert applied.code == 0, applied
    return wide_live_fleet


def review(api: Any, verb: str, group: str, plural: str, namespace: str = "") -> bool:
    asked = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}
    answer = api.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        },
    )
    return bool(answer["status"]["allowed"])


def test_credential_may_do_what_the_manager_needs_and_nothing_else(sent: LiveFleet) -> None:
    api = as_manager(sent)
    allowed = [("list", "batch", "jobs"), ("watch", "batch", "jobs"), ("create", "batch", "jobs")]
    allowed += [
        (verb, "kueue.x-k8s.io", "workloads") for verb in ("create", "delete", "get", "list", "update", "watch")
    ]
    denied = [
        ("list", "", "secrets"),
        ("get", "", "pods"),
        ("create", "", "pods"),
        ("list", "", "nodes"),
        ("delete", "", "namespaces"),
        ("update", "batch", "jobs/status"),
        ("deletecollection", "batch", "jobs"),
        ("patch", "kueue.x-k8s.io", "clusterqueues"),
        ("list", "kueue.x-k8s.io", "clusterqueues"),
        ("create", "", "serviceaccounts/token"),
        ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
        ("impersonate", "", "users"),
        ("*", "*", "*"),
    ]
    assert [asked for asked in allowed if not review(api, *asked)] == []
    assert [asked for asked in denied if review(api, *asked)] == []
    assert list(api.list(f"{JOBS}/{sent.name}/jobs")) == []
    for path in ("/api/v1/secrets", "/api/v1/nodes", f"/api/v1/namespaces/{SYSTEM}/configmaps"):
        with pytest.raises(ClusterError, match="403"):
            list(api.list(path))
    with pytest.raises(ClusterError, match="403"):
        api.delete(f"/api/v1/namespaces/{sent.name}")


def test_revoked_token_is_found_and_replaced_by_the_next_run(sent: LiveFleet) -> None:
    old = token(sent)
    sent.api("worker1").delete(account_path(sent))
    # A server remembers for a moment whom it let in.
    eventually(lambda: sent.plan().actions.get(f"{sent.name}-manager/Secret/{SYSTEM}/multikueue-{sent.name}-worker1"))
    seen = sent.plan()
    secret = seen.changes[f"{sent.name}-manager/Secret/{SYSTEM}/multikueue-{sent.name}-worker1"]
    assert secret["action"] == "update"
    assert secret["notes"] == [
        f"a token for 720 h is issued on {sent.name}-worker1: the worker does not accept the token"
    ]
    assert [(entry["path"], entry["new"], entry["cause"]) for entry in secret["fields"]] == [
        ("data.kubeconfig", "(sensitive, issued when applied)", "observation")
    ]
    sent.converge()
    assert token(sent) != old
    assert review(as_manager(sent), "list", "batch", "jobs")
    eventually(lambda: connected(sent, "worker1"))


def broken(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize("content", [{}, {"kubeconfig": broken("- no\n- kubeconfig")}, {"kubeconfig": broken("{")}])
def test_broken_secret_gets_a_new_token(sent: LiveFleet, content: dict[str, str]) -> None:
    old = token(sent)
    change = [{"op": "replace", "path": "/data", "value": content}]
    sent.api("manager").json_patch(f"{secret_path(sent)}?fieldManager=kubectl-edit", change)
    sent.converge()
    assert token(sent) != old


def test_worker_without_a_way_there_is_reported_and_the_others_get_their_tokens(sent: LiveFleet) -> None:
    old = {worker: token(sent, worker) for worker in ("worker1", "worker2")}
    use_access(sent, f"{sent.name}-lost", user={"token": "no\ntoken"})
    listed = sent.run("credentials list")
    rotated = sent.run("credentials rotate")
    assert (listed.code, rotated.code) == (4, 4)
    for told in (listed.err, rotated.out):
        assert f"gap: {sent.name}-worker1: the cluster: cannot log in" in told
    assert token(sent, "worker1") == old["worker1"]
    assert token(sent, "worker2") != old["worker2"]


def test_edited_address_is_put_right_without_a_new_token(sent: LiveFleet) -> None:
    old, address = token(sent), server(sent)
    live = kubeconfig(sent)
    live["clusters"][0]["cluster"]["server"] = "https://elsewhere.example.org:6443"
    patch = [{"op": "replace", "path": "/data/kubeconfig", "value": broken(str(live))}]
    sent.api("manager").json_patch(f"{secret_path(sent)}?fieldManager=kubectl-edit", patch)
    name = f"{sent.name}-manager/Secret/{SYSTEM}/multikueue-{sent.name}-worker1"
    assert sent.plan().fields(name)["data.kubeconfig"]["cause"] == "drift"
    sent.converge()
    assert (token(sent), server(sent)) == (old, address)


def test_address_of_the_fleet_is_written_without_a_new_token(sent: LiveFleet) -> None:
    old, address = token(sent), server(sent)
    commit_sent(sent, server=address.replace("127.0.0.1", "localhost"))
    sent.converge()
    assert token(sent) == old
    assert server(sent) == address.replace("127.0.0.1", "localhost")
    eventually(lambda: connected(sent, "worker1"))


def test_lifetime_of_the_fleet_is_asked_for(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet, lifetime="20m")
    wide_live_fleet.converge()
    listed = wide_live_fleet.run("credentials list", "-o", "json")
    row = next(entry for entry in listed.record["credentials"] if entry["worker"].endswith("worker1"))
    assert row["accepted"] == "yes"
    assert row["account"] == f"{SYSTEM}/multikueue-{wide_live_fleet.name}"
    lived = [int(row[name][11:13]) * 60 + int(row[name][14:16]) for name in ("issued", "renewal", "expires")]
    assert [(after - lived[0]) % 1440 for after in lived[1:]] in ([13, 20], [14, 20])


def test_existing_secret_is_used_and_left_alone(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet, secret=f"{wide_live_fleet.name}-own")
    assert wide_live_fleet.apply().code == 0
    assert wide_live_fleet.api("worker1").find(account_path(wide_live_fleet)) is None
    assert wide_live_fleet.api("manager").find(secret_path(wide_live_fleet)) is None
    source = wide_live_fleet.api("manager").get(f"{KUEUE_ROOT}/multikueueclusters/{wide_live_fleet.name}-worker1")
    assert source["spec"]["clusterSource"]["kubeConfig"]["location"] == f"{wide_live_fleet.name}-own"
    found = [entry for entry in wide_live_fleet.plan().record["preflightIssues"] if entry["check"] == "credential"]
    assert [entry["problem"] for entry in found] == [f"the Secret {wide_live_fleet.name}-own is not on the manager"]


def test_login_that_works_stays_until_the_secret_that_replaces_it_is_there(sent: LiveFleet) -> None:
    manager, own = sent.api("manager"), f"{sent.name}-own"
    commit_sent(sent, secret=own)
    sent.apply()
    assert sent.api("worker1").find(account_path(sent)) and manager.find(secret_path(sent))
    link = f"{KUEUE_ROOT}/multikueueclusters/{sent.name}-worker1"
    assert manager.get(link)["spec"]["clusterSource"]["kubeConfig"]["location"] != own
    made = manager.get(secret_path(sent))
    metadata = {"name": own, "namespace": SYSTEM}
    manager.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": made["data"]})
    assert sent.apply("--confirm-deletes", "4").code == 0
    assert manager.get(link)["spec"]["clusterSource"]["kubeConfig"]["location"] == own
    assert sent.api("worker1").find(account_path(sent)) is None and manager.find(secret_path(sent)) is None
    manager.delete(f"/api/v1/namespaces/{SYSTEM}/secrets/{own}")


def test_no_output_holds_a_token(sent: LiveFleet) -> None:
    commit_sent(sent, server="https://localhost:6443")
    saved = sent.folder.parent / "plan.json"
    answers = [
        sent.run("plan", "-v"),
        sent.run("plan", "-o", "json"),
        sent.run("plan", "-o", "markdown"),
        sent.run("plan", "--out", str(saved)),
        sent.run("credentials list"),
        sent.run("credentials list", "-o", "json"),
        sent.run("preflight", "-v"),
        sent.run("credentials rotate", "-v"),
        sent.run("apply", "-v"),
        sent.run("render"),
    ]
    texts = [saved.read_text(), *(text for answer in answers for text in (answer.out, answer.err))]
    # The first two parts of a token of a ServiceAccount begin like this: `{"alg":` and `{"aud":`.
    assert not any(mark in text for text in texts for mark in ("eyJhbGci", "eyJhdWQi", "users:"))
    assert token(sent).startswith("eyJhbGci")


def test_saved_plan_with_a_token_to_issue_is_applied(wide_live_fleet: LiveFleet) -> None:
    commit_sent(wide_live_fleet)
    saved = wide_live_fleet.folder.parent / "plan.json"
    assert wide_live_fleet.run("plan", "--out", str(saved)).code == 0
    applied = wide_live_fleet.apply("--plan", str(saved))
    assert applied.code == 0, applied
    connect_all(wide_live_fleet)


def test_worker_that_gives_no_token_fails_its_own_secret_only(sent: LiveFleet) -> None:
    old = token(sent, "worker2")
    sent.api("worker1").delete(account_path(sent))
    rotated = sent.run("credentials rotate")
    assert rotated.code == 4
    line = next(line for line in rotated.out.splitlines() if "no token" in line)
    assert f"multikueue-{sent.name}-worker1: update: no token: {sent.name}-worker1: " in line
    assert "eyJ" not in rotated.out
    assert token(sent, "worker2") != old


def test_rotation_refuses_a_worker_that_it_does_not_know(sent: LiveFleet) -> None:
    answer = sent.run("credentials rotate", "nowhere")
    assert answer.code == 1
    assert f"kfleet issues no token for 'nowhere'; only for: {sent.name}-worker1, {sent.name}-worker2" in answer.err


def test_rotation_of_one_worker_changes_nothing_else(sent: LiveFleet) -> None:
    old = {worker: token(sent, worker) for worker in ("worker1", "worker2")}
    connect_all(sent)
    commit_sent(sent, server="https://localhost:6443")
    before = sent.quiet_versions()
    assert sent.run("credentials rotate", f"{sent.name}-worker2").code == 0
    after = sent.quiet_versions()
    assert {name for name in before if before[name] != after[name]} - {f"{sent.name}-manager/parent"} == {
        f"{sent.name}-manager/secrets/{SYSTEM}/multikueue-{sent.name}-worker2"
    }
    assert (token(sent, "worker1"), token(sent, "worker2") != old["worker2"]) == (old["worker1"], True)


def test_secret_stays_as_it_is_while_its_worker_does_not_answer(sent: LiveFleet) -> None:
    before = sent.api("manager").get(secret_path(sent))["metadata"]["resourceVersion"]
    use_access(sent, "dead", server="https://127.0.0.1:1")
    planned = sent.plan("--cluster-timeout", "3")
    assert planned.code == 4
    assert [(entry["cluster"], entry["what"]) for entry in planned.record["gaps"]] == [
        (f"{sent.name}-worker1", "the cluster")
    ]
    assert planned.actions == {}
    assert sent.apply("--cluster-timeout", "3").code == 4
    assert sent.api("manager").get(secret_path(sent))["metadata"]["resourceVersion"] == before
