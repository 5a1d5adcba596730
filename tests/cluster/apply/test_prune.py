"""What leaves the fleet leaves the clusters: in order, never under running jobs, and never a namespace."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from reconciler.apply import objects
from reconciler.apply import objects as queues
from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import RetryPolicy
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.pipeline.observe import connect
from reconciler.plan.model import Action
from reconciler.report.text import apply_exit_code
from tests.builders import (
    Document,
    cpu_group,
    flavor,
    local_queue,
    main_job,
    main_tenant,
    native,
    open_queue,
    team_documents,
    workload,
)
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.cluster.stages import apply_fleet, plan_fleet
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


def test_object_that_took_the_name_of_an_object_to_prune_stays(live_fleet: LiveFleet) -> None:
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
        outcomes = apply_fleet(computed, connections, plan, RetryPolicy())
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


def test_queue_with_a_running_job_takes_no_new_job_and_goes_when_the_job_ended(busy: LiveFleet) -> None:
    name = busy.name
    busy.commit(rest(name))
    change = busy.plan().changes[f"worker1/ClusterQueue/{name}"]
    assert (change["action"], change["reason"]) == ("update", "stopped")
    assert change["notes"][0].startswith("1 workloads hold its quota; it takes no new ones")
    held = busy.apply()
    assert held.code == 4, held
    assert busy.queue(name)["spec"]["stopPolicy"] == "Hold"
    assert busy.queue(name)["metadata"].get("deletionTimestamp") is None
    assert busy.finds("resourceflavors", name), "the flavor of a queue that is held was deleted"
    assert busy.finds("localqueues", "main", namespace=name), "the LocalQueue of a running job was deleted"
    again = busy.plan()
    assert set(again.actions.values()) == {"hold"}, again
    end_job(busy)
    busy.converge()
    assert list(busy.members()) == [f"resourceflavors//{name}-rest"]


def end_job(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.api().delete(f"{JOBS.format(name)}/running?propagationPolicy=Background")
    eventually(lambda: live_fleet.queue(name)["status"].get("reservingWorkloads", 0) == 0)
    path = f"{KUEUE_ROOT}/namespaces/{name}/localqueues/main"
    eventually(lambda: live_fleet.api().get(path)["status"].get("reservingWorkloads", 0) == 0)


def test_queue_whose_first_job_starts_after_the_look_is_not_deleted_under_it(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(rest(name))
    computed = live_fleet.computed()
    connections = connect(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        assert {change.ref.kind for change in plan.writes if change.action is Action.DELETE} >= {"ClusterQueue"}
        live_fleet.api().create(main_job("running", name))
        eventually(lambda: live_fleet.queue(name)["status"]["admittedWorkloads"] == 1)
        outcomes = apply_fleet(computed, connections, plan, RetryPolicy())
    finally:
        connections.close()
    assert apply_exit_code(plan, outcomes) == 4
    problems = {str(one.ref): one.problem for outcome in outcomes for one in outcome.outcomes if one.problem}
    assert problems[f"worker1/ClusterQueue/{name}"].startswith("1 workloads hold its quota")
    assert live_fleet.queue(name)["metadata"].get("deletionTimestamp") is None
    assert live_fleet.finds("localqueues", "main", namespace=name)
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    live_fleet.api().create(main_job("next", name))
    eventually(lambda: live_fleet.queue(name)["status"]["admittedWorkloads"] == 2)


def test_queue_that_takes_a_job_after_the_second_look_is_not_deleted_under_it(live_fleet: LiveFleet) -> None:
    """The DELETE names the version in which the queue held nothing, and the next try looks again."""
    name = live_fleet.name
    live_fleet.commit(*whole(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(rest(name))
    plan = live_fleet.planned()
    with proxied(live_fleet.sandbox, "worker1") as proxy, ThreadPoolExecutor(1) as pool:
        proxy.inject(Fault(Deed.HOLD, "/localqueues/main$", "DELETE"))
        port = live_fleet.through(proxy)
        applying = pool.submit(apply_plan, plan, {port.cluster: port}, None, RetryPolicy())
        assert proxy.reached.wait(60)
        for queue in (f"clusterqueue/{name}", "localqueue/main"):
            live_fleet.kubectl("-n", name, "patch", queue, "--type=merge", "-p", '{"spec":{"stopPolicy":"None"}}')
        live_fleet.api().create(main_job("running", name))
        eventually(lambda: live_fleet.queue(name)["status"]["admittedWorkloads"] == 1)
        proxy.let_go()
        (outcome,) = applying.result()
        port.close()
    problems = {str(one.ref): one.problem for one in outcome.outcomes if one.problem}
    assert problems[f"worker1/LocalQueue/{name}/main"] == "another client has resumed it since it was stopped"
    assert live_fleet.finds("localqueues", "main", namespace=name)
    assert live_fleet.queue(name)["metadata"].get("deletionTimestamp") is None


def test_queue_that_a_user_deletes_under_its_job_is_not_converged_until_it_is_back(busy: LiveFleet) -> None:
    name = busy.name
    busy.kubectl("delete", "clusterqueue", name, "--wait=false")
    waiting = busy.apply()
    assert waiting.code == 4, waiting
    assert "is being deleted; kfleet creates it again afterwards" in waiting.out
    busy.api().delete(f"{JOBS.format(name)}/running?propagationPolicy=Background")
    eventually(lambda: not busy.finds("clusterqueues", name))
    busy.converge()


def test_queue_that_is_held_comes_back_to_the_fleet(busy: LiveFleet) -> None:
    name = busy.name
    busy.commit(rest(name))
    assert busy.apply().code == 4
    busy.commit(*whole(name), rest(name))
    busy.converge()
    assert busy.queue(name)["spec"]["stopPolicy"] == "None"
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
    monkeypatch.setattr(queues, "DRAINED_WITHIN", timedelta(seconds=3))
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
    monkeypatch.setattr(queues, "DRAINED_WITHIN", timedelta(seconds=1))
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
        ("spec.stopPolicy", "HoldAndDrain", "None")
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


def test_nothing_goes_that_objects_of_another_owner_refer_to(live_fleet: LiveFleet) -> None:
    """Also where the fleet itself has none of their kinds."""
    name = live_fleet.name
    live_fleet.commit(flavor(name), native("Cohort", name, {"resourceGroups": [cpu_group("3", of=name)]}), rest(name))
    live_fleet.converge()
    foreign = {"cohortName": name, "resourceGroups": [cpu_group("1", of=name)]}
    live_fleet.kubectl("create", "-f", "-", given=native("ClusterQueue", f"{name}-foreign", foreign))
    live_fleet.commit(rest(name))
    planned = live_fleet.plan()
    assert planned.actions == {f"worker1/ResourceFlavor/{name}": "hold", f"worker1/Cohort/{name}": "hold"}
    assert planned.changes[f"worker1/Cohort/{name}"]["notes"] == [f"ClusterQueue/{name}-foreign still refers to it"]
    assert live_fleet.apply().code == 4
    assert live_fleet.finds("resourceflavors", name) and live_fleet.finds("cohorts", name)
    live_fleet.kubectl("delete", "clusterqueue", f"{name}-foreign")
    live_fleet.converge()
    assert not live_fleet.finds("resourceflavors", name) and not live_fleet.finds("cohorts", name)


def test_queue_under_the_local_queue_of_another_owner_stays_and_admits_its_jobs(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), open_queue(name, name), rest(name))
    live_fleet.converge()
    live_fleet.kubectl("create", "namespace", name)
    live_fleet.kubectl("create", "-f", "-", given=local_queue("main", name, name))
    live_fleet.commit(rest(name))
    change = live_fleet.plan().changes[f"worker1/ClusterQueue/{name}"]
    assert (change["action"], change["notes"]) == ("hold", [f"LocalQueue/{name}/main still refers to it"])
    assert live_fleet.apply().code == 4
    live_fleet.api().create(main_job("theirs", name))
    eventually(lambda: live_fleet.queue(name)["status"]["admittedWorkloads"] == 1)
    live_fleet.kubectl("delete", "namespace", name, "--wait=false")


def test_nothing_goes_while_a_kind_that_may_refer_to_it_cannot_be_listed(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), rest(name))
    live_fleet.converge()
    live_fleet.commit(rest(name))
    list_all = ApiServer.list

    def denied(api: ApiServer, path: str, selector: str = "") -> Iterator[Mapping[str, Any]]:
        if path.endswith("/workloads"):
            raise ClusterError("worker1", f"GET {path}: 403 forbidden", status=403, reason="Forbidden")
        return list_all(api, path, selector)

    monkeypatch.setattr(ApiServer, "list", denied)
    planned = live_fleet.plan()
    assert (planned.code, planned.actions) == (4, {f"worker1/ResourceFlavor/{name}": "hold"})
    assert [gap["what"] for gap in planned.record["gaps"]] == ["Workload.kueue.x-k8s.io"]
    monkeypatch.undo()
    live_fleet.converge()


def test_namespace_that_a_user_deletes_stops_only_what_is_in_it(live_fleet: LiveFleet) -> None:
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
    assert applied.code == 4 and "its namespace is being deleted" in applied.out, applied
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
