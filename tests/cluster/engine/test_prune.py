"""What leaves the fleet leaves the clusters: in order, never under running jobs, and never a namespace."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.apply import Patience, objects
from reconciler.edges.kubernetes import ApiServer
from reconciler.pipeline.online import apply_fleet, connect, plan_fleet
from tests.builders import (
    Document,
    cpu_group,
    flavor,
    main_job,
    main_tenant,
    native,
    open_queue,
    team_documents,
    workload,
)
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

JOBS = "/apis/batch/v1/namespaces/{}/jobs"


def whole(name: str, **more: Any) -> tuple[Document, ...]:
    return team_documents(name, cohort=name, **more)


def rest(name: str) -> Document:
    return flavor(f"{name}-rest")


@pytest.fixture
def busy(live_fleet: LiveFleet) -> LiveFleet:
    """A fleet whose queue runs a job."""
    return start_job(live_fleet)


def start_job(live_fleet: LiveFleet, **more: Any) -> LiveFleet:
    live_fleet.commit(*whole(live_fleet.name, **more), rest(live_fleet.name))
    live_fleet.converge()
    live_fleet.api().create(main_job("running", live_fleet.name))
    eventually(lambda: live_fleet.queue(live_fleet.name)["status"]["admittedWorkloads"] == 1)
    return live_fleet


def test_object_that_took_the_name_of_a_leftover_stays(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(rest(name))
    computed = live_fleet.computed()
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        path = f"{KUEUE_ROOT}/resourceflavors/{name}"
        live_fleet.api().delete(path)
        eventually(lambda: live_fleet.api().find(path) is None)
        again = live_fleet.api().create(native("ResourceFlavor", name, {}))
        outcomes = apply_fleet(computed, connections, plan, Patience())
    finally:
        connections.close()
    assert all(outcome.is_done for outcome in outcomes), outcomes
    assert [entry.attempts for outcome in outcomes for entry in outcome.outcomes] == [1]
    assert live_fleet.api().get(path)["metadata"]["uid"] == again["metadata"]["uid"]


def test_queue_that_left_the_fleet_goes_with_all_that_it_had(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(rest(name))
    assert live_fleet.plan().actions == {
        f"worker1/Namespace/{name}": "update",
        f"worker1/ResourceFlavor/{name}": "delete",
        f"worker1/Cohort/{name}": "delete",
        f"worker1/ClusterQueue/{name}": "delete",
        f"worker1/LocalQueue/{name}/main": "delete",
    }
    live_fleet.converge()
    assert list(live_fleet.members()) == [f"resourceflavors//{name}-rest"]
    annotations = live_fleet.api().get(live_fleet.set_name.path)["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "ResourceFlavor.kueue.x-k8s.io"


def test_namespace_that_left_the_fleet_is_let_go_with_what_is_in_it(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    settings: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": name}}
    labelled = main_tenant(name, name, namespaceLabels={"pod-security.kubernetes.io/enforce": "baseline"})
    live_fleet.commit(flavor(name), open_queue(name, name), labelled)
    live_fleet.converge()
    live_fleet.api().create(settings)
    live_fleet.commit(flavor(name), open_queue(name, name))
    change = live_fleet.plan().changes[f"worker1/Namespace/{name}"]
    assert (change["action"], change["reason"]) == ("update", "released")
    live_fleet.converge()
    namespace = live_fleet.api().get(f"/api/v1/namespaces/{name}")
    assert namespace["status"]["phase"] == "Active"
    labels, annotations = namespace["metadata"]["labels"], namespace["metadata"].get("annotations") or {}
    assert "applyset.kubernetes.io/part-of" not in labels and "kfleet.dev/wanted" not in annotations
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert live_fleet.api().get(f"/api/v1/namespaces/{name}/configmaps/mine")


def test_queue_with_a_running_job_is_held_until_the_job_ended(busy: LiveFleet) -> None:
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


def test_queue_that_is_held_comes_back_to_the_fleet(busy: LiveFleet) -> None:
    name = busy.name
    busy.commit(rest(name))
    assert busy.apply().code == 0
    busy.commit(*whole(name), rest(name))
    busy.converge()
    assert busy.queue(name)["status"]["admittedWorkloads"] == 1
    assert busy.finds("localqueues", "main", namespace=name)


def test_queue_that_says_so_is_drained_and_deleted(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    start_job(live_fleet, drainOnDelete=True)
    live_fleet.commit(rest(name))
    change = live_fleet.plan().changes[f"worker1/ClusterQueue/{name}"]
    assert (change["action"], change["notes"]) == ("delete", ["1 workloads are evicted first"])
    live_fleet.converge()
    assert not live_fleet.finds("clusterqueues", name)
    # The job itself is its team's: it waits for another queue.
    assert live_fleet.api().get(f"{JOBS.format(name)}/running")["spec"]["suspend"]


def test_queue_whose_workload_does_not_end_stays_and_says_so(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = live_fleet.name
    monkeypatch.setattr(objects, "DRAINED_WITHIN", timedelta(seconds=3))
    live_fleet.commit(*whole(name, drainOnDelete=True), rest(name))
    live_fleet.converge()
    # Nobody listens to the eviction of a workload that is no job's.
    live_fleet.api().create(workload("alone", name))
    eventually(lambda: live_fleet.queue(name)["status"]["reservingWorkloads"] == 1)
    live_fleet.commit(rest(name))
    answer = live_fleet.apply()
    assert answer.code == 4
    queue_ref = f"worker1/ClusterQueue/{name}"
    assert f"{queue_ref}: delete: 1 workloads still hold its quota 3 s after it was stopped" in answer.out
    assert f"worker1/LocalQueue/{name}/main: delete: not tried, because {queue_ref} is still there" in answer.out
    assert live_fleet.queue(name)["metadata"].get("deletionTimestamp") is None
    assert live_fleet.finds("localqueues", "main", namespace=name)
    live_fleet.api().delete(f"{KUEUE_ROOT}/namespaces/{name}/workloads/alone")
    eventually(lambda: live_fleet.queue(name)["status"].get("reservingWorkloads", 0) == 0)
    monkeypatch.undo()
    live_fleet.converge()


def test_queue_that_was_stopped_to_go_and_stays_after_all_takes_jobs_again(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = live_fleet.name
    monkeypatch.setattr(objects, "DRAINED_WITHIN", timedelta(seconds=1))
    live_fleet.commit(*whole(name, drainOnDelete=True), rest(name))
    live_fleet.converge()
    live_fleet.api().create(workload("alone", name))
    eventually(lambda: live_fleet.queue(name)["status"]["reservingWorkloads"] == 1)
    live_fleet.commit(rest(name))
    assert live_fleet.apply().code == 4
    assert live_fleet.queue(name)["spec"]["stopPolicy"] == "HoldAndDrain"
    live_fleet.commit(*whole(name, drainOnDelete=True), rest(name))
    fields = live_fleet.plan().fields(f"worker1/ClusterQueue/{name}")
    assert [(entry["path"], entry["old"], entry["new"]) for entry in fields.values()] == [
        ("spec.stopPolicy", "HoldAndDrain", None)
    ]
    live_fleet.converge()
    assert live_fleet.queue(name)["spec"]["stopPolicy"] == "None"
    managers = {entry["manager"] for entry in live_fleet.queue(name)["metadata"]["managedFields"]}
    assert "kfleet-drain" not in managers


def test_kind_that_the_server_does_not_name_for_a_while_stays_in_the_inventory(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is of it could not be looked for, and nobody else remembers that it may be there."""
    name = live_fleet.name
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(*whole(name)[:-1], rest(name))
    discover = ApiServer.discover
    monkeypatch.setattr(
        ApiServer, "discover", lambda api: tuple(kind for kind in discover(api) if kind.kind != "LocalQueue")
    )
    assert live_fleet.apply().code == 0
    assert live_fleet.finds("localqueues", "main", namespace=name)
    monkeypatch.undo()
    assert live_fleet.plan().actions == {f"worker1/LocalQueue/{name}/main": "delete"}
    live_fleet.converge()
    assert not live_fleet.finds("localqueues", "main", namespace=name)


