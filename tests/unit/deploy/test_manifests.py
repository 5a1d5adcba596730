"""deploy/ on a real API server, and beside the code that it is made from."""

import re
import tomllib
from pathlib import Path

import pytest
from version import NEXT

from reconciler.objects import Manifest
from reconciler.plan.rbac import account_objects, kubestellar_objects, member_objects, skypilot_objects
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.support import ROOT
from tests.unit.deploy.kustomized import DEPLOY, written

PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)


@pytest.mark.parametrize(
    ("folder", "objects"),
    [
        ("base", account_objects(Role.MANAGER)),
        ("worker", account_objects(Role.WORKER)),
        ("kubestellar", kubestellar_objects()),
        ("skypilot", skypilot_objects()),
        ("members", member_objects()),
    ],
    ids=["base", "worker", "kubestellar", "skypilot", "members"],
)
def test_rights_of_deploy_are_what_the_code_says(folder: str, objects: tuple[Manifest, ...]) -> None:
    path = DEPLOY / folder / "rights.yaml"
    assert written(path) == [*objects], "run: make docs"


def test_image_of_deploy_has_the_version_of_the_release_to_come() -> None:
    files = [*DEPLOY.rglob("*.yaml"), DEPLOY / "Dockerfile"]
    assert {found for path in files for found in re.findall(r"kfleet:(\S+)", path.read_text())} == {NEXT}
    chart = fast_yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (NEXT, NEXT)
    assert f"ARG VERSION={NEXT}" in (DEPLOY / "Dockerfile").read_text()
    assert f"\n## {NEXT} " in (ROOT / "CHANGELOG.md").read_text()


def test_requirements_of_the_image_are_a_part_of_the_lock() -> None:
    ours, all_of_them = (pins(path) for path in (DEPLOY / "requirements.lock", ROOT / "requirements.lock"))
    assert ours.items() <= all_of_them.items(), "write it anew, see docs/in-cluster.md"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[>=<]", entry)[0].lower() for entry in project["dependencies"]}
    assert named <= ours.keys()


def pins(path: Path) -> dict[str, str]:
    return {name.lower(): version for name, version in PIN.findall(path.read_text())}
