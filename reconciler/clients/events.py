"""Kubernetes Events on the manager, which report to operators what they must know."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from reconciler.clients.protocols import ClusterClient

LONGEST = 1024


@dataclass(frozen=True, slots=True)
class ConfigMapName:
    namespace: str
    name: str


def send_event(client: ClusterClient, about: ConfigMapName, reason: str, message: str) -> None:
    """Write an Event about the fleet's own ConfigMap. Raises ClusterError like every write."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    client.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{uuid4().hex[:12]}", "namespace": about.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": about.name,
                "namespace": about.namespace,
            },
            "reason": reason,
            "message": message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…",
            "type": "Warning",
            "source": {"component": "kfleet"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
    )