def test_object_that_does_not_go_is_reported_with_its_finalizers(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = live_fleet.name
    monkeypatch.setattr(objects, "GONE_WITHIN", timedelta(seconds=2))
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    path = f"{KUEUE_ROOT}/namespaces/{name}/localqueues/main"
    live_fleet.api().patch(path, {"metadata": {"finalizers": ["example.org/wait"]}})
    live_fleet.commit(rest(name))
    answer = live_fleet.apply()
    assert answer.code == 4
    problem = "delete: still there 2 s after its deletion; finalizers: example.org/wait"
    assert f"worker1/LocalQueue/{name}/main: {problem}" in answer.out
    assert live_fleet.finds("clusterqueues", name)
    again = live_fleet.plan().changes[f"worker1/LocalQueue/{name}/main"]
    assert (again["action"], again["reason"]) == ("hold", "going")
    live_fleet.api().patch(path, {"metadata": {"finalizers": None}})
    monkeypatch.undo()
    live_fleet.converge()
    assert list(live_fleet.members()) == [f"resourceflavors//{name}-rest"]


def test_flavor_that_a_queue_of_somebody_else_uses_is_held(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), rest(name))
    live_fleet.converge()
    foreign = native("ClusterQueue", f"{name}-foreign", {"resourceGroups": [cpu_group("1", of=name)]})
    live_fleet.kubectl("create", "-f", "-", given=foreign)
    live_fleet.commit(rest(name), open_queue(f"{name}-own", f"{name}-rest"))
    assert live_fleet.plan().actions[f"worker1/ResourceFlavor/{name}"] == "hold"
    assert live_fleet.apply().code == 0
    assert live_fleet.finds("resourceflavors", name)
    live_fleet.kubectl("delete", "clusterqueue", f"{name}-foreign")
    live_fleet.converge()
    assert not live_fleet.finds("resourceflavors", name)


