"""A MiniCluster on a real cluster: kfleet gives it its queue, and Kueue admits the Job that the operator makes of it.

The operator itself is not here; a test does with the MiniCluster what the operator does.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.flux.render import operator_job
from reconciler.objects import Manifest
from reconciler.sandbox.fleet import Sandbox
from tests.builders import (
    QUEUE_NAME,
    Document,
    definition,
    mini_cluster,
    team_documents,
)
from tests.cluster.definitions import held_definitions
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually
from tests.unit.flux.lammps import OLD

MINI_CLUSTERS = definition("flux-framework.org/v1alpha2", "MiniCluster", "miniclusters", is_namespaced=True)


@pytest.fixture
def live_fleet(fleet: Sandbox, tmp_path: Path, unique: str) -> Iterator[LiveFleet]:
    made = LiveFleet(fleet, tmp_path / unique, unique)
    with held_definitions(made.api(), [MINI_CLUSTERS]):
        yield made
        made.clean()


def old_lammps(namespace: str, size: int) -> Document:
    """As documents of the old operator say it, and without a queue."""
    container = {"image": "lammps", "cores": 2, "resources": {"requests": {"cpu": 2}}}
    return mini_cluster("lammps", size, namespace=namespace, queue="", version=OLD, test=True, containers=[container])


def path(namespace: str) -> str:
    return f"/apis/flux-framework.org/v1alpha2/namespaces/{namespace}/miniclusters/lammps"


def seen(api: ApiServer, namespace: str) -> Manifest:
    return api.get(path(namespace))


def first_workload(api: ApiServer, namespace: str) -> Manifest | None:
    return next(iter(api.list(f"{KUEUE_ROOT}/namespaces/{namespace}/workloads")), None)


def test_mini_cluster_gets_and_keeps_its_queue_and_its_job_is_admitted(live_fleet: LiveFleet) -> None:
    name, api = live_fleet.name, live_fleet.api()
    live_fleet.commit(*team_documents(name, {"cpu": "8"}), old_lammps(name, size=4))
    planned = live_fleet.plan()
    assert f"goes through main, the only LocalQueue of namespace {name}" in str(planned.record)
    live_fleet.converge()
    live = seen(api, name)
    assert live["spec"]["jobLabels"] == {QUEUE_NAME: "main"}
    assert live["spec"]["logging"] == {"quiet": True}
    api.create(operator_job(live))
    admitted = eventually(
        lambda: (found := first_workload(api, name)) and found.get("status", {}).get("admission") and found
    )
    assert admitted["metadata"]["name"].startswith("job-lammps-")
    (assigned,) = admitted["status"]["admission"]["podSetAssignments"]
    assert (assigned["count"], assigned["flavors"], assigned["resourceUsage"]) == (4, {"cpu": name}, {"cpu": "8"})
    assert live_fleet.plan().actions == {}
    api.patch(path(name), {"spec": {"jobLabels": {QUEUE_NAME: None}}})
    live_fleet.converge()
    assert seen(api, name)["spec"]["jobLabels"] == {QUEUE_NAME: "main"}
    api.delete(f"/apis/batch/v1/namespaces/{name}/jobs/lammps")


def test_mini_cluster_that_is_too_large_does_not_reach_the_cluster(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*team_documents(name, {"cpu": "8"}), old_lammps(name, size=5))
    refused = live_fleet.apply()
    assert refused.code == 1
    assert "KF036: spec.size: flavor" in refused.err
    assert "cpu 10 is requested, but the queue can get 8" in refused.err


def test_overhead_that_no_runtime_class_sets_is_refused_by_the_server(fleet: Sandbox, namespace: str) -> None:
    pod = {"restartPolicy": "Never", "overhead": {"cpu": "1"}, "containers": [{"name": "a", "image": "b"}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": namespace}, "spec": pod}
    with pytest.raises(ClusterError, match="Overhead set without corresponding RuntimeClass"):
        fleet.api("worker1").create(manifest)
