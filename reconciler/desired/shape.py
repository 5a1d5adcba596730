"""Small steps that every family of objects is built with."""

from collections.abc import Mapping
from typing import Any

from reconciler.desired.model import DesiredObject
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.objects import Manifest, ref_of
from reconciler.spec.document import Document
from reconciler.spec.model import Cluster


def desired_object(cluster: Cluster, manifest: Manifest, document: Document, *notes: str) -> DesiredObject:
    return DesiredObject(ref_of(cluster.name, manifest), manifest, document, notes)


def kueue_manifest(kind: str, name: str, content: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{GROUP}/{CANONICAL}", "kind": kind, "metadata": metadata, "spec": dict(content)}


def without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing: Kueue's own default holds there, and kfleet does not claim the field."""
    return {name: value for name, value in content.items() if value not in ("", None, [], {}, ())}
