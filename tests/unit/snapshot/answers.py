"""Answers of an API server, as a snapshot keeps them."""

from typing import Any

from reconciler.objects import Manifest
from reconciler.snapshot.recording import Answers, RecordedAnswer, Request

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
JOBS = "/apis/batch/v1/jobs"


def listed(kind: str, *items: Manifest) -> RecordedAnswer:
    return RecordedAnswer(200, {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": list(items)})


def named(name: str, namespace: str = "", labels: dict[str, str] | None = None, **more: Any) -> Manifest:
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **({"labels": labels} if labels else {}),
    }
    return {"metadata": metadata, **more}


def discovery(**groups: dict[str, dict[str, str]]) -> Answers:
    """Kinds by plural, by version, by group; `core` is the group without a name."""
    documents = {
        path: {
            "kind": "APIGroupDiscoveryList",
            "items": [_group(name, versions) for name, versions in groups.items() if (name == "core") is is_core],
        }
        for path, is_core in (("/api", True), ("/apis", False))
    }
    return {Request(path=path, is_discovery=True): RecordedAnswer(200, body) for path, body in documents.items()}


def _group(name: str, versions: dict[str, dict[str, str]]) -> Manifest:
    return {
        "metadata": {} if name == "core" else {"name": name.replace("_", ".")},
        "versions": [
            {
                "version": version,
                "resources": [
                    {"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced"}
                    for plural, kind in kinds.items()
                ],
            }
            for version, kinds in versions.items()
        ],
    }
