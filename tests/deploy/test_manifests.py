"""deploy/ on a real API server, and beside the code that it is made from."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.edges.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.rights import account_objects, kubestellar_objects, skypilot_objects
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.choices import Role
from tests.deploy.kustomized import DEPLOY, ROOT, kustomized, written

FOLDERS = ("controller", "cronjob", "observe", "worker")
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)


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


@pytest.mark.parametrize(
    ("folder", "objects"),
    [
        ("base", account_objects(Role.MANAGER)),
        ("worker", account_objects(Role.WORKER)),
        ("kubestellar", kubestellar_objects()),
        ("skypilot", skypilot_objects()),
    ],
    ids=["base", "worker", "kubestellar", "skypilot"],
)
def test_rights_of_deploy_are_what_the_code_says(folder: str, objects: tuple[Manifest, ...]) -> None:
    path = DEPLOY / folder / "rights.yaml"
    assert written(path) == [*objects], f"write {path} anew, see docs/in-cluster.md"


def test_role_for_kubestellar_is_accepted_strictly(server: ApiServer) -> None:
    for manifest in kubestellar_objects():
        assert server.apply(manifest, is_dry_run=True)["metadata"]["name"] == "kfleet-kubestellar"


def test_image_of_deploy_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    files = [*DEPLOY.rglob("*.yaml"), DEPLOY / "Dockerfile"]
    assert {found for path in files for found in re.findall(r"kfleet:(\S+)", path.read_text())} == {version}


def test_requirements_of_the_image_are_a_part_of_the_lock() -> None:
    ours, all_of_them = (pins(path) for path in (DEPLOY / "requirements.lock", ROOT / "requirements.lock"))
    assert ours.items() <= all_of_them.items(), "write it anew, see docs/in-cluster.md"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[>=<]", entry)[0].lower() for entry in project["dependencies"]}
    assert named <= ours.keys()


def pins(path: Path) -> dict[str, str]:
    return {name.lower(): version for name, version in PIN.findall(path.read_text())}
