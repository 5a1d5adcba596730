"""A fleet whose jobs kfleet places and real KubeStellar carries, and what tests look at."""

from dataclasses import dataclass
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.state.applyset import MEMBER_LABEL
from tests.builders import Document, asking, job, main_tenant, observed_flavor, pod_spec, queue, quota
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

QUEUE = "science"
NAMESPACE = "astro"
WORKERS = ("worker1", "worker2")
KUBESTELLAR = "/apis/control.kubestellar.io/v1alpha1"
PLACED_ON_EAST = {"kubestellar.io/cluster": "east", "kfleet.dev/placed": "true"}
GUARD = "kfleet-placement"
SPOT = {"instance": "spot"}
# A transform goes for every kind of jobs.
MANY_DELETES = {"prune": {"maxDeletes": 100, "maxPercent": 100}}
# A finalizer that nobody takes off: a copy that does not go, as one that KubeStellar has lost track of.
STUCK = "example.org/stuck"
# In an order in which nothing waits for something else; on workers there are namespaces only.
COLLECTIONS = (
    f"{KUBESTELLAR}/bindingpolicies",
    f"{KUBESTELLAR}/customtransforms",
    f"{KUEUE_ROOT}/localqueues",
    f"{KUEUE_ROOT}/clusterqueues",
    f"{KUEUE_ROOT}/admissionchecks",
    f"{KUEUE_ROOT}/resourceflavors",
    "/api/v1/namespaces",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
)


def documents(source: str = "nodes", **spec: Any) -> tuple[Document, ...]:
    """Flavors like the nodes of the sandbox, one queue for both workers, one team; `source` is that of spot."""
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    quotas = quota("spot", {"cpu": "100%"}), quota("a100", {"cpu": "100%", "nvidia.com/gpu": "100%"})
    return (
        observed_flavor("spot", source, nodeLabels={"instance": "spot"}),
        observed_flavor(
            "a100",
            "nodes",
            clusters={"names": ["worker2"]},
            nodeLabels={"instance": "a100"},
            tolerations=[toleration],
        ),
        queue(QUEUE, *quotas, **{"dispatch": "kubestellar", **spec}),
        main_tenant(NAMESPACE, QUEUE),
    )


def downsynced_job(
    name: str, *, seconds: int = 0, count: int = 1, selector: dict[str, str] | None = None, **requests: str
) -> Document:
    """A Job of the team; `gpu` among the requests is nvidia.com/gpu, as most people write it: as a limit alone."""
    limits = {"nvidia.com/gpu": requests.pop("gpu")} if "gpu" in requests else {}
    chosen = {"nodeSelector": selector} if selector else {}
    return job(
        name,
        pod_spec(asking(**requests, limits=limits), **chosen),
        namespace=NAMESPACE,
        queue="main",
        seconds=seconds,
        suspend=True,
        parallelism=count,
        completions=count,
    )


def _path_in(collection: str, entry: dict[str, Any]) -> str:
    root, _, plural = collection.rpartition("/")
    namespace = entry["metadata"].get("namespace")
    middle = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{middle}/{plural}/{entry['metadata']['name']}"


