"""Queues: quotas that Kueue manages itself, and stopping a queue.

A quota has one writer. Where Kueue manages the quota, kfleet sends it only once, when it creates the queue, because
Kueue needs an initial quota.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import FIELD_MANAGER, Manifest, Ref
from reconciler.render.model import DesiredObject
from reconciler.state.managed_fields import has_applied, owners_at

AUTOMATED = "Automated"
CONDITION = "MultiKueueManagerQuotaAutomation"
GROUPS = "resourceGroups"
_DECISIVE = {"AdmissionCheck", "MultiKueueConfig"}
STOPPER = "kfleet-drain"
FIELD = "stopPolicy"
HOLD, EVICT = "Hold", "HoldAndDrain"
QUEUES = frozenset({"ClusterQueue", "LocalQueue"})


def leave_quotas(objects: Iterable[DesiredObject], live: Mapping[Ref, Manifest]) -> Iterator[DesiredObject]:
    """The queues whose quota another controller writes, without that quota. Other queues are not returned."""
    wanted = tuple(objects)
    there = {ref: manifest for ref, manifest in live.items() if ref.kind in _DECISIVE}
    meant = {entry.ref: _future_config(entry, live) for entry in wanted if entry.ref.kind in _DECISIVE}
    checks = _automated_checks({**there, **meant})
    for entry in wanted:
        queue = live.get(entry.ref) if entry.ref.kind == "ClusterQueue" else None
        if queue is not None and (writer := _writer(queue) or _writer_by_config(entry, checks)):
            note = f"{writer} manages its quota, so kfleet does not write it"
            left = _without_quota(entry.manifest, queue)
            yield replace(entry, manifest=left, notes=(*entry.notes, note), unmanaged=(GROUPS,))


def _writer(queue: Manifest) -> str:
    status = queue.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == CONDITION and condition["status"] == "True":
            return "Kueue (quotaManagement: Automated)"
    return "a quota orchestrator (status.effectiveQuotas)" if status.get("effectiveQuotas") else ""


def _future_config(entry: DesiredObject, live: Mapping[Ref, Manifest]) -> Manifest:
    """The future MultiKueueConfig: fields that the fleet does not set keep their live value."""
    if entry.ref.kind != "MultiKueueConfig":
        return entry.manifest
    there = as_map(at(live.get(entry.ref), "spec"))
    return {"spec": {**there, **entry.manifest["spec"]}}


def _automated_checks(known: Mapping[Ref, Manifest]) -> frozenset[str]:
    """The checks whose MultiKueueConfig lets Kueue manage the quota; all objects are from one cluster."""
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
    """Omit the quota from a queue.

    A field without another owner would be removed when kfleet releases it: until it has one, send the live value.
    """
    rest = {name: value for name, value in manifest["spec"].items() if name != GROUPS}
    if owners_at(queue, ("spec", GROUPS), but=FIELD_MANAGER):
        return {**manifest, "spec": rest}
    kept = at(to_canonical(queue).manifest, "spec", GROUPS)
    return {**manifest, "spec": {**rest, GROUPS: kept} if kept else rest}


def is_queue(ref: Ref) -> bool:
    return ref.group == GROUP and ref.kind in QUEUES


def is_stopped(live: Manifest) -> bool:
    return live.get("kind") in QUEUES and has_applied(live, STOPPER)


def stopping(queue: Manifest, uid: str, policy: str) -> Manifest:
    """A manifest that stops a queue. With the uid the API server rejects it for a new queue of the same name."""
    return {**queue, "metadata": {**queue["metadata"], "uid": uid}, "spec": {FIELD: policy}}


def letting_go(queue: Manifest) -> Manifest:
    """A manifest without fields: it releases what the manager owned, and values of other managers apply again."""
    metadata = {name: queue["metadata"][name] for name in ("name", "namespace") if queue["metadata"].get(name)}
    return {name: queue[name] for name in ("apiVersion", "kind")} | {"metadata": metadata}
