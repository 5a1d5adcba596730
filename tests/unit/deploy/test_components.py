"""deploy/ as somebody puts it together: with its components, and with settings that fit each other."""

import re

import pytest

from reconciler.clients.git import SSH
from tests import fast_yaml
from tests.unit.deploy.kustomized import DEPLOY

COMPONENTS = ("monitoring", "kubestellar", "members", "skypilot", "webhook", "page")
LISTED = {path.parent.name for path in DEPLOY.glob("*/kustomization.yaml") if "kind: Component" in path.read_text()}


def test_every_component_for_the_controller_is_tried() -> None:
    """That of Argo CD goes into an installation of Argo CD."""
    assert LISTED - {"argocd"} == set(COMPONENTS)


def test_programs_that_kfleet_calls_are_in_the_image() -> None:
    """Those of procps are called by GitPython, to end a fetch that takes too long."""
    (line,) = re.findall(r"apt-get install (.*) \\", (DEPLOY / "Dockerfile").read_text())
    assert {"git", "openssh-client", "gpg", "ca-certificates", "procps"} <= set(line.split())


@pytest.mark.parametrize("path", ["controller/deployment.yaml", "cronjob/cronjob.yaml", "observe/cronjob.yaml"])
def test_ssh_of_deploy_gives_up_on_silence_like_the_one_of_kfleet(path: str) -> None:
    (command,) = re.findall(r"ssh -o BatchMode.*", (DEPLOY / path).read_text())
    assert command.startswith(SSH)


def test_script_that_observes_is_mounted_where_the_job_starts_it() -> None:
    folder = DEPLOY / "observe"
    (made,) = fast_yaml.safe_load((folder / "kustomization.yaml").read_text())["configMapGenerator"]
    pod = fast_yaml.safe_load((folder / "cronjob.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (volume,) = [one for one in pod["volumes"] if one.get("configMap") == {"name": made["name"]}]
    (container,) = pod["containers"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == volume["name"]]
    assert container["command"] == ["sh", f"{mount['mountPath']}/{made['files'][0]}"]
