"""What leaves the fleet leaves the clusters: in order, never under running jobs, and never a namespace."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.apply import Patience, objects
from reconciler.edges.kubernetes import ApiServer
from reconciler.pipeline.online import apply_fleet, connect, plan_fleet
from tests.cluster.engine.worlds import KUEUE_ROOT, World
from tests.documents import Document, flavor, job, native, queue, tenant, workload
from tests.support import eventually

JOBS = "/apis/batch/v1/namespaces/{}/jobs"


def whole(name: str, **more: Any) -> tuple[Document, ...]:
    return flavor(name), queue(name, name, cohort=name, **more), tenant(name, name)


def rest(name: str) -> Document:
    return flavor(f"{name}-rest")


@pytest.fixture
def busy(world: World) -> World:
    """A fleet whose queue runs a job."""
    return start_job(world)


def start_job(world: World, **more: Any) -> World:
    world.commit(*whole(world.name, **more), rest(world.name))
    world.converge()
    world.api().create(job("running", world.name))
    eventually(lambda: world.queue(world.name)["status"]["admittedWorkloads"] == 1)
    return world


def test_object_that_took_the_name_of_a_leftover_stays(world: World) -> None:
    name = world.name
    world.commit(flavor(name), rest(name))
    world.converge()
    world.commit(rest(name))
    computed = world.computed()
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        path = f"{KUEUE_ROOT}/resourceflavors/{name}"
        world.api().delete(path)
        eventually(lambda: world.api().find(path) is None)
        again = world.api().create(native("ResourceFlavor", name, {}))
        outcomes = apply_fleet(computed, connections, plan, Patience())
    finally:
        connections.close()
    assert all(outcome.is_done for outcome in outcomes), outcomes
    assert [entry.attempts for outcome in outcomes for entry in outcome.outcomes] == [1]
    assert world.api().get(path)["metadata"]["uid"] == again["metadata"]["uid"]


def test_queue_that_left_the_fleet_goes_with_all_that_it_had(world: World) -> None:
    name = world.name
    world.commit(*whole(name), rest(name))
    world.converge()
    world.commit(rest(name))
    assert world.plan().actions == {
        f"worker1/Namespace/{name}": "update",
        f"worker1/ResourceFlavor/{name}": "delete",
        f"worker1/Cohort/{name}": "delete",
        f"worker1/ClusterQueue/{name}": "delete",
        f"worker1/LocalQueue/{name}/main": "delete",
    }
    world.converge()
    assert list(world.members()) == [f"resourceflavors//{name}-rest"]
    annotations = world.api().get(world.set_name.path)["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "ResourceFlavor.kueue.x-k8s.io"


def test_namespace_that_left_the_fleet_is_let_go_with_what_is_in_it(world: World) -> None:
    name = world.name
    settings: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": name}}
    labelled = tenant(name, name, namespaceLabels={"pod-security.kubernetes.io/enforce": "baseline"})
    world.commit(flavor(name), queue(name, name), labelled)
    world.converge()
    world.api().create(settings)
    world.commit(flavor(name), queue(name, name))
    change = world.plan().changes[f"worker1/Namespace/{name}"]
    assert (change["action"], change["reason"]) == ("update", "released")
    world.converge()
    namespace = world.api().get(f"/api/v1/namespaces/{name}")
    assert namespace["status"]["phase"] == "Active"
    labels, annotations = namespace["metadata"]["labels"], namespace["metadata"].get("annotations") or {}
    assert "applyset.kubernetes.io/part-of" not in labels and "kfleet.dev/wanted" not in annotations
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert world.api().get(f"/api/v1/namespaces/{name}/configmaps/mine")


def test_queue_with_a_running_job_is_held_until_the_job_ended(busy: World) -> None:
    name = busy.name
    busy.commit(rest(name))
    change = busy.plan().changes[f"worker1/ClusterQueue/{name}"]
    assert (change["action"], change["reason"]) == ("hold", "in_use")
    assert change["notes"] == [
        "1 workloads hold its quota; they may end, or set drainOnDelete before the queue is removed"
    ]
    held = busy.apply()
    assert held.code == 0, held
    assert busy.finds("clusterqueues", name) and busy.queue(name)["metadata"].get("deletionTimestamp") is None
    assert busy.finds("resourceflavors", name), "the flavor of a queue that is held was deleted"
    assert not busy.finds("localqueues", "main", namespace=name)
    busy.api().delete(f"{JOBS.format(name)}/running?propagationPolicy=Background")
    eventually(lambda: busy.queue(name)["status"].get("reservingWorkloads", 0) == 0)
    busy.converge()
    assert list(busy.members()) == [f"resourceflavors//{name}-rest"]


def test_queue_that_is_held_comes_back_to_the_fleet(busy: World) -> None:
    name = busy.name
    busy.commit(rest(name))
    assert busy.apply().code == 0
    busy.commit(*whole(name), rest(name))
    busy.converge()
    assert busy.queue(name)["status"]["admittedWorkloads"] == 1
    assert busy.finds("localqueues", "main", namespace=name)


def test_queue_that_says_so_is_drained_and_deleted(world: World) -> None:
    name = world.name
    start_job(world, drainOnDelete=True)
    world.commit(rest(name))
    change = world.plan().changes[f"worker1/ClusterQueue/{name}"]
    assert (change["action"], change["notes"]) == ("delete", ["1 workloads are evicted first"])
    world.converge()
    assert not world.finds("clusterqueues", name)
    # The job itself is its team's: it waits for another queue.
    assert world.api().get(f"{JOBS.format(name)}/running")["spec"]["suspend"]


def test_queue_whose_workload_does_not_end_stays_and_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    name = world.name
    monkeypatch.setattr(objects, "DRAINED_WITHIN", timedelta(seconds=3))
    world.commit(*whole(name, drainOnDelete=True), rest(name))
    world.converge()
    # Nobody listens to the eviction of a workload that is no job's.
    world.api().create(workload("alone", name))
    eventually(lambda: world.queue(name)["status"]["reservingWorkloads"] == 1)
    world.commit(rest(name))
    answer = world.apply()
    assert answer.code == 4
    queue_ref = f"worker1/ClusterQueue/{name}"
    assert f"{queue_ref}: delete: 1 workloads still hold its quota 3 s after it was stopped" in answer.out
    assert f"worker1/LocalQueue/{name}/main: delete: not tried, because {queue_ref} is still there" in answer.out
    assert world.queue(name)["metadata"].get("deletionTimestamp") is None
    assert world.finds("localqueues", "main", namespace=name)
    world.api().delete(f"{KUEUE_ROOT}/namespaces/{name}/workloads/alone")
    eventually(lambda: world.queue(name)["status"].get("reservingWorkloads", 0) == 0)
    monkeypatch.undo()
    world.converge()


def test_queue_that_was_stopped_to_go_and_stays_after_all_takes_jobs_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = world.name
    monkeypatch.setattr(objects, "DRAINED_WITHIN", timedelta(seconds=1))
    world.commit(*whole(name, drainOnDelete=True), rest(name))
    world.converge()
    world.api().create(workload("alone", name))
    eventually(lambda: world.queue(name)["status"]["reservingWorkloads"] == 1)
    world.commit(rest(name))
    assert world.apply().code == 4
    assert world.queue(name)["spec"]["stopPolicy"] == "HoldAndDrain"
    world.commit(*whole(name, drainOnDelete=True), rest(name))
    fields = world.plan().fields(f"worker1/ClusterQueue/{name}")
    assert [(entry["path"], entry["old"], entry["new"]) for entry in fields.values()] == [
        ("spec.stopPolicy", "HoldAndDrain", None)
    ]
    world.converge()
    assert world.queue(name)["spec"]["stopPolicy"] == "None"
    managers = {entry["manager"] for entry in world.queue(name)["metadata"]["managedFields"]}
    assert "kfleet-drain" not in managers


def test_kind_that_the_server_does_not_name_for_a_while_stays_in_the_inventory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is of it could not be looked for, and nobody else remembers that it may be there."""
    name = world.name
    world.commit(*whole(name), rest(name))
    world.converge()
    world.commit(*whole(name)[:-1], rest(name))
    discover = ApiServer.discover
    monkeypatch.setattr(
        ApiServer, "discover", lambda api: tuple(kind for kind in discover(api) if kind.kind != "LocalQueue")
    )
    assert world.apply().code == 0
    assert world.finds("localqueues", "main", namespace=name)
    monkeypatch.undo()
    assert world.plan().actions == {f"worker1/LocalQueue/{name}/main": "delete"}
    world.converge()
    assert not world.finds("localqueues", "main", namespace=name)


