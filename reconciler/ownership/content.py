"""What an object says, without what the server adds to every object."""

from typing import Any

from reconciler.objects import Manifest

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_METADATA = ("labels", "annotations")


def content(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest.get("metadata") or {}
    kept = {name: dict(metadata.get(name) or {}) for name in _KEPT_METADATA}
    kept["annotations"].pop(LAST_APPLIED, None)
    rest = {name: value for name, value in manifest.items() if name not in {"metadata", "status", "apiVersion", "kind"}}
    return {**rest, "metadata": kept}
