"""A fleet ends on real clusters: released without a change, or deleted in the safe order, and repeated until it has."""

import os
import pty
import subprocess
from base64 import b64decode
from collections.abc import Mapping
from functools import partial
from typing import Any

from reconciler.objects import Manifest
from tests.builders import flavor, main_job, team_documents
from tests.cluster.controller.controllers import Controller
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import WORKERS, connected, secret_path, use_access
from tests.cluster.multikueue.drains import (
    Births,
    commit_fleet,
    end,
    is_complete,
    start_fleet,
    stop_policy,
    submit,
    where,
)
from tests.support import eventually, kfleet_program, read_until

OWN = ("kfleet", "kfleet-drain", "kfleet-applyset", "kfleet-placement")
KEEP, DELETE = "uninstall --keep-objects", "uninstall --delete"


def contents(members: Mapping[str, Manifest]) -> dict[str, Any]:
    """Everything that users and controllers read of objects: all but metadata and status."""
    return {
        name: {part: value for part, value in live.items() if part not in {"apiVersion", "kind", "metadata", "status"}}
        for name, live in members.items()
    }


def uids(members: Mapping[str, Manifest]) -> dict[str, str]:
    return {name: live["metadata"]["uid"] for name, live in members.items()}


def now(live_fleet: LiveFleet, members: Mapping[str, Manifest], cluster: str = "worker1") -> dict[str, Manifest]:
    """The same objects as they are now."""
    return {name: live_fleet.api(cluster).get(path_of(name)) for name in members}


def path_of(name: str) -> str:
    plural, namespace, own = name.split("/")
    root = {
        "secrets": "/api/v1",
        "configmaps": "/api/v1",
        "serviceaccounts": "/api/v1",
        "namespaces": "/api/v1",
        "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
        "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    }.get(plural, KUEUE_ROOT)
    middle = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{middle}/{plural}/{own}"


def traces(live: Manifest) -> list[str]:
    """What an object still has of kfleet."""
    metadata = live["metadata"]
    marks = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
    owners = [entry["manager"] for entry in metadata.get("managedFields") or ()]
    found = [mark for mark in marks if mark.startswith(("kfleet.dev/", "applyset.kubernetes.io/"))]
    return [*found, *(owner for owner in owners if owner in OWN)]


def records(live_fleet: LiveFleet, cluster: str = "worker1") -> list[str]:
    """What a fleet has on a cluster beside its objects."""
    root = f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{live_fleet.name}"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{live_fleet.lease}"
    api = live_fleet.api(cluster)
    found = [path for path in (root, f"{root}-ledger", f"{root}-status", lease) if api.find(path)]
    annotations = api.get(f"/api/v1/namespaces/{SYSTEM}")["metadata"].get("annotations") or {}
    return [*found, *(name for name in annotations if name == live_fleet.set_name.digests)]


def start_job(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name, cohort=live_fleet.name))
    live_fleet.converge()
    live_fleet.api().create(main_job("running", live_fleet.name))
    eventually(lambda: live_fleet.queue(live_fleet.name)["status"]["admittedWorkloads"] == 1)


def test_released_objects_stay_as_they_are_and_other_tools_meet_no_conflict(live_fleet: LiveFleet) -> None:
    start_job(live_fleet)
    members, versions = live_fleet.members(), live_fleet.quiet_versions()
    shown = live_fleet.run(KEEP, "--dry-run", "-o", "json")
    assert (shown.code, shown.record["left"], shown.record["ended"]) == (0, [], False), shown
    assert {change["reason"] for change in shown.changes.values()} == {"released"}
    assert live_fleet.quiet_versions() == versions

    ended = live_fleet.run(KEEP)
    assert ended.code == 0 and "has ended: kfleet has nothing left on its 1 cluster" in ended.out, ended
    assert_released(live_fleet, members)
    assert live_fleet.queue(live_fleet.name)["status"]["admittedWorkloads"] == 1
    again = live_fleet.run(KEEP)
    assert again.code == 0 and "has ended" in again.out, again

    change_by_others(live_fleet)
    live_fleet.converge()  # and kfleet may take them again
    assert live_fleet.members().keys() == members.keys()


def assert_released(live_fleet: LiveFleet, members: Mapping[str, Manifest], cluster: str = "worker1") -> None:
    after = now(live_fleet, members, cluster)
    assert contents(after) == contents(members) and uids(after) == uids(members)
    assert [trace for live in after.values() for trace in traces(live)] == []
    assert records(live_fleet, cluster) == []


