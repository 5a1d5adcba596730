"""What one cluster takes long for keeps nobody else waiting, and nobody who has to stop."""

import threading
from collections.abc import Callable

import pytest

from reconciler.apply import Patience
from reconciler.outcome import ClusterOutcome
from reconciler.pipeline.online import apply_fleet, connect, plan_fleet
from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.cluster.run.conftest import StartController
from tests.cluster.run.test_follow import told
from tests.documents import Document, flavor, queue, tenant, workload
from tests.support import eventually


def drained_fleet(name: str) -> tuple[Document, ...]:
    return flavor(name), queue(name, name, drainOnDelete=True), tenant(name, name), rest(name)


def rest(name: str) -> Document:
    return flavor(f"{name}-rest")


@pytest.fixture
def busy(world: World) -> World:
    """A fleet whose queue holds a workload that does not listen when it is evicted."""
    world.commit(*drained_fleet(world.name))
    world.converge()
    world.api().create(workload("alone", world.name))
    eventually(lambda: world.queue(world.name)["status"]["reservingWorkloads"] == 1)
    return world


def is_stopped(world: World) -> bool:
    return bool(world.queue(world.name)["spec"].get("stopPolicy") == "HoldAndDrain")


def end_workload(world: World) -> None:
    world.api().delete(f"{KUEUE_ROOT}/namespaces/{world.name}/workloads/alone")


def apply_with(world: World, forbidden: Callable[[], str]) -> list[ClusterOutcome]:
    computed = world.computed()
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        return list(apply_fleet(computed, connections, plan, Patience(forbidden=forbidden)))
    finally:
        connections.close()


def test_drain_ends_when_writing_is_forbidden(busy: World) -> None:
    busy.commit(rest(busy.name))
    lost = threading.Event()
    found: list[ClusterOutcome] = []
    applying = threading.Thread(
        target=lambda: found.extend(apply_with(busy, lambda: "the lease is lost" if lost.is_set() else ""))
    )
    applying.start()
    eventually(lambda: is_stopped(busy))
    lost.set()
    applying.join()
    problems = {str(one.ref): one.problem for outcome in found for one in outcome.outcomes}
    assert problems[f"worker1/ClusterQueue/{busy.name}"] == "the lease is lost"
    assert busy.finds("localqueues", "main", namespace=busy.name)
    end_workload(busy)


def test_run_goes_on_while_a_queue_is_drained(busy: World, start: StartController) -> None:
    name = busy.name
    controller = start("--interval", "1")
    eventually(lambda: told(busy)["result"] == "applied")
    busy.commit(rest(name))
    eventually(lambda: told(busy)["result"] == "incomplete")
    queue_ref = f"worker1/ClusterQueue/{name}"
    assert told(busy)["message"] == f"{queue_ref}: 1 workloads still hold its quota"
    busy.commit(rest(name), flavor(f"{name}-more"))
    eventually(lambda: busy.finds("resourceflavors", f"{name}-more"))
    eventually(lambda: told(busy)["result"] == "incomplete")
    assert busy.finds("localqueues", "main", namespace=name)
    assert controller.metric('kfleet_writes_total{action="delete",cluster="worker1",result="waiting"}') > 0
    assert not controller.said("write failed")
    end_workload(busy)
    eventually(lambda: not busy.finds("clusterqueues", name))
    eventually(lambda: told(busy)["result"] == "applied")
    assert controller.stop() == 0


def test_run_goes_on_while_an_object_does_not_go(world: World, start: StartController) -> None:
    name = world.name
    world.commit(*drained_fleet(name))
    start("--interval", "1")
    eventually(lambda: world.finds("localqueues", "main", namespace=name))
    path = f"{KUEUE_ROOT}/namespaces/{name}/localqueues/main"
    world.api().patch(path, {"metadata": {"finalizers": ["example.org/wait"]}})
    world.commit(rest(name))
    stays = f"worker1/LocalQueue/{name}/main: still there; finalizers: example.org/wait"
    eventually(lambda: told(world)["message"] == stays)
    assert told(world)["result"] == "incomplete"
    world.api().patch(path, {"metadata": {"finalizers": None}})
    eventually(lambda: not world.finds("clusterqueues", name))
    eventually(lambda: told(world)["result"] == "applied")
