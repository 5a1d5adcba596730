"""What a worker on its way out may not lose, on real clusters: a look or a write that fails takes nothing from it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests import fast_yaml
from tests.builders import flavor, main_tenant, open_queue
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import WORKERS, secret_path
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    end,
    is_complete,
    memberships,
    other_than,
    start_fleet,
    submit,
    where,
)
from tests.support import eventually

BLIND = Fault(Deed.ANSWER, "/multikueueconfigs", "GET", status=500, reason="InternalError")
PAGE = "<html><title>404 Not Found</title></html>"
LOST_BY_A_PROXY = Fault(Deed.ANSWER, "/multikueueconfigs", "GET", status=404, page=PAGE, times=2)
MANY_DELETES = {"prune": {"maxDeletes": 100, "maxPercent": 100}}
DENIED = Fault(Deed.ANSWER, "/multikueueconfigs/", status=403, reason="Forbidden", times=1000)


@pytest.fixture
def proxy(wide_live_fleet: LiveFleet) -> Iterator[FaultProxy]:
    """Stands before the manager of the fleet."""
    with proxied(wide_live_fleet.sandbox, "manager") as proxy:
        yield proxy


def change_manager(live_fleet: LiveFleet, proxy: FaultProxy, **fields: Any) -> None:
    """Let kfleet reach the manager through a proxy, from the next commit on; `fields` are more of its spec."""
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    manager = next(entry for entry in documents if entry["metadata"]["name"] == f"{live_fleet.name}-manager")
    kubeconfig = proxy.kubeconfig(live_fleet.folder.parent / "proxy.yaml")
    manager["spec"] |= {"access": {"context": "manager", "kubeconfig": str(kubeconfig)}, **fields}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def belongings(live_fleet: LiveFleet, worker: str) -> set[str]:
    """What the fleet has on a worker, and on the manager for it; it may let go of namespaces at any time."""
    everything = {*live_fleet.members(worker), *(f"manager/{name}" for name in live_fleet.members("manager"))}
    return {name for name in everything if "namespaces//" not in name}


def has_login(live_fleet: LiveFleet, worker: str) -> bool:
    role = f"kfleet-{live_fleet.name}-multikueue"
    parts = (
        f"clusterroles//{role}",
        f"clusterrolebindings//{role}",
        f"serviceaccounts/{SYSTEM}/multikueue-{live_fleet.name}",
    )
    is_known = live_fleet.api("manager").find(secret_path(live_fleet, worker)) is not None
    return is_known and live_fleet.members(worker).keys() >= {*parts}


@pytest.mark.parametrize("fault", [BLIND, LOST_BY_A_PROXY], ids=["500", "404 of a proxy"])
def test_failed_look_at_the_configs_takes_nothing_from_a_worker_that_leaves(
    wide_live_fleet: LiveFleet, proxy: FaultProxy, fault: Fault
) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    gone = where(wide_live_fleet, "kept")
    before = belongings(wide_live_fleet, gone)
    left_queue = {"clusters": {"names": [f"{wide_live_fleet.name}-{other_than(gone)}"]}}
    left_spec = {"without": [gone]}
    for change in (left_queue, left_spec):
        commit_fleet(wide_live_fleet, **change)
        change_manager(wide_live_fleet, proxy)
        proxy.inject(fault)
        planned = wide_live_fleet.plan()
        assert (planned.code, set(planned.actions.values())) == (4, {"hold"}), planned
        proxy.inject(fault)
        blind = wide_live_fleet.apply()
        assert blind.code == 4, blind
        assert f"gap: {wide_live_fleet.name}-{other_than(gone)}: jobs of MultiKueue: " in blind.out
        assert "the members of the live config were not observed (" in blind.out
        assert len([asked for asked in proxy.requests if "/multikueueconfigs" in asked]) > 1
        assert gone in memberships(wide_live_fleet)
        assert belongings(wide_live_fleet, gone) == before
    end(wide_live_fleet, gone, "kept")
    apply_until(wide_live_fleet, gone)
    assert is_complete(wide_live_fleet, "kept")
    assert births.of("kept") == [gone]


@pytest.mark.parametrize("after", [0, 1], ids=["when connecting", "when looking"])
def test_inventory_that_a_proxy_does_not_find_makes_no_worker_forgotten(
    wide_live_fleet: LiveFleet, proxy: FaultProxy, after: int
) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    gone = where(wide_live_fleet, "kept")
    commit_fleet(wide_live_fleet, without=[gone])
    change_manager(wide_live_fleet, proxy)
    assert wide_live_fleet.apply().code == 0
    before = belongings(wide_live_fleet, gone)

    path = f"/configmaps/{wide_live_fleet.set_name.name}$"
    proxy.inject(Fault(Deed.ANSWER, path, "GET", status=404, page=PAGE, after=after))
    blind = wide_live_fleet.apply()
    assert blind.code == 4, blind
    assert belongings(wide_live_fleet, gone) == before and gone in memberships(wide_live_fleet)

    proxy.let_go()
    end(wide_live_fleet, gone, "kept")
    apply_until(wide_live_fleet, gone)
    assert is_complete(wide_live_fleet, "kept")
    assert births.of("kept") == [gone]
    eventually(lambda: wide_live_fleet.apply().code == 0 and not wide_live_fleet.members(gone), 60)


def test_worker_keeps_its_login_when_the_last_queue_goes_while_a_job_runs(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "last")
    worker = where(wide_live_fleet, "last")
    eventually(lambda: wide_live_fleet.queue(f"{wide_live_fleet.name}-q", "manager")["status"]["reservingWorkloads"])
    wide_live_fleet.commit(flavor(f"{wide_live_fleet.name}-cpu"), policy=MANY_DELETES)
    for _ in range(2):
        applied = wide_live_fleet.apply()
        assert applied.code == 4, applied.out
        # Kueue asks every worker of the config for the job, also those where it does not run.
        assert {name: has_login(wide_live_fleet, name) for name in WORKERS} == dict.fromkeys(WORKERS, True)
        assert wide_live_fleet.finds("localqueues", "main", worker, namespace=wide_live_fleet.name)

    end(wide_live_fleet, worker, "last")
    assert eventually(lambda: is_complete(wide_live_fleet, "last"), 60)
    assert births.of("last") == [worker]
    eventually(
        lambda: wide_live_fleet.apply().code == 0 and not any(has_login(wide_live_fleet, name) for name in WORKERS), 60
    )
    eventually(lambda: not (wide_live_fleet.apply().code or wide_live_fleet.plan().actions), 60)


def test_queue_that_shall_no_longer_send_waits_until_its_jobs_have_ended(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births, name = Births(wide_live_fleet), f"{wide_live_fleet.name}-q"
    submit(wide_live_fleet, "sent")
    worker = where(wide_live_fleet, "sent")
    eventually(lambda: wide_live_fleet.queue(name, "manager")["status"]["reservingWorkloads"])
    everywhere: dict[str, Any] = {"clusters": {"names": [*wide_live_fleet.contexts]}}
    own = (
        flavor(f"{wide_live_fleet.name}-cpu", **everywhere),
        open_queue(name, f"{wide_live_fleet.name}-cpu", **everywhere),
    )
    wide_live_fleet.commit(*own, main_tenant(wide_live_fleet.name, name), policy=MANY_DELETES)
    applied = wide_live_fleet.apply()
    assert applied.code == 4, applied.out
    assert "1 workloads dispatched to workers hold its quota; stop the queue, and" in applied.out
    assert has_login(wide_live_fleet, worker) and worker in memberships(wide_live_fleet)

    end(wide_live_fleet, worker, "sent")
    assert eventually(lambda: is_complete(wide_live_fleet, "sent"), 60)
    assert births.of("sent") == [worker]
    eventually(lambda: not (wide_live_fleet.apply().code or wide_live_fleet.plan().actions), 60)
    assert "admissionChecksStrategy" not in wide_live_fleet.queue(name, "manager")["spec"]
    assert not any(has_login(wide_live_fleet, one) for one in WORKERS)


def test_worker_loses_nothing_before_the_manager_has_let_go_of_it(
    wide_live_fleet: LiveFleet, proxy: FaultProxy
) -> None:
    start_fleet(wide_live_fleet)
    commit_fleet(wide_live_fleet, without=["worker1"])
    change_manager(wide_live_fleet, proxy)
    assert wide_live_fleet.apply().code == 0
    eventually(lambda: "delete" in wide_live_fleet.plan().actions.values())
    before = belongings(wide_live_fleet, "worker1")

    proxy.inject(DENIED)
    denied = wide_live_fleet.apply()
    assert_later(denied.out, wide_live_fleet, f"not all changes of {wide_live_fleet.name}-manager were made")
    assert (denied.code, belongings(wide_live_fleet, "worker1")) == (4, before), denied
    proxy.let_go()

    change_manager(wide_live_fleet, proxy, suspend=True)
    suspended = wide_live_fleet.apply()
    assert_later(suspended.out, wide_live_fleet, "is held: the fleet or the cluster is suspended")
    assert (suspended.code, belongings(wide_live_fleet, "worker1")) == (4, before), suspended

    change_manager(wide_live_fleet, proxy, suspend=False)
    apply_until(wide_live_fleet, "worker1")
    assert wide_live_fleet.members("worker1") == {}


def assert_later(told: str, live_fleet: LiveFleet, why: str) -> None:
    (line,) = [line for line in told.splitlines() if line.startswith(f"{live_fleet.name}-worker1/ServiceAccount/")]
    assert ": delete: not tried, because " in line and line.endswith(why)