def change_by_others(live_fleet: LiveFleet) -> None:
    """Two tools and a person write what kfleet has owned, and none of them meets a conflict."""
    name = live_fleet.name
    cohort = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": name}}
    weighted = {**cohort, "spec": {"fairSharing": {"weight": "3"}}}
    live_fleet.kubectl("apply", "--server-side", "--field-manager=flux", "-f", "-", given=weighted)
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}}
    other = {**queue, "spec": {"cohortName": f"{name}-other"}}
    live_fleet.api().apply(other, manager="argocd-controller")
    assert live_fleet.queue(name)["spec"]["cohortName"] == f"{name}-other"
    live_fleet.edit(f"clusterqueue/{name}", f"cohortName: {name}-other", f"cohortName: {name}")
    restored = {**queue, "spec": {"cohortName": name}}
    live_fleet.api().apply(restored, manager="argocd-controller", is_forced=True)
    for manager, kind in (("flux", cohort), ("argocd-controller", queue)):
        # What they no longer say must not go: kfleet says it again.
        live = live_fleet.api().get(live_fleet.api().path_of(kind))
        owners = [entry for entry in live["metadata"]["managedFields"] if entry["manager"] != manager]
        released = [{"op": "replace", "path": "/metadata/managedFields", "value": owners}]
        live_fleet.api().json_patch(live_fleet.api().path_of(kind), released)


def test_delete_is_confirmed_by_its_count_and_waits_for_running_jobs(live_fleet: LiveFleet) -> None:
    start_job(live_fleet)
    name, versions = live_fleet.name, live_fleet.quiet_versions()
    refused = live_fleet.run(DELETE, "--yes")
    assert refused.code == 3 and "repeat with --confirm-deletes 4" in refused.out, refused
    assert "no Namespace is deleted, nor what is in it" in refused.out
    wrong = live_fleet.run(DELETE, "--confirm-deletes", "3")
    assert wrong.code == 3 and "3 were confirmed, but there are 4" in wrong.out
    assert live_fleet.quiet_versions() == versions

    waiting = live_fleet.run(DELETE, "--confirm-deletes", "4")
    assert waiting.code == 4 and "has not ended yet" in waiting.out, waiting
    assert live_fleet.queue(name)["spec"]["stopPolicy"] == "Hold"
    assert live_fleet.queue(name)["status"]["admittedWorkloads"] == 1
    assert live_fleet.finds("localqueues", "main", namespace=name) and live_fleet.finds("resourceflavors", name)

    live_fleet.api().delete(f"/apis/batch/v1/namespaces/{name}/jobs/running?propagationPolicy=Background")
    ended = eventually(lambda: deleted(live_fleet), 60)
    assert "has ended" in ended
    assert live_fleet.members() == {} and records(live_fleet) == []
    assert not live_fleet.finds("clusterqueues", name)
    namespace = live_fleet.api().get(f"/api/v1/namespaces/{name}")
    assert namespace["status"]["phase"] == "Active" and traces(namespace) == []


def deleted(live_fleet: LiveFleet) -> str:
    """What `--delete` says, with the number that it asks for, once the fleet has ended.

    The number may change in between, with what Kueue writes into the status of queues.
    """
    asked = live_fleet.run(DELETE, "--dry-run", "-o", "json").record["refusals"]
    count = asked[0]["problem"].rpartition(" ")[2] if asked else "0"
    answer = live_fleet.run(DELETE, "--confirm-deletes", count)
    assert answer.code in {0, 4} or "were confirmed, but there are" in answer.out, answer.out + answer.err
    return answer.out if answer.code == 0 else ""


def test_delete_leaves_what_others_refer_to_until_they_do_not(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name))
    live_fleet.converge()
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 1}]}],
    }
    foreign = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": f"{name}-foreign"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
    }
    live_fleet.api().create(foreign)
    kept = live_fleet.run(DELETE, "--confirm-deletes", "1")
    assert kept.code == 4 and f"ClusterQueue/{name}-foreign still refers to it" in kept.out, kept
    assert live_fleet.finds("resourceflavors", name)
    released = live_fleet.run(KEEP)
    assert released.code == 0, released
    assert live_fleet.finds("resourceflavors", name) and live_fleet.finds("clusterqueues", f"{name}-foreign")


def test_delete_asks_for_the_number_at_a_terminal(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name), flavor(f"{live_fleet.name}-b"))
    live_fleet.converge()
    assert typed(live_fleet, "y") == 3
    assert live_fleet.finds("resourceflavors", live_fleet.name)
    assert typed(live_fleet, "2") == 0
    assert not live_fleet.finds("resourceflavors", live_fleet.name) and records(live_fleet) == []


