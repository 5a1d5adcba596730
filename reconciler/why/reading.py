"""Reads single facts of Workloads and jobs."""

from collections.abc import Mapping
from typing import Any

from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import has_condition
from reconciler.objects import Manifest

JOB_UID = f"{GROUP}/job-uid"
# On a job that MultiKueue created on a worker: the Workload that it belongs to. Kueue 0.19 writes it as an annotation.
PREBUILT = f"{GROUP}/prebuilt-workload-name"
Address = tuple[str, str]


def address_of(manifest: Manifest | None) -> Address:
    return as_text(at(manifest, "metadata", "namespace")), as_text(at(manifest, "metadata", "name"))


def uid_of(manifest: Manifest | None) -> str:
    return as_text(at(manifest, "metadata", "uid"))


def label_of(manifest: Manifest | None, name: str) -> str:
    return as_text(at(manifest, "metadata", "labels", name))


def prebuilt_of(job: Manifest | None) -> str:
    """Return the Workload that MultiKueue made for a job; empty for every other job."""
    return label_of(job, PREBUILT) or as_text(at(job, "metadata", "annotations", PREBUILT))


def created_at(manifest: Manifest | None) -> str:
    return as_text(at(manifest, "metadata", "creationTimestamp"))


def condition_of(manifest: Manifest | None, kind: str) -> Mapping[str, Any]:
    conditions = map(as_map, as_list(at(manifest, "status", "conditions")))
    return next((one for one in conditions if one.get("type") == kind), {})


def message_of(manifest: Manifest | None, kind: str) -> str:
    return as_text(condition_of(manifest, kind).get("message"))


def owner_of(manifest: Manifest | None) -> Mapping[str, Any]:
    """Return the controller that owns an object, or else its first owner."""
    owners = [as_map(one) for one in as_list(at(manifest, "metadata", "ownerReferences"))]
    return next((one for one in owners if one.get("controller") is True), owners[0] if owners else {})


def title_of(job: Manifest | None, workload: Manifest | None) -> str:
    """Return `Kind/namespace/name` of the job, or of the Workload if its job is not known."""
    if job is not None:
        return "/".join((as_text(job.get("kind")), *address_of(job)))
    owner, (namespace, name) = owner_of(workload), address_of(workload)
    if owner:
        return "/".join((as_text(owner.get("kind")), namespace, as_text(owner.get("name"))))
    return f"Workload/{namespace}/{name}"


def is_pending(workload: Manifest) -> bool:
    """Whether a workload waits for quota: it is active, and neither finished nor with a reservation."""
    return is_active(workload) and not any(has_condition(workload, one) for one in ("Finished", "QuotaReserved"))


def is_active(workload: Manifest) -> bool:
    return at(workload, "spec", "active") is not False


def priority_of(workload: Manifest) -> int:
    value = at(workload, "spec", "priority")
    return value if isinstance(value, int) else 0


def open_checks(workload: Manifest) -> list[Mapping[str, Any]]:
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    return [one for one in states if one.get("state") != "Ready"]
