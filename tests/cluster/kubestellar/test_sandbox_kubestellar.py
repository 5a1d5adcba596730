"""The sandbox with real KubeStellar: what is labelled on the manager arrives on a worker, and its status comes back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kubestellar import install_kinds
from tests.builders import (
    Document,
    cluster_queue,
    cpu_group,
    definition,
    job,
    local_queue,
    namespace_object,
    native,
    resource_flavor,
)
from tests.cluster.kubestellar.status_addon import return_status
from tests.support import Kfleet
from tests.support import eventually as eventually_within

WORKERS = ("worker1", "worker2")


def eventually(look: Callable[[], Any]) -> Any:
    """With the patience that an object needs to pass five controllers on a busy machine."""
    return eventually_within(look, seconds=120)


def checked_queue(name: str) -> list[Document]:
    """A queue of 4 processors whose jobs wait for a check, in a namespace of the same name."""
    return [
        resource_flavor(name),
        native("AdmissionCheck", name, {"controllerName": "kubestellar.io/ks-kueue"}),
        cluster_queue(
            name,
            cpu_group("4", of=name),
            namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": name}},
            admissionChecksStrategy={"admissionChecks": [{"name": name}]},
        ),
        local_queue(name, name, name),
    ]


def queued_pods(name: str) -> Document:
    """A Job of two pods of one processor each, in the namespace and the queue of its name."""
    return job(name, namespace=name, suspend=True, parallelism=2, completions=2)


def binding_policy(label: str, worker: str) -> Document:
    """What carries the label with the worker's name goes to that worker, and its status comes back (0.22 shape)."""
    return {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "BindingPolicy",
        "metadata": {"name": f"{label.partition('/')[2]}-{worker}"},
        "spec": {
            "clusterSelectors": [{"matchLabels": {"name": worker, "location-group": "edge"}}],
            "downsync": [{"objectSelectors": [{"matchLabels": {label: worker}}]}],
            "wantSingletonReportedState": True,
        },
    }


