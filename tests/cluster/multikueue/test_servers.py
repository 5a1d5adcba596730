"""Clusters that change their roles, or are another one's server, on real clusters: no job is lost by it."""

import time
from pathlib import Path

import pytest

from tests import fast_yaml
from tests.builders import cluster_document, flavor, main_tenant, open_queue
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.drains import (
    Births,
    apply_until,
    commit_fleet,
    end,
    is_complete,
    memberships,
    other_than,
    start_fleet,
    stop_policy,
    submit,
    where,
)
from tests.cluster.multikueue.test_quota_kept import lead_through
from tests.support import eventually


def add_cluster(live_fleet: LiveFleet, name: str, context: str) -> None:
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    access = {"context": context, "kubeconfig": str(live_fleet.sandbox.state.kubeconfig)}
    documents = [*fast_yaml.safe_load_all(path.read_text()), cluster_document(name, access=access)]
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def quota(live_fleet: LiveFleet) -> str:
    (group,) = live_fleet.queue(f"{live_fleet.name}-q", "manager")["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def test_second_name_of_a_worker_or_of_the_manager_is_refused_and_counts_for_nothing(
    wide_live_fleet: LiveFleet,
) -> None:
    start_fleet(wide_live_fleet)
    births, before = Births(wide_live_fleet), quota(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    worker = where(wide_live_fleet, "kept")
    second = f"{wide_live_fleet.name}-second"
    for context in (worker, "manager"):
        commit_fleet(wide_live_fleet)
        add_cluster(wide_live_fleet, second, context)
        applied = wide_live_fleet.apply()
        same = f"{second}: another cluster of the fleet is the same API server: it is the same API server as"
        assert applied.code == 3 and f"{same} {wide_live_fleet.name}-{context}" in applied.out, applied
        assert quota(wide_live_fleet) == before
        assert memberships(wide_live_fleet) == ["worker1", "worker2"]
        assert not wide_live_fleet.finds("multikueueclusters", second, "manager")

    commit_fleet(wide_live_fleet)
    wide_live_fleet.converge()
    end(wide_live_fleet, worker, "kept")
    assert eventually(lambda: is_complete(wide_live_fleet, "kept"), 60)
    assert births.of("kept") == [worker]


def change_roles(live_fleet: LiveFleet, **roles: str) -> None:
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    for entry in documents:
        role = roles.get(entry["metadata"]["name"].removeprefix(f"{live_fleet.name}-"))
        entry["spec"] |= {"role": role} if role and entry["kind"] == "Cluster" else {}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def test_manager_that_is_exchanged_while_its_jobs_run_is_refused(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    worker = where(wide_live_fleet, "kept")
    before = wide_live_fleet.members("manager").keys()
    change_roles(wide_live_fleet, manager="worker", **{other_than(worker): "manager"})
    refused = wide_live_fleet.apply()
    assert refused.code == 3, refused
    assert "another manager cluster still has jobs on workers of the fleet: jobs on" in refused.out
    assert f"{wide_live_fleet.name}-{worker} (1)" in refused.out
    assert wide_live_fleet.run("credentials rotate").code == 3
    assert wide_live_fleet.members("manager").keys() == before
    end(wide_live_fleet, worker, "kept")
    assert eventually(lambda: is_complete(wide_live_fleet, "kept"), 60)
    assert births.of("kept") == [worker]
    eventually(lambda: not [one for one in wide_live_fleet.plan().refusals if one[0] == "managed"])


@pytest.mark.parametrize(
    ("path", "methods"), [("/clusterroles", "GET"), ("/selfsubjectrulesreviews", "POST"), ("/workloads", "GET")]
)
def test_manager_is_not_exchanged_while_it_cannot_be_read_whose_jobs_run(
    wide_live_fleet: LiveFleet, tmp_path: Path, path: str, methods: str
) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    worker = where(wide_live_fleet, "kept")
    with proxied(wide_live_fleet.sandbox, worker) as proxy:
        lead_through(wide_live_fleet, worker, proxy.kubeconfig(tmp_path / "proxy.yaml"))
        assert wide_live_fleet.apply().code == 0
        before = wide_live_fleet.members("manager").keys()
        change_roles(wide_live_fleet, manager="worker", **{other_than(worker): "manager"})
        proxy.inject(Fault(Deed.ANSWER, path, methods, status=500, reason="InternalError", times=1000))
        refused = wide_live_fleet.apply()
        assert refused.code == 3, refused
        assert f"{wide_live_fleet.name}-{worker} (not counted)" in refused.out
        assert wide_live_fleet.members("manager").keys() == before
        proxy.let_go()
        change_roles(wide_live_fleet, manager="manager", **{other_than(worker): "worker"})
        assert wide_live_fleet.apply().code == 0
    assert births.of("kept") == [worker]


def test_worker_that_becomes_standalone_takes_no_new_jobs_of_the_manager(wide_live_fleet: LiveFleet) -> None:
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "first")
    worker = where(wide_live_fleet, "first")
    change_roles(wide_live_fleet, **{worker: "standalone"})
    assert wide_live_fleet.apply().code == 0
    assert stop_policy(wide_live_fleet, worker) == "Hold"
    submit(wide_live_fleet, "second")
    assert where(wide_live_fleet, "second") == other_than(worker)
    end(wide_live_fleet, worker, "first")
    apply_until(wide_live_fleet, worker)
    assert is_complete(wide_live_fleet, "first")
    assert births.of("first") == [worker]
    eventually(lambda: not (wide_live_fleet.apply().code or wide_live_fleet.plan().actions), 60)
    assert stop_policy(wide_live_fleet, worker) == "None"


@pytest.mark.parametrize("is_in_git", [True, False], ids=["it is standalone", "it left git"])
def test_manager_does_not_leave_the_fleet_while_its_jobs_run(wide_live_fleet: LiveFleet, *, is_in_git: bool) -> None:
    """Its login on the workers would go, and with it the only one who knows of these jobs."""
    start_fleet(wide_live_fleet)
    births = Births(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    worker = where(wide_live_fleet, "kept")
    before = {name: wide_live_fleet.members(name).keys() for name in ("manager", "worker1", "worker2")}
    without_manager(wide_live_fleet, is_in_git=is_in_git)
    refused = wide_live_fleet.apply()
    assert refused.code == 3, refused
    assert "were dispatched by a manager that is no longer in the fleet" in refused.out
    assert f"{wide_live_fleet.name}-{worker} (" in refused.out
    assert {name: wide_live_fleet.members(name).keys() for name in before} == before
    end(wide_live_fleet, worker, "kept")
    assert eventually(lambda: is_complete(wide_live_fleet, "kept"), 60)
    assert births.of("kept") == [worker]
    eventually(lambda: not [one for one in wide_live_fleet.plan().refusals if one[0] == "managed"])


def without_manager(live_fleet: LiveFleet, *, is_in_git: bool) -> None:
    """The fleet dispatches nothing any more; its manager is a cluster like the others, or none of its clusters."""
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    for entry in documents:
        if entry["kind"] == "Cluster":
            entry["spec"]["role"] = "standalone"
            entry["spec"].pop("credentials", None)
        if entry["kind"] == "Queue":
            entry["spec"]["dispatch"] = "none"
            entry["spec"].pop("managerQuota", None)
    gone = () if is_in_git else (f"{live_fleet.name}-manager",)
    kept = [entry for entry in documents if entry["metadata"]["name"] not in gone]
    path.write_text(fast_yaml.safe_dump_all(kept))
    live_fleet.commit_all()


def test_queue_whose_jobs_run_on_the_manager_goes_over_to_multikueue_when_they_have_ended(
    wide_live_fleet: LiveFleet,
) -> None:
    """MultiKueue rejects jobs that were not made for it, and Kueue then ends them while they run."""
    name = wide_live_fleet.name
    local = open_queue(f"{name}-q", f"{name}-cpu", dispatch="none", clusters={"names": [f"{name}-manager"]})
    everywhere = {"names": [*wide_live_fleet.contexts]}
    wide_live_fleet.commit(flavor(f"{name}-cpu", clusters=everywhere), local, main_tenant(name, f"{name}-q"))
    wide_live_fleet.converge()
    submit(wide_live_fleet, "kept")
    job = f"/apis/batch/v1/namespaces/{name}/jobs/kept"
    eventually(lambda: not wide_live_fleet.api("manager").get(job)["spec"]["suspend"])
    # Kueue counts a job in the status of its queue about a second after it has admitted the job.
    eventually(lambda: wide_live_fleet.queue(f"{name}-q", "manager")["status"]["admittedWorkloads"] == 1)

    commit_fleet(wide_live_fleet)
    for _ in range(3):
        applied = wide_live_fleet.apply()
        assert applied.code in {0, 4}, applied
        time.sleep(1)
    assert "1 workloads that run here hold its quota, and MultiKueue would end them" in applied.out
    assert not wide_live_fleet.api("manager").get(job)["spec"]["suspend"]
    wide_live_fleet.api("manager").delete(job)
    eventually(lambda: not (wide_live_fleet.apply().code or wide_live_fleet.plan().actions), 60)
    submit(wide_live_fleet, "next")
    assert where(wide_live_fleet, "next") in {"worker1", "worker2"}
