"""Kubernetes Events on the manager: what an operator must know, where operators look for it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from reconciler.ports import ClusterPort

LONGEST = 1024


@dataclass(frozen=True, slots=True)
class ConfigMapName:
    namespace: str
    name: str


def send_event(port: ClusterPort, about: ConfigMapName, reason: str, message: str) -> None:
    """An Event about the fleet's own ConfigMap. Raises ClusterError as every write does."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    port.create(
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
