"""deploy/ on a real API server, and beside the code that it is made from."""

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.plan.rbac import account_objects, kubestellar_objects
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests.unit.deploy.kustomized import kustomized

FOLDERS = ("controller", "cronjob", "observe", "worker")


@pytest.fixture
def server(fleet: Sandbox) -> ApiServer:
    """A manager with kfleet's namespace."""
    api = fleet.api("manager")
    api.apply(account_objects(Role.MANAGER)[0])
    return api


def pods(manifests: tuple[Manifest, ...]) -> Iterator[dict[str, Any]]:
    for manifest in manifests:
        spec = manifest.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            yield template


@pytest.mark.parametrize("folder", FOLDERS)
def test_deploy_is_accepted_strictly(server: ApiServer, folder: str) -> None:
    for manifest in kustomized(folder):
        answer = server.apply(manifest, is_dry_run=True)
        assert answer["metadata"]["name"] == manifest["metadata"]["name"]


@pytest.mark.parametrize("folder", ["controller", "cronjob", "observe"])
def test_pod_of_deploy_is_let_in_where_only_restricted_ones_are(server: ApiServer, folder: str) -> None:
    server.apply(next(entry for entry in kustomized(folder) if entry["kind"] == "ServiceAccount"))
    (template,) = pods(kustomized(folder))
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {"name": "kfleet", "namespace": "kfleet-system", "labels": template["metadata"]["labels"]}
    assert server.apply(pod, is_dry_run=True)["spec"]["containers"][0]["name"] == "kfleet"


def test_role_for_kubestellar_is_accepted_strictly(server: ApiServer) -> None:
    for manifest in kubestellar_objects():
        assert server.apply(manifest, is_dry_run=True)["metadata"]["name"] == "kfleet-kubestellar"
