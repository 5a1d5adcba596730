"""deploy/argocd on a real API server with Argo CD's definitions."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import PROGRAMS
from tests import fast_yaml
from tests.builders import namespace_object
from tests.cluster.argocd.servers import PLUGIN
from tests.cluster.definitions import held_definitions

NAMESPACE = namespace_object("argocd")
# What the plugin needs of an installation: the repo-server with its volumes, and the ConfigMap of settings.
# Like Argo CD's own manifests, it names no namespace.
INSTALLATION = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: argocd-repo-server}}
  template:
    metadata: {labels: {app.kubernetes.io/name: argocd-repo-server}}
    spec:
      containers: [{name: argocd-repo-server, image: argocd}]
      volumes: [{name: var-files, emptyDir: {}}, {name: plugins, emptyDir: {}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data: {url: https://argocd.example.org}
"""


@pytest.fixture(scope="module")
def server(fleet: Sandbox) -> Iterator[ApiServer]:
    api = fleet.api("worker1")
    definitions = PROGRAMS["argocd"].manifests("manifests/crds/*")
    api.create(NAMESPACE)
    with held_definitions(api, definitions):
        yield api
    api.delete(api.path_of(NAMESPACE))


def test_examples_of_argo_cd_are_accepted_strictly(server: ApiServer) -> None:
    for name in ("application.yaml", "applicationset.yaml"):
        example = fast_yaml.safe_load((PLUGIN / name).read_text())
        assert server.apply(example, is_dry_run=True)["metadata"]["name"] == example["metadata"]["name"]


def test_plugin_goes_into_an_installation_of_argo_cd(server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "argocd.yaml").write_text(INSTALLATION)
    (tmp_path / "argocd").symlink_to(PLUGIN)
    outer = "namespace: argocd\nresources: [argocd.yaml]\ncomponents: [argocd]\n"
    (tmp_path / "kustomization.yaml").write_text(outer)
    command = [str(PROGRAMS["kubernetes"].binary), "kubectl", "kustomize", "--load-restrictor", "LoadRestrictionsNone"]
    answer = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    objects = {entry["metadata"]["name"].partition("-h")[0]: entry for entry in fast_yaml.safe_load_all(answer.stdout)}
    for entry in objects.values():
        assert entry["metadata"]["namespace"] == "argocd"
        server.apply(entry, is_dry_run=True)
    containers = objects["argocd-repo-server"]["spec"]["template"]["spec"]["containers"]
    assert {entry["name"] for entry in containers} == {"argocd-repo-server", "kfleet"}
    settings = objects["argocd-cm"]["data"]
    assert settings["url"] == "https://argocd.example.org"
    script = (PLUGIN / "health.lua").read_text()
    kinds = {name.rpartition("_")[2] for name, value in settings.items() if value == script}
    assert kinds == {"ClusterQueue", "LocalQueue", "AdmissionCheck", "MultiKueueCluster"}
