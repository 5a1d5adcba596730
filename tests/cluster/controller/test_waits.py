"""What one cluster takes long for keeps nobody else waiting, and nobody who has to stop."""

import threading
from collections.abc import Callable

import pytest

from reconciler.apply.retry import RetryPolicy
from reconciler.pipeline.observe import connect
from reconciler.plan.model import ClusterOutcome
from tests.builders import Document, flavor, team_documents, workload
from tests.cluster.controller.conftest import StartController
from tests.cluster.controller.test_follow import told
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.cluster.stages import apply_fleet, plan_fleet
from tests.support import eventually


def drained_fleet(name: str) -> tuple[Document, ...]:
    return *team_documents(name, drainOnDelete=True), flavor(f"{name}-rest")


@pytest.fixture
def busy(live_fleet: LiveFleet) -> LiveFleet:
    """A fleet whose queue holds a workload that does not listen when it is evicted."""
    live_fleet.commit(*drained_fleet(live_fleet.name))
    live_fleet.converge()
    live_fleet.api().create(workload("alone", live_fleet.name))
    eventually(lambda: live_fleet.queue(live_fleet.name)["status"]["reservingWorkloads"] == 1)
    return live_fleet


def is_stopped(live_fleet: LiveFleet) -> bool:
    return bool(live_fleet.queue(live_fleet.name)["spec"].get("stopPolicy") == "HoldAndDrain")


def end_workload(live_fleet: LiveFleet) -> None:
    live_fleet.api().delete(f"{KUEUE_ROOT}/namespaces/{live_fleet.name}/workloads/alone")


def apply_with(live_fleet: LiveFleet, forbidden: Callable[[], str]) -> list[ClusterOutcome]:
    computed = live_fleet.computed()
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        return list(apply_fleet(computed, connections, plan, RetryPolicy(forbidden=forbidden)))
    finally:
        connections.close()


def test_drain_ends_when_writing_is_forbidden(busy: LiveFleet) -> None:
    busy.commit(flavor(f"{busy.name}-rest"))
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


def test_run_goes_on_while_a_queue_is_drained(busy: LiveFleet, start: StartController) -> None:
    name = busy.name
    controller = start("--interval", "1")
    eventually(lambda: told(busy)["result"] == "applied")
    busy.commit(flavor(f"{name}-rest"))
    eventually(lambda: told(busy)["result"] == "incomplete")
    queue_ref = f"worker1/ClusterQueue/{name}"
    assert told(busy)["message"] == f"{queue_ref}: 1 workloads still hold its quota"
    busy.commit(flavor(f"{name}-rest"), flavor(f"{name}-more"))
    eventually(lambda: busy.finds("resourceflavors", f"{name}-more"))
    eventually(lambda: told(busy)["result"] == "incomplete")
    assert busy.finds("localqueues", "main", namespace=name)
    assert controller.metric('kfleet_writes_total{action="delete",cluster="worker1",result="waiting"}') > 0
    assert not controller.said("write failed")
    end_workload(busy)
    eventually(lambda: not busy.finds("clusterqueues", name))
    eventually(lambda: told(busy)["result"] == "applied")
    assert controller.stop() == 0


def test_run_goes_on_while_an_object_does_not_go(live_fleet: LiveFleet, start: StartController) -> None:
    name = live_fleet.name
    live_fleet.commit(*drained_fleet(name))
    start("--interval", "1")
    eventually(lambda: live_fleet.finds("localqueues", "main", namespace=name))
    path = f"{KUEUE_ROOT}/namespaces/{name}/localqueues/main"
    live_fleet.api().patch(path, {"metadata": {"finalizers": ["example.org/wait"]}})
    live_fleet.commit(flavor(f"{name}-rest"))
    eventually(lambda: told(live_fleet)["message"].startswith(f"worker1/LocalQueue/{name}/main: "))
    # First the delete that waited for it, then every plan that finds it.
    eventually(lambda: told(live_fleet)["message"].endswith("example.org/wait"))
    assert told(live_fleet)["result"] == "incomplete"
    live_fleet.api().patch(path, {"metadata": {"finalizers": None}})
    eventually(lambda: not live_fleet.finds("clusterqueues", name))
    eventually(lambda: told(live_fleet)["result"] == "applied")
