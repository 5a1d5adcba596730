"""The Helm chart by the real helm: the same objects as deploy/ gives with kustomize, and installed on a real server."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.deploy.test_manifests import pods
from tests.unit.deploy.charted import CHART, charted, helm
from tests.unit.deploy.kustomized import combined, kustomized

pytestmark = pytest.mark.usefixtures("loopback")

HASHED = re.compile(r"^kfleet-source-[a-z0-9]{10}$")
ADDED = ("page.create", "webhook.create", "serviceMonitor.create", "rights.kubestellar", "rights.members")
COMPONENTS = ("page", "webhook", "monitoring", "kubestellar", "members", "skypilot")
EVERYTHING = tuple(f"--set={name}=true" for name in (*ADDED, "rights.skypilot"))


@pytest.fixture
def server(fleet: Sandbox) -> ApiServer:
    return fleet.api("manager")


def plain(value: Any) -> Any:
    """Without what each tool adds so that a new source starts new pods, and with the order of named lists left out."""
    if isinstance(value, dict):
        kept = {key: plain(entry) for key, entry in value.items() if key != "checksum/source"}
        return {key: entry for key, entry in kept.items() if key != "annotations" or entry}
    if isinstance(value, list):
        entries = [plain(entry) for entry in value]
        is_named = all(isinstance(entry, dict) and "name" in entry for entry in entries)
        return sorted(entries, key=lambda entry: str(entry["name"])) if is_named else entries
    if isinstance(value, str) and HASHED.match(value):
        return "kfleet-source"
    return value


def by_name(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """The Namespace aside: helm makes that of a release itself."""
    return {
        f"{entry['kind']}/{entry['metadata'].get('namespace', '')}/{plain(entry['metadata']['name'])}": plain(entry)
        for entry in manifests
        if entry["kind"] != "Namespace"
    }


def arguments(manifests: dict[str, Any]) -> set[str]:
    """The order of options does not matter; patches of kustomize add theirs to the end."""
    found = set()
    for entry in manifests.values():
        for container in entry.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            found |= set(container["args"])
            container["args"] = sorted(container["args"])
    return found


@pytest.mark.parametrize(("mode", "folder"), [("controller", "controller"), ("cronjob", "cronjob")])
def test_chart_gives_what_kustomize_gives(mode: str, folder: str, tmp_path: Path) -> None:
    assert by_name(charted(tmp_path, f"--set=mode={mode}")) == by_name(kustomized(folder))


def test_chart_with_everything_gives_what_all_components_give(tmp_path: Path) -> None:
    ours, theirs = by_name(charted(tmp_path, *EVERYTHING)), by_name(combined(tmp_path, "controller", *COMPONENTS))
    assert "--ui=0.0.0.0:8466" in (arguments(ours) & arguments(theirs))
    assert ours == theirs


def test_helm_finds_no_fault_with_the_chart(tmp_path: Path) -> None:
    for options in ((), EVERYTHING, ("--set=mode=cronjob",)):
        answer = helm("lint", "--strict", str(CHART), *options, home=tmp_path)
        assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--set=mode=both",), "mode"),
        (("--set=source.branch=main",), "branch"),
        (("--set=mode=cronjob", "--set=page.create=true"), "need mode: controller"),
        (("--set=image.digest=latest",), "digest"),
    ],
)
def test_chart_refuses_values_that_it_does_not_know(options: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    answer = helm("template", "kfleet", str(CHART), *options, home=tmp_path)
    assert answer.returncode != 0 and problem in answer.stderr


def test_values_reach_the_objects(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    options = ("--set=image.repository=images.example.org/kfleet", f"--set=image.digest={digest}")
    found = by_name(charted(tmp_path, *options, "--set=controller.replicas=1", "--set=rights.kueueNamespace=queues"))
    (container,) = found["Deployment/kfleet-system/kfleet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"images.example.org/kfleet@{digest}"
    assert "Role/queues/kfleet-manager" in found
    # A budget of one pod would hold up the drain of its node.
    assert "PodDisruptionBudget/kfleet-system/kfleet" not in found


@pytest.mark.parametrize("options", [EVERYTHING, ("--set=mode=cronjob",)], ids=["controller", "cronjob"])
def test_chart_is_accepted_strictly(server: ApiServer, options: tuple[str, ...], tmp_path: Path) -> None:
    server.apply(next(entry for entry in kustomized("controller") if entry["kind"] == "Namespace"))
    objects = charted(tmp_path, *options)
    (template,) = pods(objects)
    for manifest in objects:
        if manifest["kind"] != "ServiceMonitor":  # its CRD belongs to the Prometheus operator
            answer = server.apply(manifest, is_dry_run=True)
            assert answer["metadata"]["name"] == manifest["metadata"]["name"]
    server.apply(next(entry for entry in objects if entry["kind"] == "ServiceAccount"))
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {"name": "kfleet", "namespace": "kfleet-system", "labels": template["metadata"]["labels"]}
    assert server.apply(pod, is_dry_run=True)["spec"]["containers"][0]["name"] == "kfleet"


def test_helm_installs_and_removes_the_chart(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    """In a namespace of its own, without the roles, whose names other tests use."""
    kubeconfig = f"--kubeconfig={fleet.state.kubeconfig}"
    release = ("kfleet", f"--namespace={unique}", kubeconfig, "--kube-context=manager")
    options = ("--create-namespace", "--set=rights.create=false", "--set=webhook.create=true")
    answer = helm("install", *release[:1], str(CHART), *release[1:], *options, home=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "kfleet bootstrap worker" in answer.stdout
    api = fleet.api("manager")
    path = f"/apis/apps/v1/namespaces/{unique}/deployments/kfleet"
    assert api.get(path)["spec"]["replicas"] == 2
    answer = helm("uninstall", *release, home=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert api.find(path) is None