def test_object_that_does_not_go_is_reported_with_its_finalizers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    name = world.name
    monkeypatch.setattr(objects, "GONE_WITHIN", timedelta(seconds=2))
    world.commit(*whole(name), rest(name))
    world.converge()
    path = f"{KUEUE_ROOT}/namespaces/{name}/localqueues/main"
    world.api().patch(path, {"metadata": {"finalizers": ["example.org/wait"]}})
    world.commit(rest(name))
    answer = world.apply()
    assert answer.code == 4
    problem = "delete: still there 2 s after its deletion; finalizers: example.org/wait"
    assert f"worker1/LocalQueue/{name}/main: {problem}" in answer.out
    assert world.finds("clusterqueues", name)
    again = world.plan().changes[f"worker1/LocalQueue/{name}/main"]
    assert (again["action"], again["reason"]) == ("hold", "going")
    world.api().patch(path, {"metadata": {"finalizers": None}})
    monkeypatch.undo()
    world.converge()
    assert list(world.members()) == [f"resourceflavors//{name}-rest"]


def test_flavor_that_a_queue_of_somebody_else_uses_is_held(world: World) -> None:
    name = world.name
    world.commit(flavor(name), rest(name))
    world.converge()
    foreign = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": f"{name}-foreign"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]}],
                }
            ]
        },
    }
    world.kubectl("create", "-f", "-", given=foreign)
    world.commit(rest(name), queue(f"{name}-own", f"{name}-rest"))
    assert world.plan().actions[f"worker1/ResourceFlavor/{name}"] == "hold"
    assert world.apply().code == 0
    assert world.finds("resourceflavors", name)
    world.kubectl("delete", "clusterqueue", f"{name}-foreign")
    world.converge()
    assert not world.finds("resourceflavors", name)