@dataclass(frozen=True)
class Place:
    """A namespace on all clusters, a queue of the same name on the manager, and a policy for each worker."""

    sandbox: Sandbox
    name: str

    @property
    def label(self) -> str:
        return f"test.kfleet.dev/{self.name}"

    def job(self, cluster: str) -> dict[str, Any] | None:
        return self.sandbox.api(cluster).find(self._path("batch/v1", "jobs"))

    def returned_job(self) -> dict[str, Any] | None:
        """The manager's job after the status add-on had its turn."""
        return_status(self.sandbox, *WORKERS)
        return self.job("manager")

    def pods(self, cluster: str) -> list[dict[str, Any]]:
        return list(self.sandbox.api(cluster).list(f"/api/v1/namespaces/{self.name}/pods"))

    def label_job(self, worker: str | None) -> None:
        self.sandbox.api("manager").patch(
            self._path("batch/v1", "jobs"), {"metadata": {"labels": {self.label: worker}}}
        )

    def workload(self) -> dict[str, Any]:
        return next(
            self.sandbox.api("manager").list(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{self.name}/workloads"), {}
        )

    def reserving(self) -> int:
        found = self.sandbox.api("manager").get(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{self.name}")
        return int(found["status"]["reservingWorkloads"])

    def _path(self, api_version: str, plural: str) -> str:
        return f"/apis/{api_version}/namespaces/{self.name}/{plural}/{self.name}"


@pytest.fixture
def place(kubestellar: Sandbox, unique: str) -> Iterator[Place]:
    manager, name = kubestellar.api("manager"), f"ks-{unique}"
    place = Place(kubestellar, name)
    for cluster in ("manager", *WORKERS):
        kubestellar.api(cluster).create(namespace_object(name))
    objects = [*checked_queue(name), *(binding_policy(place.label, worker) for worker in WORKERS)]
    for manifest in objects:
        manager.create(manifest)
    active = {"type": "Active", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1}
    manager.patch(
        f"/apis/kueue.x-k8s.io/v1beta2/admissionchecks/{name}/status",
        {"status": {"conditions": [{**active, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
    )
    yield place
    for cluster in ("manager", *WORKERS):
        kubestellar.api(cluster).delete(f"/api/v1/namespaces/{name}")
    for manifest in reversed(objects):
        if "namespace" not in manifest["metadata"]:
            manager.delete(manager.path_of(manifest))


def is_true(found: dict[str, Any] | None, condition: str) -> bool:
    conditions = ((found or {}).get("status") or {}).get("conditions", ())
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)


def test_labelled_job_runs_on_the_selected_worker_alone_and_leaves_with_its_label(place: Place) -> None:
    place.sandbox.api("manager").create(queued_pods(place.name))
    eventually(lambda: is_true(place.workload(), "QuotaReserved"))
    place.label_job("worker1")
    eventually(lambda: is_true(place.job("worker1"), "Complete"))
    assert [pod["spec"]["nodeName"] for pod in place.pods("worker1")] == ["plain-1", "plain-1"]
    assert place.job("worker2") is None
    hub = place.job("manager")
    assert hub and hub["spec"]["suspend"] is True
    place.label_job(None)
    eventually(lambda: not place.job("worker1"))
    assert place.job("manager")


def test_job_moves_with_its_label(place: Place) -> None:
    place.sandbox.api("manager").create(queued_pods(place.name))
    place.label_job("worker1")
    eventually(lambda: place.job("worker1"))
    place.label_job("worker2")
    eventually(lambda: place.job("worker2") and not place.job("worker1"))


def test_returned_completion_finishes_the_workload_and_frees_its_quota(place: Place) -> None:
    place.sandbox.api("manager").create(queued_pods(place.name))
    eventually(lambda: is_true(place.workload(), "QuotaReserved"))
    eventually(lambda: place.reserving() == 1)
    place.label_job("worker2")
    eventually(lambda: is_true(place.job("worker2"), "Complete"))
    eventually(lambda: is_true(place.returned_job(), "Complete"))
    eventually(lambda: is_true(place.workload(), "Finished"))
    eventually(lambda: place.reserving() == 0)
    hub = place.job("manager")
    assert hub and hub["spec"]["suspend"] is True and hub["status"]["succeeded"] == 2


@pytest.mark.parametrize("part", ["manager/kubestellar-binding", "manager/kubestellar-transport", "worker1/work-agent"])
def test_part_of_kubestellar_is_shown_when_it_dies_and_works_after_a_restart(
    kfleet: Kfleet, place: Place, part: str
) -> None:
    running = place.sandbox
    assert kfleet("sandbox", "status", "--name", running.state.name).returncode == 0
    running.kill(part)
    try:
        answer = kfleet("sandbox", "status", "--name", running.state.name)
    finally:
        running.restart(part)
    assert answer.returncode == 1 and f"kfleet sandbox logs {part}" in answer.stderr
    assert kfleet("sandbox", "logs", part, "--name", running.state.name).stdout.strip()
    running.api("manager").create(queued_pods(place.name))
    place.label_job("worker1")
    eventually(lambda: place.job("worker1"))


def test_transport_space_is_a_cluster_of_the_sandbox(kfleet: Kfleet, kubestellar: Sandbox) -> None:
    shown = kfleet("sandbox", "status", "--name", kubestellar.state.name).stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:5]] == [
        ["manager", "manager"],
        ["worker1", "worker"],
        ["worker2", "worker"],
        ["its", "its"],
    ]
    arguments = ["get", "managedclusters", "--selector", "location-group=edge,name=worker1", "--output", "name"]
    answer = kfleet("sandbox", "kubectl", "--name", kubestellar.state.name, "--cluster", "its", "--", *arguments)
    assert answer.stdout.split() == ["managedcluster.cluster.open-cluster-management.io/worker1"]


def test_manager_takes_cluster_metrics(kubestellar: Sandbox, unique: str) -> None:
    manager = kubestellar.api("manager")
    metrics = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics", "metadata": {"name": unique}}
    path = f"/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics/{unique}"
    manager.create(metrics)
    manager.patch(f"{path}/status", {"status": {"nodes": [{"name": "n1", "allocatableResources": {"cpu": "8"}}]}})
    assert manager.get(path)["status"]["nodes"][0]["name"] == "n1"
    manager.delete(path)


def test_kind_that_is_never_served_is_named(kubestellar: Sandbox, unique: str) -> None:
    manager, group = kubestellar.api("manager"), f"{unique}.kfleet.dev"
    install_kinds(manager, [taken_definition(group, "firsts")])
    with pytest.raises(SandboxError, match="manager: Taken is not served 0 s after its definition"):
        install_kinds(manager, [taken_definition(group, "seconds")], timedelta(0))
    for plural in ("firsts", "seconds"):
        manager.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}")


def taken_definition(group: str, plural: str) -> Document:
    """Two of these with the same group want the same name for their kind, which only the first can have."""
    return definition(f"{group}/v1", "Taken", plural, schema={"type": "object"})
