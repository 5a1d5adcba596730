"""Plays KubeStellar's status add-on by API calls, because the real one cannot be built from public modules.

It does what the add-on does: for every object that a worker's agent applied there is a WorkStatus in the worker's
mailbox, with the object's labels and status. KubeStellar's own controller carries it on to the manager.
"""

from collections.abc import Iterator
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox

APPLIED = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
WORK_STATUS = "control.kubestellar.io/v1alpha1"


def return_status(sandbox: Sandbox, *workers: str) -> None:
    """Bring the WorkStatuses of workers up to date, once; call it again to follow their objects."""
    its = sandbox.api("its")
    for worker in workers:
        mailbox = f"/apis/{WORK_STATUS}/namespaces/{worker}/workstatuses"
        wanted = {status["metadata"]["name"]: status for status in _work_statuses(sandbox.api(worker))}
        for left in {entry["metadata"]["name"] for entry in its.list(mailbox)} - wanted.keys():
            its.delete(f"{mailbox}/{left}")
        for name, status in wanted.items():
            its.apply({key: value for key, value in status.items() if key != "status"}, manager="status-addon")
            its.patch(f"{mailbox}/{name}/status", {"status": status["status"]})


def _work_statuses(worker: ApiServer) -> Iterator[dict[str, Any]]:
    for applied in worker.list(APPLIED):
        for resource in (applied.get("status") or {}).get("appliedResources", ()):
            found = worker.find(_path(resource))
            if found and "status" in found:
                yield _work_status(worker.cluster, applied["metadata"]["uid"], resource, found)


def _path(resource: dict[str, Any]) -> str:
    group, version, namespace = resource.get("group"), resource["version"], resource.get("namespace")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{resource['resource']}/{resource['name']}"


def _work_status(worker: str, applied: str, resource: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    group, version, namespace = resource.get("group", ""), resource["version"], resource.get("namespace", "")
    name = f"{applied}-{group}{version}-{found['kind']}-{namespace}-{resource['name']}".lower()[:253]
    reference = {"group": group, "version": version, "namespace": namespace, "kind": found["kind"]}
    return {
        "apiVersion": WORK_STATUS,
        "kind": "WorkStatus",
        "metadata": {"name": name, "namespace": worker, "labels": found["metadata"].get("labels", {})},
        "spec": {"sourceRef": {**reference, "resource": resource["resource"], "name": resource["name"]}},
        "status": found["status"],
    }
