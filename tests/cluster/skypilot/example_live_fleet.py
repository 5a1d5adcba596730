"""The examples of the documentation, on a real cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reconciler
from tests import fast_yaml
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually

EXAMPLES = Path(reconciler.__file__).parent.parent / "docs" / "examples"
NAMES = ("skypilot-shared", "skypilot-cohort")
GROUP = "kueue.x-k8s.io"
QUEUE_LABEL = f"{GROUP}/queue-name"


def documents_of(example: str) -> list[dict[str, Any]]:
    return [*fast_yaml.safe_load_all((EXAMPLES / example / "fleet.yaml").read_text())]


@dataclass
class ExampleLiveFleet(LiveFleet):
    """The fleet of an example, with this cluster in place of the one that it names."""

    def take(self, example: str, releases: Mapping[str, str] | None = None) -> None:
        """`releases` are those of SkyPilot servers, by team; the others have the newest."""
        documents = [self._here(document, releases or {}) for document in documents_of(example)]
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fast_yaml.safe_dump_all(documents))
        self.commit_all()

    def _here(self, document: dict[str, Any], releases: Mapping[str, str]) -> dict[str, Any]:
        if document["kind"] == "Fleet":
            return {**document, "metadata": {"name": self.name}}
        name = document["metadata"]["name"]
        if document["kind"] == "Tenant" and name in releases:
            return {**document, "spec": {**document["spec"], "skypilot": {"version": releases[name]}}}
        if document["kind"] != "Cluster":
            return document
        (own,) = self.cluster_documents()
        return {**document, "spec": {**document["spec"], "access": own["spec"]["access"]}}

    def run_pod(self, team: str, name: str, cores: int) -> None:
        self.launch(team, name, cores, [name])

    def launch(self, team: str, cluster: str, cores: int, pods: list[str]) -> None:
        """A cluster of pods as the team's SkyPilot server makes one, by the config that kfleet wrote for it."""
        requests = {"cpu": str(cores), "memory": "1Gi", "nvidia.com/gpu": "1"}
        container = {"name": "task", "image": "task", "resources": {"requests": requests, "limits": requests}}
        for pod in pods:
            self.api("research").create(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": pod, "namespace": team, **self._marks(team, cluster, len(pods))},
                    "spec": {"containers": [container]},
                }
            )

    def _marks(self, team: str, cluster: str, count: int) -> dict[str, Any]:
        """The labels and annotations of a server that makes groups of pods, or of one that does not know of Kueue."""
        config = fast_yaml.safe_load(self.config_text(team))["kubernetes"]
        if "kueue" not in config:
            return dict(config["pod_config"]["metadata"])
        labels = {QUEUE_LABEL: config["kueue"]["local_queue_name"], f"{GROUP}/pod-group-name": cluster}
        annotations = {f"{GROUP}/pod-group-total-count": str(count), f"{GROUP}/retriable-in-group": "false"}
        return {"labels": labels, "annotations": annotations}

    def config_text(self, team: str) -> str:
        found = self.api("research").get(f"/api/v1/namespaces/{team}/configmaps/skypilot-{team}")
        return str(found["data"]["config.yaml"])

    def is_running(self, team: str, name: str) -> bool:
        pod = self.api("research").get(f"/api/v1/namespaces/{team}/pods/{name}")
        return str(pod["status"].get("phase")) == "Running"

    def has_stopped(self, team: str, name: str) -> bool:
        """Whether a pod is gone. Nothing runs in it that could end: that its containers stop is played here."""
        path = f"/api/v1/namespaces/{team}/pods/{name}"
        pod = self.api("research").find(path)
        if pod and pod["metadata"].get("deletionTimestamp"):
            self.api("research").patch(f"{path}/status", {"status": {"phase": "Failed"}})
        return pod is None

    def admitting_queue(self, team: str, name: str) -> str:
        """The ClusterQueue that let a pod in."""
        eventually(lambda: self.is_running(team, name), 60)
        return str(self._workload(team, name)["status"]["admission"]["clusterQueue"])

    def waits_for(self, team: str, name: str) -> str:
        """Why a pod does not run yet, as Kueue says it."""

        def reason() -> str:
            conditions = (self._workload(team, name).get("status") or {}).get("conditions") or ()
            return next((one["message"] for one in conditions if one["type"] == "QuotaReserved"), "")

        message: str = eventually(reason, 60)
        assert not self.is_running(team, name)
        return message

    def use(self, queue: str) -> dict[str, str]:
        """What a queue reserves, and how much of it is borrowed, in cores."""
        status = self.queue(queue, "research").get("status") or {}
        resources = (status.get("flavorsReservation") or [{}])[0].get("resources") or ()
        (cpu,) = [entry for entry in resources if entry["name"] == "cpu"] or [{}]
        return {name: str(cpu.get(name, "0")) for name in ("total", "borrowed")}

    def workloads(self, team: str) -> int:
        return len([*self.api("research").list(f"{KUEUE_ROOT}/namespaces/{team}/workloads")])

    def _workload(self, team: str, pod: str) -> dict[str, Any]:
        api = self.api("research")
        return next(
            (
                entry
                for entry in api.list(f"{KUEUE_ROOT}/namespaces/{team}/workloads")
                if any(owner["name"] == pod for owner in entry["metadata"].get("ownerReferences") or ())
            ),
            {},
        )