@dataclass(frozen=True)
class Downsynced:
    live_fleet: LiveFleet

    @property
    def manager(self) -> ApiServer:
        return self.live_fleet.api("manager")

    def submit(self, manifest: Document) -> str:
        """Create a job, and return its name when Kueue has decided about it."""
        self.manager.create(manifest)
        return str(manifest["metadata"]["name"])

    def remove(self, name: str) -> None:
        """Delete a job, and wait until no worker has it any more."""
        if self.job(name):
            self.manager.delete(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")
        eventually(lambda: not any(self.job(name, worker) for worker in WORKERS))

    def job(self, name: str, cluster: str = "manager") -> dict[str, Any] | None:
        return self.live_fleet.api(cluster).find(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")

    def label(self, name: str) -> str:
        found = self.job(name) or {"metadata": {}}
        return str((found["metadata"].get("labels") or {}).get("kubestellar.io/cluster", ""))

    def workload(self, name: str) -> dict[str, Any]:
        uid = (self.job(name) or {"metadata": {"uid": ""}})["metadata"]["uid"]
        found = self.manager.list(f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads", f"kueue.x-k8s.io/job-uid={uid}")
        return next(found, {})

    def is_true(self, name: str, condition: str) -> bool:
        conditions = (self.workload(name).get("status") or {}).get("conditions") or ()
        return any(one["type"] == condition and one["status"] == "True" for one in conditions)

    def message(self, name: str) -> str:
        checks = (self.workload(name).get("status") or {}).get("admissionChecks") or ()
        return next((one["message"] for one in checks if one["name"] == f"kubestellar-{QUEUE}"), "")

    def events(self, name: str) -> list[str]:
        """What Kueue says of the check, as Events of the job."""
        events = self.manager.list(f"/api/v1/namespaces/{NAMESPACE}/events")
        return [
            str(event["message"])
            for event in events
            if event["reason"] == "UpdatedAdmissionCheck" and event["involvedObject"]["name"] == name
        ]

    def reserving(self) -> int:
        return int(self.live_fleet.queue(QUEUE, "manager")["status"].get("reservingWorkloads", 0))

    def report(self, worker: str, cpu: str) -> None:
        """ClusterMetrics of a worker that has one node of spot."""
        path = "/apis/galaxy.kubestellar.io/v1alpha1/clustermetrics"
        if self.manager.find(f"{path}/{worker}") is None:
            kind = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics"}
            self.manager.create({**kind, "metadata": {"name": worker}})
        node = {"name": "reported", "labels": {"instance": "spot"}, "allocatableResources": {"cpu": cpu}}
        self.manager.patch(f"{path}/{worker}/status", {"status": {"nodes": [node]}})

    def quota(self, flavor: str) -> str:
        groups = self.live_fleet.queue(QUEUE, "manager")["spec"]["resourceGroups"]
        found = next(one for one in groups[0]["flavors"] if one["name"] == flavor)
        return str(next(one["nominalQuota"] for one in found["resources"] if one["name"] == "cpu"))

    def clean(self) -> None:
        """Everything of the fleet, on each cluster, until it is gone: the next fleet has the same names."""
        for cluster in ("manager", *WORKERS):
            for path in self._members(cluster):
                self.live_fleet.api(cluster).delete(path)
            # A worker that left the fleet has none any more.
            api = self.live_fleet.api(cluster)
            if api.find(self.live_fleet.set_name.path):
                api.delete(self.live_fleet.set_name.path)
        eventually(lambda: not any(self._members(cluster) for cluster in ("manager", *WORKERS)), 60)

    def _members(self, cluster: str) -> list[str]:
        api, label = self.live_fleet.api(cluster), f"{MEMBER_LABEL}={self.live_fleet.set_name.id}"
        collections = COLLECTIONS if cluster == "manager" else ("/api/v1/namespaces",)
        return [_path_in(path, entry) for path in collections for entry in api.list(path, label)]

    def nodes_of(self, name: str, cluster: str) -> set[str]:
        pods = self.live_fleet.api(cluster).list(
            f"/api/v1/namespaces/{NAMESPACE}/pods", f"batch.kubernetes.io/job-name={name}"
        )
        return {pod["spec"].get("nodeName", "") for pod in pods}


def stick(fleet: Downsynced, name: str, cluster: str, finalizers: list[str]) -> None:
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
    if fleet.job(name, cluster):
        fleet.live_fleet.api(cluster).patch(path, {"metadata": {"finalizers": finalizers}})


def has_policy(fleet: Downsynced, cluster: str) -> bool:
    return fleet.manager.find(f"{KUBESTELLAR}/bindingpolicies/kfleet-{cluster}") is not None