def typed(live_fleet: LiveFleet, answer: str) -> int:
    ours, theirs = pty.openpty()
    command = [kfleet_program(), *DELETE.split(), "--repo", str(live_fleet.folder)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert "number of objects" in read_until(ours, "number of objects")
    os.write(ours, f"{answer}\n".encode())
    read_until(ours)
    os.close(ours)
    return process.wait(timeout=120)


def test_fleet_does_not_end_under_its_controller(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    controller = Controller(live_fleet.folder)
    try:
        eventually(lambda: live_fleet.finds("resourceflavors", live_fleet.name), 60)
        refused = live_fleet.run(KEEP)
        assert refused.code == 3 and "if that is kfleet run, end it first" in refused.err, refused
        told = live_fleet.run(KEEP, "--dry-run")
        assert told.code == 0 and "holds the lease of the fleet" in told.err, told
    finally:
        controller.stop()
    assert any(record.endswith("-status") for record in records(live_fleet))
    assert live_fleet.run(DELETE, "--confirm-deletes", "1").code == 0
    assert records(live_fleet) == [] and live_fleet.members() == {}


def test_released_multikueue_runs_its_jobs_and_takes_new_ones(wide_live_fleet: LiveFleet) -> None:
    live_fleet, name = wide_live_fleet, wide_live_fleet.name
    start_fleet(live_fleet)
    submit(live_fleet, "first")
    place = where(live_fleet, "first")
    members = {cluster: live_fleet.members(cluster) for cluster in ("manager", *WORKERS)}
    released = live_fleet.run(KEEP)
    assert released.code == 0, released
    assert f"Secret/{SYSTEM}/multikueue-{name}-worker1: its token works until" in released.out
    for cluster, objects in members.items():
        assert_released(live_fleet, objects, cluster)
    submit(live_fleet, "second")
    other = where(live_fleet, "second")
    for job, worker in (("first", place), ("second", other)):
        end(live_fleet, worker, job)
        eventually(partial(is_complete, live_fleet, job), 60)
    assert connected(live_fleet, "worker1") and connected(live_fleet, "worker2")
    live_fleet.converge()  # kfleet adopts again what it has released


def test_multikueue_is_deleted_when_its_jobs_have_ended(wide_live_fleet: LiveFleet) -> None:
    live_fleet = wide_live_fleet
    start_fleet(live_fleet)
    births = Births(live_fleet)
    submit(live_fleet, "running")
    place = where(live_fleet, "running")
    eventually(lambda: not deleted(live_fleet) and stop_policy(live_fleet, "manager") == "Hold", 60)
    assert not deleted(live_fleet)
    assert live_fleet.api("manager").find(secret_path(live_fleet, place)) and connected(live_fleet, place)
    end(live_fleet, place, "running")
    eventually(lambda: is_complete(live_fleet, "running"), 60)
    assert births.of("running") == [place]
    assert "has ended: kfleet has nothing left on its 3 clusters" in eventually(lambda: deleted(live_fleet), 120)
    for cluster in ("manager", *WORKERS):
        assert live_fleet.members(cluster) == {} and records(live_fleet, cluster) == []


def test_worker_that_does_not_answer_keeps_the_fleet_from_ending(wide_live_fleet: LiveFleet) -> None:
    live_fleet, name = wide_live_fleet, wide_live_fleet.name
    commit_fleet(live_fleet)
    live_fleet.converge()
    use_access(live_fleet, "nowhere", server="https://127.0.0.1:9")
    left = live_fleet.run(KEEP, "-o", "json", "--accept-source")
    assert left.code == 4 and left.record["ended"] is False, left
    assert any(line.startswith(f"{name}-worker1: was not observed") for line in left.record["left"])
    assert live_fleet.members("worker1") and not live_fleet.members("worker2")
    assert any(record.endswith(f"kfleet-{name}") for record in records(live_fleet, "manager"))
    assert records(live_fleet, "worker2") == []

    commit_fleet(live_fleet)
    assert live_fleet.run(KEEP).code == 0
    for cluster in ("manager", *WORKERS):
        assert live_fleet.members(cluster) == {} and records(live_fleet, cluster) == []
    secret = live_fleet.api("manager").get(secret_path(live_fleet))
    assert b64decode(secret["data"]["kubeconfig"])
    live_fleet.converge()  # so that everything goes with the test