def test_namespace_that_somebody_deletes_stops_only_what_is_in_it(world: World) -> None:
    name = world.name
    world.commit(*whole(name))
    world.converge()
    blocker: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "blocker", "namespace": name, "finalizers": ["example.org/wait"]},
    }
    world.api().create(blocker)
    world.kubectl("delete", "namespace", name, "--wait=false")
    eventually(lambda: not world.finds("localqueues", "main", namespace=name))
    world.commit(*whole(name), rest(name))
    changes = world.plan().changes
    for ending in (f"worker1/Namespace/{name}", f"worker1/LocalQueue/{name}/main"):
        assert (changes[ending]["action"], changes[ending]["reason"]) == ("hold", "ending")
    applied = world.apply()
    assert applied.code == 0 and "its namespace is being deleted" in applied.out, applied
    assert world.finds("resourceflavors", f"{name}-rest")
    world.api().patch(f"/api/v1/namespaces/{name}/configmaps/blocker", {"metadata": {"finalizers": None}})
    eventually(lambda: world.api().find(f"/api/v1/namespaces/{name}") is None, 60)
    world.converge()
    assert world.finds("localqueues", "main", namespace=name)


def test_flavor_and_queue_swap_in_one_commit(world: World) -> None:
    name = world.name
    world.commit(*whole(name))
    world.converge()
    world.commit(flavor(f"{name}-new"), queue(name, f"{name}-new", cohort=name), tenant(name, name))
    assert world.plan().actions == {
        f"worker1/ResourceFlavor/{name}-new": "create",
        f"worker1/ClusterQueue/{name}": "update",
        f"worker1/ResourceFlavor/{name}": "delete",
    }
    world.converge()
