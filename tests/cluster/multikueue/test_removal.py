"""Workers leave the spec while jobs run, on real clusters: nothing runs twice, and nothing stays behind."""

import json
import shlex
from typing import Any

from tests.cluster.faults.proxy import proxied
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.cluster.multikueue.credentials import account_path, connected, secret_path, token
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    end,
    ends_anywhere,
    is_complete,
    memberships,
    other_than,
    start_fleet,
    stop_policy,
    submit,
    waiting,
    where,
)
from tests.support import eventually, revive


def parent(live_fleet: LiveFleet, cluster: str) -> dict[str, Any] | None:
    return live_fleet.api(cluster).find(live_fleet.set_name.path)


def remembers(live_fleet: LiveFleet, worker: str) -> bool:
    return f"{live_fleet.name}-{worker}" in (parent(live_fleet, "manager") or {})["data"]


def test_worker_that_left_the_spec_is_held_waited_for_and_tidied_up(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "first")
    gone = where(wide_live_fleet, "first")
    other = other_than(gone)

    commit_fleet(wide_live_fleet, without=[gone])
    applied = wide_live_fleet.apply()
    assert applied.code == 0, applied
    assert f"waiting: {wide_live_fleet.name}-{gone}: 1 of the manager's workloads still run there" in applied.out
    assert stop_policy(wide_live_fleet, gone) == "Hold"
    assert memberships(wide_live_fleet) == [other, gone]
    submit(wide_live_fleet, "second")
    assert where(wide_live_fleet, "second") == other
    held = wide_live_fleet.plan()
    assert set(held.actions.values()) == {"hold"}
    assert not is_complete(wide_live_fleet, "first")
    replace_revoked_login(wide_live_fleet, gone)

    end(wide_live_fleet, gone, "first")
    end(wide_live_fleet, other, "second")
    apply_until(wide_live_fleet, gone)
    assert is_complete(wide_live_fleet, "first")
    assert eventually(lambda: is_complete(wide_live_fleet, "second"))
    assert (births.of("first"), births.of("second")) == ([gone], [other])
    tidy_up(wide_live_fleet, gone)


def replace_revoked_login(live_fleet: LiveFleet, worker: str) -> None:
    """A worker on its way out needs its login to the end, as much as any other."""
    old = token(live_fleet, worker)
    live_fleet.api(worker).delete(account_path(live_fleet))
    # A server remembers for a moment whom it let in.
    eventually(lambda: live_fleet.apply().code == 0 and token(live_fleet, worker) != old, 60)
    eventually(lambda: connected(live_fleet, worker), 60)


def tidy_up(live_fleet: LiveFleet, gone: str) -> None:
    """Apply until nothing of the fleet is left on a worker, nor of the worker on the manager."""
    eventually(lambda: live_fleet.apply().code == 0 and parent(live_fleet, gone) is None, 60)
    assert live_fleet.members(gone) == {}
    assert live_fleet.api(gone).find(f"/api/v1/namespaces/{live_fleet.name}")
    assert not live_fleet.finds("multikueueclusters", f"{live_fleet.name}-{gone}", "manager")
    assert live_fleet.api("manager").find(secret_path(live_fleet, gone)) is None
    live_fleet.converge()
    assert not remembers(live_fleet, gone)


def test_worker_that_gets_another_name_is_not_a_second_cluster_while_a_job_runs_there(
    wide_live_fleet: LiveFleet,
) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "first")
    old = where(wide_live_fleet, "first")
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(
        path.read_text().replace(f"name: {wide_live_fleet.name}-{old}\n", f"name: {wide_live_fleet.name}-far\n")
    )
    wide_live_fleet.commit_all()

    applied = wide_live_fleet.apply()
    assert applied.code == 3, applied
    assert f"its inventory names it {wide_live_fleet.name}-{old}" in applied.out
    assert wide_live_fleet.api("manager").find(secret_path(wide_live_fleet, "far")) is None
    assert wide_live_fleet.run("credentials rotate").code == 3
    assert wide_live_fleet.api("manager").find(secret_path(wide_live_fleet, "far")) is None

    end(wide_live_fleet, old, "first")
    eventually(lambda: is_complete(wide_live_fleet, "first"), 60)
    assert births.of("first") == [old]
    # When nothing of the old name is left, the new one comes in.
    eventually(lambda: wide_live_fleet.apply().code == 0, 120)
    eventually(lambda: connected(wide_live_fleet, "far"), 60)


