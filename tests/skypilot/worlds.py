"""The examples of the documentation, on a real cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import reconciler
from tests.engine.worlds import KUEUE_ROOT, World
from tests.support import eventually

EXAMPLES = Path(reconciler.__file__).parent.parent / "docs" / "examples"
NAMES = ("skypilot-shared", "skypilot-cohort")
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def documents_of(example: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all((EXAMPLES / example / "fleet.yaml").read_text())]


@dataclass
class ExampleWorld(World):
    """The fleet of an example, with this cluster in place of the one that it names."""

    def take(self, example: str) -> None:
        documents = [self._here(document) for document in documents_of(example)]
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all(documents))
        self.commit_all()

    def _here(self, document: dict[str, Any]) -> dict[str, Any]:
        if document["kind"] == "Fleet":
            return {**document, "metadata": {"name": self.name}}
        if document["kind"] != "Cluster":
            return document
        (own,) = self.cluster_documents()
        return {**document, "spec": {**document["spec"], "access": own["spec"]["access"]}}

    def run_pod(self, team: str, name: str, cores: int) -> None:
        """A plain pod as the team's SkyPilot server makes one, by the config that kfleet wrote for it."""
        config = yaml.safe_load(self.config_text(team))
        requests = {"cpu": str(cores), "memory": "1Gi", "nvidia.com/gpu": "1"}
        container = {"name": "task", "image": "task", "resources": {"requests": requests, "limits": requests}}
        labels = {QUEUE_LABEL: config["kubernetes"]["kueue"]["local_queue_name"]}
        self.api("research").create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": team, "labels": labels},
                "spec": {"containers": [container]},
            }
        )

    def config_text(self, team: str) -> str:
        found = self.api("research").get(f"/api/v1/namespaces/{team}/configmaps/skypilot-{team}")
        return str(found["data"]["config.yaml"])

    def is_running(self, team: str, name: str) -> bool:
        pod = self.api("research").get(f"/api/v1/namespaces/{team}/pods/{name}")
        return pod["status"].get("phase") == "Running"

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