def test_namespace_that_somebody_deletes_stops_only_what_is_in_it(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*whole(name))
    live_fleet.converge()
    blocker: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "blocker", "namespace": name, "finalizers": ["example.org/wait"]},
    }
    live_fleet.api().create(blocker)
    live_fleet.kubectl("delete", "namespace", name, "--wait=false")
    eventually(lambda: not live_fleet.finds("localqueues", "main", namespace=name))
    live_fleet.commit(*whole(name), rest(name))
    changes = live_fleet.plan().changes
    for ending in (f"worker1/Namespace/{name}", f"worker1/LocalQueue/{name}/main"):
        assert (changes[ending]["action"], changes[ending]["reason"]) == ("hold", "ending")
    applied = live_fleet.apply()
    assert applied.code == 0 and "its namespace is being deleted" in applied.out, applied
    assert live_fleet.finds("resourceflavors", f"{name}-rest")
    live_fleet.api().patch(f"/api/v1/namespaces/{name}/configmaps/blocker", {"metadata": {"finalizers": None}})
    eventually(lambda: live_fleet.api().find(f"/api/v1/namespaces/{name}") is None, 60)
    live_fleet.converge()
    assert live_fleet.finds("localqueues", "main", namespace=name)


def test_flavor_and_queue_swap_in_one_commit(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*whole(name))
    live_fleet.converge()
    live_fleet.commit(flavor(f"{name}-new"), open_queue(name, f"{name}-new", cohort=name), main_tenant(name, name))
    assert live_fleet.plan().actions == {
        f"worker1/ResourceFlavor/{name}-new": "create",
        f"worker1/ClusterQueue/{name}": "update",
        f"worker1/ResourceFlavor/{name}": "delete",
    }
    live_fleet.converge()
