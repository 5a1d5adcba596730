"""The annotations and labels of kfleet.dev, and metadata that is dropped when a document is read."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.errors import SpecError
from reconciler.objects import Manifest
from reconciler.spec.document import Document
from reconciler.spec.selectors import ANNOTATION, LINT_IGNORE
from reconciler.text import suggest

DOMAIN = "kfleet.dev/"
DRAIN_ON_DELETE = "kfleet.dev/drain-on-delete"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PART_OF = "applyset.kubernetes.io/part-of"

ANNOTATIONS: Mapping[str, str] = {
    ANNOTATION: "the clusters of a native document or a MasterQueue",
    LINT_IGNORE: "lint rules that do not apply to the document, each with its reason",
    DRAIN_ON_DELETE: "evict the workloads of a native ClusterQueue when it is deleted",
}
LABELS: Mapping[str, str] = {
    "kfleet.dev/fleet": "clusters of Argo CD that get an Application of the fleet",
    "kfleet.dev/metrics": "namespaces that may scrape kfleet's metrics",
    "kfleet.dev/webhook": "namespaces that may reach kfleet's webhook",
}
# Written by kfleet and by kubectl themselves: objects that were printed from a cluster have them.
WRITTEN = frozenset(
    (
        "kfleet.dev/wanted",
        "kfleet.dev/observations",
        "kfleet.dev/pool",
        "kfleet.dev/multikueue",
        "kfleet.dev/multikueue-origin",
        "kfleet.dev/placed",
        "kfleet.dev/placement",
        "kfleet.dev/placement-ran",
        "kfleet.dev/placement-ended",
        "kfleet.dev/kueue-config",
        "kfleet.dev/previous-kueue-config",
        "kfleet.dev/failed-kueue-config",
    )
)
_DROPPED = WRITTEN | {ANNOTATION, LINT_IGNORE, LAST_APPLIED, PART_OF}


def check_metadata(document: Document, *, is_own: bool) -> Iterator[SpecError]:
    """Report annotations and labels of kfleet.dev that do not exist: they would have no effect."""
    for field, known, others in (("annotations", ANNOTATIONS, LABELS), ("labels", LABELS, ANNOTATIONS)):
        for key in _entries(document.value, field):
            path = ("metadata", field, key)
            if key.startswith(DOMAIN) and key not in known and key not in WRITTEN:
                yield document.error(path, _unknown(key, field, known, others))
            elif key == ANNOTATION and is_own:
                yield document.error(path, f"has no effect on a {document.kind}: {_selection(document.kind)}")


def _unknown(key: str, field: str, known: Mapping[str, str], others: Mapping[str, str]) -> str:
    if key in others:
        return f"has no effect here: it is {'an annotation' if field == 'labels' else 'a label'}"
    return f"is not one of kfleet's {field}{suggest(key, known)}; allowed: {', '.join(known)}"


def _selection(kind: str) -> str:
    return "use spec.clusters" if kind in {"Queue", "Flavor"} else "remove it"


def without_own_metadata(manifest: Manifest) -> Manifest:
    """Return the manifest that is applied to a cluster."""
    metadata = manifest["metadata"]
    kept: dict[str, Any] = {}
    for name, value in metadata.items():
        if name in {"annotations", "labels"} and isinstance(value, dict) and value.keys() & _DROPPED:
            kept |= {name: left} if (left := {k: v for k, v in value.items() if k not in _DROPPED}) else {}
        else:
            kept[name] = value
    return manifest if len(kept) == len(metadata) and kept == metadata else {**manifest, "metadata": kept}


def _entries(manifest: Manifest, field: str) -> list[str]:
    metadata = manifest.get("metadata")
    entries = metadata.get(field) if isinstance(metadata, dict) else None
    return [key for key in entries if isinstance(key, str)] if isinstance(entries, dict) else []