def test_worker_that_comes_back_while_it_leaves_takes_jobs_again(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, without=["worker1"])
    assert wide_live_fleet.apply().code == 0
    assert stop_policy(wide_live_fleet, "worker1") == "Hold"
    commit_fleet(wide_live_fleet)
    wide_live_fleet.converge()
    assert stop_policy(wide_live_fleet, "worker1") == "None"
    assert memberships(wide_live_fleet) == ["worker1", "worker2"]


def test_worker_that_left_and_cannot_be_reached_stays_a_member_while_a_job_runs_there(
    wide_live_fleet: LiveFleet,
) -> None:
    start_fleet(wide_live_fleet)
    submit(wide_live_fleet, "far")
    gone = where(wide_live_fleet, "far")
    commit_fleet(wide_live_fleet, without=[gone])
    wide_live_fleet.sandbox.kill(f"{gone}/kube-apiserver")
    try:
        blind = wide_live_fleet.apply()
        assert blind.code == 0, blind
        assert gone in memberships(wide_live_fleet)
        assert "1 of the manager's workloads still run there" in waiting(wide_live_fleet.plan(), wide_live_fleet)[gone]
    finally:
        revive(wide_live_fleet.sandbox, gone)
    # Kueue itself starts a job of a lost worker again elsewhere, after a while: how often it ran is its own matter.
    assert eventually(lambda: ends_anywhere(wide_live_fleet, "far"), 60)
    apply_until(wide_live_fleet, gone)
    tidy_up(wide_live_fleet, gone)


def test_worker_that_left_and_cannot_be_reached_is_let_go_and_tidied_up_when_it_is_back(
    wide_live_fleet: LiveFleet,
) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, without=["worker1"])
    wide_live_fleet.sandbox.kill("worker1/kube-apiserver")
    try:
        blind = wide_live_fleet.apply()
        assert blind.code == 0, blind
        assert memberships(wide_live_fleet) == ["worker2"]
        assert not wide_live_fleet.finds("multikueueclusters", f"{wide_live_fleet.name}-worker1", "manager")
        forget = wide_live_fleet.set_name.forget(f"{wide_live_fleet.name}-worker1")
        assert forget in waiting(wide_live_fleet.plan(), wide_live_fleet)["worker1"]
        assert remembers(wide_live_fleet, "worker1")
    finally:
        revive(wide_live_fleet.sandbox, "worker1")
    assert wide_live_fleet.members("worker1")
    tidy_up(wide_live_fleet, "worker1")


def test_address_that_kfleet_did_not_write_is_not_contacted_and_can_be_forgotten(wide_live_fleet: LiveFleet) -> None:
    """Whoever writes ConfigMaps in Kueue's namespace must not send kfleet, with its credentials, elsewhere."""
    start_fleet(wide_live_fleet)
    manager, name = wide_live_fleet.api("manager"), f"{wide_live_fleet.name}-forged"
    with proxied(wide_live_fleet.sandbox, "worker2") as proxy:
        kubeconfig = proxy.kubeconfig(wide_live_fleet.folder.parent / "forged.yaml")
        record = {"namespace": "kueue-system", "context": "worker2", "kubeconfig": str(kubeconfig)}
        manager.patch(wide_live_fleet.set_name.path, {"data": {name: json.dumps(record)}})
        for _ in range(2):
            told = wide_live_fleet.plan().record
            assert told["contacted"] == [] and "not contacted: the annotation" in told["waiting"][0]["why"]
            assert wide_live_fleet.apply().code == 0
        assert proxy.requests == []
    _, *arguments = shlex.split(wide_live_fleet.set_name.forget(name))
    wide_live_fleet.kubectl(*arguments, cluster="manager")
    wide_live_fleet.converge()
    assert wide_live_fleet.plan().record["waiting"] == []
    assert remembers(wide_live_fleet, "worker1")


def test_worker_that_a_queue_no_longer_names_stays_a_member_while_a_job_runs_there(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "inner")
    gone = where(wide_live_fleet, "inner")
    other = other_than(gone)
    commit_fleet(wide_live_fleet, clusters={"names": [f"{wide_live_fleet.name}-{other}"]})
    assert wide_live_fleet.apply().code == 0
    assert stop_policy(wide_live_fleet, gone) == "Hold"
    assert memberships(wide_live_fleet) == [other, gone]
    assert wide_live_fleet.finds("localqueues", "main", gone, namespace=wide_live_fleet.name)
    end(wide_live_fleet, gone, "inner")
    apply_until(wide_live_fleet, gone)
    assert is_complete(wide_live_fleet, "inner")
    assert births.of("inner") == [gone]
    wide_live_fleet.converge()
    assert wide_live_fleet.api(gone).find(f"{KUEUE_ROOT}/clusterqueues/{wide_live_fleet.name}-q") is None
