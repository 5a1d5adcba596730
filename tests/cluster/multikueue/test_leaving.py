"""What a worker on its way out may not lose, on real clusters: a look or a write that fails takes nothing from it."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.engine.worlds import SYSTEM, World
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    end,
    is_complete,
    other_than,
    seats,
    start_fleet,
    submit,
    where,
)
from tests.cluster.multikueue.worlds import WORKERS, secret_path
from tests.documents import flavor, queue, tenant
from tests.support import eventually

BLIND = Fault(Deed.ANSWER, "/multikueueconfigs", "GET", status=500, reason="InternalError")
MANY_DELETES = {"prune": {"maxDeletes": 100, "maxPercent": 100}}
DENIED = Fault(Deed.ANSWER, "/multikueueconfigs/", status=403, reason="Forbidden", times=1000)


@pytest.fixture
def proxy(wide_world: World) -> Iterator[FaultProxy]:
    """Stands before the manager of the fleet."""
    with proxied(wide_world.sandbox, "manager") as proxy:
        yield proxy


def change_manager(world: World, proxy: FaultProxy, **fields: Any) -> None:
    """Let kfleet reach the manager through a proxy, from the next commit on; `fields` are more of its spec."""
    path = world.folder / "fleet" / "fleet.yaml"
    documents = [*yaml.safe_load_all(path.read_text())]
    manager = next(entry for entry in documents if entry["metadata"]["name"] == f"{world.name}-manager")
    kubeconfig = proxy.kubeconfig(world.folder.parent / "proxy.yaml")
    manager["spec"] |= {"access": {"context": "manager", "kubeconfig": str(kubeconfig)}, **fields}
    path.write_text(yaml.safe_dump_all(documents))
    world.commit_all()


def belongings(world: World, worker: str) -> set[str]:
    """What the fleet has on a worker, and on the manager for it; it may let go of namespaces at any time."""
    everything = {*world.members(worker), *(f"manager/{name}" for name in world.members("manager"))}
    return {name for name in everything if "namespaces//" not in name}


def has_login(world: World, worker: str) -> bool:
    role = f"kfleet-{world.name}-multikueue"
    parts = (
        f"clusterroles//{role}",
        f"clusterrolebindings//{role}",
        f"serviceaccounts/{SYSTEM}/multikueue-{world.name}",
    )
    is_known = world.api("manager").find(secret_path(world, worker)) is not None
    return is_known and world.members(worker).keys() >= {*parts}


def test_failed_look_at_the_configs_takes_nothing_from_a_worker_that_leaves(
    wide_world: World, proxy: FaultProxy
) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "kept")
    gone = where(wide_world, "kept")
    before = belongings(wide_world, gone)
    left_queue = {"clusters": {"names": [f"{wide_world.name}-{other_than(gone)}"]}}
    left_spec = {"without": [gone]}
    for change in (left_queue, left_spec):
        commit_fleet(wide_world, **change)
        change_manager(wide_world, proxy)
        proxy.inject(BLIND)
        planned = wide_world.plan()
        assert (planned.code, set(planned.actions.values())) == (4, {"hold"}), planned
        proxy.inject(BLIND)
        blind = wide_world.apply()
        assert blind.code == 4, blind
        assert f"gap: {wide_world.name}-{other_than(gone)}: jobs of MultiKueue: " in blind.out
        assert "who sits in the live config was not seen (" in blind.out
        assert len([asked for asked in proxy.requests if "/multikueueconfigs" in asked]) > 1
        assert gone in seats(wide_world)
        assert belongings(wide_world, gone) == before
    end(wide_world, gone, "kept")
    apply_until(wide_world, gone)
    assert is_complete(wide_world, "kept")
    assert births.of("kept") == [gone]


def test_worker_keeps_its_login_when_the_last_queue_goes_while_a_job_runs(wide_world: World) -> None:
    start_fleet(wide_world)
    births = Births(wide_world)
    submit(wide_world, "last")
    worker = where(wide_world, "last")
    eventually(lambda: wide_world.queue(f"{wide_world.name}-q", "manager")["status"]["reservingWorkloads"])
    wide_world.commit(flavor(f"{wide_world.name}-cpu"), policy=MANY_DELETES)
    for _ in range(2):
        applied = wide_world.apply()
        assert applied.code == 0, applied.out
        # Kueue asks every worker of the config for the job, also those where it does not run.
        assert {name: has_login(wide_world, name) for name in WORKERS} == dict.fromkeys(WORKERS, True)
        assert wide_world.finds("localqueues", "main", worker, namespace=wide_world.name)

    end(wide_world, worker, "last")
    assert eventually(lambda: is_complete(wide_world, "last"), 60)
    assert births.of("last") == [worker]
    eventually(lambda: wide_world.apply().code == 0 and not any(has_login(wide_world, name) for name in WORKERS), 60)
    eventually(lambda: not (wide_world.apply().code or wide_world.plan().actions), 60)


def test_queue_that_shall_send_no_more_waits_until_its_jobs_have_ended(wide_world: World) -> None:
    start_fleet(wide_world)
    births, name = Births(wide_world), f"{wide_world.name}-q"
    submit(wide_world, "sent")
    worker = where(wide_world, "sent")
    eventually(lambda: wide_world.queue(name, "manager")["status"]["reservingWorkloads"])
    everywhere = {"clusters": {"names": [*wide_world.contexts]}}
    own = flavor(f"{wide_world.name}-cpu", **everywhere), queue(name, f"{wide_world.name}-cpu", **everywhere)
    wide_world.commit(*own, tenant(wide_world.name, name), policy=MANY_DELETES)
    applied = wide_world.apply()
    assert applied.code == 0, applied.out
    assert "1 workloads that it sends to workers hold its quota; stop it, and" in applied.out
    assert has_login(wide_world, worker) and worker in seats(wide_world)

    end(wide_world, worker, "sent")
    assert eventually(lambda: is_complete(wide_world, "sent"), 60)
    assert births.of("sent") == [worker]
    eventually(lambda: not (wide_world.apply().code or wide_world.plan().actions), 60)
    assert "admissionChecksStrategy" not in wide_world.queue(name, "manager")["spec"]
    assert not any(has_login(wide_world, one) for one in WORKERS)


def test_worker_loses_nothing_before_the_manager_has_let_go_of_it(wide_world: World, proxy: FaultProxy) -> None:
    start_fleet(wide_world)
    commit_fleet(wide_world, without=["worker1"])
    change_manager(wide_world, proxy)
    assert wide_world.apply().code == 0
    eventually(lambda: "delete" in wide_world.plan().actions.values())
    before = belongings(wide_world, "worker1")

    proxy.inject(DENIED)
    denied = wide_world.apply()
    assert_later(denied.out, wide_world, f"not all changes of {wide_world.name}-manager were made")
    assert (denied.code, belongings(wide_world, "worker1")) == (4, before), denied
    proxy.let_go()

    change_manager(wide_world, proxy, suspend=True)
    suspended = wide_world.apply()
    assert_later(suspended.out, wide_world, "is held: the fleet or the cluster is suspended")
    assert (suspended.code, belongings(wide_world, "worker1")) == (4, before), suspended

    change_manager(wide_world, proxy, suspend=False)
    apply_until(wide_world, "worker1")
    assert wide_world.members("worker1") == {}


def assert_later(told: str, world: World, why: str) -> None:
    (line,) = [line for line in told.splitlines() if line.startswith(f"{world.name}-worker1/ServiceAccount/")]
    assert ": delete: not tried, because " in line and line.endswith(why)
