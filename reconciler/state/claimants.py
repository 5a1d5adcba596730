"""Other tools that would write an object again: recognized by their marks, and by the fields that they own.

Decision: field managers count too, not only marks. Argo CD before 3.0 marks an object with a label that many charts set
by themselves (app.kubernetes.io/instance), and it writes by client-side apply; its field manager is certain.
"""

from collections.abc import Mapping

from reconciler.kueue.reading import as_map
from reconciler.objects import FIELD_MANAGER, Manifest
from reconciler.state.managed_fields import APPLY, owners_of
from reconciler.state.manual_edits import is_manual_manager

TRACKERS: Mapping[str, str] = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
# Argo CD's mark before 3.0; on an object that it does not write, it is only a label of a chart.
_LABEL_TRACKING = {"app.kubernetes.io/instance": "Argo CD"}
_TOOLS: Mapping[str, str] = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "helm": "Helm",
}


def claimant(live: Manifest) -> str:
    """Return the tool, or the field manager that applies the object; empty if there is none.

    Server-side apply counts whatever the tool is called, because only a tool names itself; a person is kubectl. A
    Namespace that a tool once created for other objects stays as it is, so for it only marks and applies count.
    """
    marks = _marks(live)
    if tool := next((tool for mark, tool in TRACKERS.items() if mark in marks), ""):
        return tool
    owners = [owner for owner in owners_of(live) if not owner.subresource]
    named = [_TOOLS[owner.manager] for owner in owners if owner.manager in _TOOLS]
    if named and live.get("kind") != "Namespace":
        return named[0]
    appliers = (owner.manager for owner in owners if owner.operation == APPLY)
    return next((name for name in appliers if not is_manual_manager(name) and name != FIELD_MANAGER), "")


def is_former_tool(live: Manifest, manager: str) -> bool:
    """Whether a tool wrote the object once and has left it since: its fields are there, and its mark is not."""
    tool, marks = _TOOLS.get(manager), _marks(live)
    return tool is not None and not any(
        mark in marks for mark, known in (*TRACKERS.items(), *_LABEL_TRACKING.items()) if known == tool
    )


def _marks(live: Manifest) -> Manifest:
    metadata = live["metadata"]
    return {**as_map(metadata.get("labels")), **as_map(metadata.get("annotations"))}
