"""Quotas that Kueue keeps by itself: a queue has one writer, and there it is not kfleet.

Kueue needs a quota to begin with, so it is sent once, when the queue is made.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.desired import DesiredObject
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest, Ref
from reconciler.ownership.fields import owners_at

MANAGER = "kfleet"
AUTOMATED = "Automated"
CONDITION = "MultiKueueManagerQuotaAutomation"
GROUPS = "resourceGroups"
_DECISIVE = {"AdmissionCheck", "MultiKueueConfig"}


def leave_quotas(objects: Iterable[DesiredObject], live: Mapping[Ref, Manifest]) -> Iterator[DesiredObject]:
    """The queues of a cluster whose quota somebody else writes, without it; all others are not among them."""
    wanted = tuple(objects)
    there = {ref: manifest for ref, manifest in live.items() if ref.kind in _DECISIVE}
    meant = {entry.ref: _laid_over(entry, live) for entry in wanted if entry.ref.kind in _DECISIVE}
    checks = _automated_checks({**there, **meant})
    for entry in wanted:
        queue = live.get(entry.ref) if entry.ref.kind == "ClusterQueue" else None
        if queue is not None and (writer := _writer(queue) or _writer_by_config(entry, checks)):
            note = f"{writer} writes its quota, which kfleet leaves alone"
            yield replace(entry, manifest=_without_quota(entry.manifest, queue), notes=(*entry.notes, note))


def _writer(queue: Manifest) -> str:
    status = queue.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == CONDITION and condition["status"] == "True":
            return "Kueue (quotaManagement: Automated)"
    return "a quota orchestrator (status.effectiveQuotas)" if status.get("effectiveQuotas") else ""


def _laid_over(entry: DesiredObject, live: Mapping[Ref, Manifest]) -> Manifest:
    """A config as it will be: what the fleet does not say of it stays as somebody else has set it."""
    if entry.ref.kind != "MultiKueueConfig":
        return entry.manifest
    there = as_map(at(live.get(entry.ref), "spec"))
    return {"spec": {**there, **entry.manifest["spec"]}}


def _automated_checks(known: Mapping[Ref, Manifest]) -> frozenset[str]:
    """The checks whose MultiKueueConfig asks Kueue to keep the quota; all objects are of one cluster."""
    configs = {
        ref.name
        for ref, manifest in known.items()
        if ref.kind == "MultiKueueConfig" and at(manifest, "spec", "quotaManagement") == AUTOMATED
    }
    checks = ((ref.name, manifest) for ref, manifest in known.items() if configs and ref.kind == "AdmissionCheck")
    return frozenset(name for name, manifest in checks if at(manifest, "spec", "parameters", "name") in configs)


def _writer_by_config(entry: DesiredObject, checks: frozenset[str]) -> str:
    named = as_list(at(entry.manifest, "spec", "admissionChecksStrategy", "admissionChecks"))
    is_automated = any(as_text(at(check, "name")) in checks for check in named)
    return "Kueue (quotaManagement: Automated)" if is_automated else ""


def _without_quota(manifest: Manifest, queue: Manifest) -> dict[str, Any]:
    """A field that nobody else owns would vanish when kfleet lets go of it: until somebody does, it stays as it is."""
    rest = {name: value for name, value in manifest["spec"].items() if name != GROUPS}
    if owners_at(queue, ("spec", GROUPS), but=MANAGER):
        return {**manifest, "spec": rest}
    kept = at(to_canonical(queue).manifest, "spec", GROUPS)
    return {**manifest, "spec": {**rest, GROUPS: kept} if kept else rest}
