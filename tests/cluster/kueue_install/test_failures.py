"""What is refused on a cluster with a real Kueue 0.16.2 of helm, and runs that end in the middle."""

import os
import pty
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.kueue_install.conftest import (
    DEPLOYMENT,
    NEW,
    OLD,
    PATCH,
    SYSTEM,
    KueueFleet,
    MakeKueueFleet,
    chart,
    values,
)
from tests.cluster.kueue_install.registry import registry
from tests.support import eventually

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cohorts.kueue.x-k8s.io"
TO_NEW = f"--chart={chart(NEW)}"
SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"


@pytest.fixture(scope="module")
def kueues(make_kueue_fleet: MakeKueueFleet) -> KueueFleet:
    """Clusters with 0.16.2, and 0.19.0 in git. The one in the south stays as it is; others may be upgraded already."""
    made = make_kueue_fleet(south="standalone", north="standalone", west="standalone")
    made.want(OLD)
    done = made.run("install", f"--chart={chart(OLD)}")
    assert done.returncode == 0, done.stdout + done.stderr
    made.want(NEW)
    return made


@contextmanager
def marked(kueues: KueueFleet, path: str, change: dict[str, Any], undo: dict[str, Any]) -> Iterator[None]:
    kueues.api("south").patch(path, change)
    yield
    kueues.api("south").patch(path, undo)


def test_nothing_is_refused_without_a_reason(kueues: KueueFleet) -> None:
    assert kueues.refusals("south", TO_NEW) == []


def test_newer_patch_is_rehearsed_by_its_own_chart(kueues: KueueFleet) -> None:
    kueues.want(PATCH)
    found = kueues.refusals("south", f"--chart={chart(PATCH)}")
    kueues.want(NEW)
    assert found == []


def test_stored_version_that_goes_is_refused_with_its_definition(kueues: KueueFleet) -> None:
    stored, before = ["v1alpha1", "v1beta1", "v1beta2"], kueues.api("south").get(CRD)["status"]["storedVersions"]
    change, undo = ({"status": {"storedVersions": versions}} for versions in (stored, before))
    with marked(kueues, f"{CRD}/status", change, undo):
        (problem,) = kueues.refusals("south", TO_NEW)
    assert problem.startswith("cohorts.kueue.x-k8s.io: objects may be stored as v1alpha1")


def test_tool_that_manages_the_deployment_is_refused(kueues: KueueFleet) -> None:
    mark = "argocd.argoproj.io/tracking-id"
    change, undo = ({"metadata": {"annotations": {mark: value}}} for value in ("kueue:apps/Deployment", None))
    with marked(kueues, DEPLOYMENT, change, undo):
        assert kueues.refusals("south", TO_NEW) == ["Argo CD manages Kueue's Deployment and would revert it"]


def test_fields_that_a_person_has_changed_are_refused(kueues: KueueFleet) -> None:
    change, undo = ({"spec": {"template": {"spec": {"priorityClassName": name}}}} for name in ("x", None))
    with marked(kueues, DEPLOYMENT, change, undo):
        kueues.want(NEW, install={"values": values(NEW) | _with_priority("system-cluster-critical")})
        found = kueues.refusals("south", TO_NEW)
        forced = kueues.refusals("south", TO_NEW, "--force-conflicts")
    kueues.want(NEW)
    assert found == ["Deployment kueue-controller-manager: python-urllib3 manages fields that the chart sets too"]
    assert forced == []


def _with_priority(name: str) -> dict[str, Any]:
    manager = values(NEW)["controllerManager"]
    return {"controllerManager": {**manager, "manager": {**manager["manager"], "priorityClassName": name}}}


def test_configuration_that_the_release_does_not_start_with_is_refused(kueues: KueueFleet) -> None:
    kueues.want(NEW, config={"featureGates": {"TASBalancedPlacement": True}})
    found = kueues.refusals("south", TO_NEW)
    kueues.want(NEW)
    assert len(found) == 1 and "on its command line and in its Configuration" in found[0]


def test_chart_of_another_release_is_refused(kueues: KueueFleet) -> None:
    answer = kueues.run("upgrade", f"--chart={chart(OLD)}")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"--chart: is Kueue {OLD}, but git says {NEW} for south, north, west" in answer.stderr


def test_person_at_a_terminal_is_asked_before_anything_is_changed(kueues: KueueFleet) -> None:
    before = kueues.versions("south")
    ours, theirs = pty.openpty()
    process = kueues.start("upgrade", "south", TO_NEW, stdin=theirs)
    os.write(ours, b"n\n")
    shown, asked = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 3 and f"upgrade {OLD} -> {NEW}" in shown
    assert "Go ahead, one cluster after the other?" in asked
    assert "the answer was no: nothing was changed" in asked
    assert kueues.versions("south") == before


def test_cluster_that_does_not_answer_stops_the_run_before_it_begins(kueues: KueueFleet) -> None:
    server = "north/kube-apiserver"
    kueues.sandbox.stop(server)
    answer = kueues.run("upgrade", TO_NEW)
    kueues.sandbox.restart(server)
    assert answer.returncode == 4 and "gap: north" in answer.stdout
    assert kueues.states()["south"][0] == OLD


def test_missing_helm_is_said_with_its_remedy(kueues: KueueFleet) -> None:
    kueues.settings["PATH"] = "/usr/bin:/bin"
    answer = kueues.run("upgrade", TO_NEW)
    del kueues.settings["PATH"]
    assert answer.returncode == 1 and "helm: was not found on the PATH" in answer.stderr
    assert "install Helm 3.17 or newer" in answer.stderr


def _with_replicas(count: int) -> dict[str, Any]:
    return {"values": {"controllerManager": {**values(NEW)["controllerManager"], "replicas": count}}}


def test_run_stops_at_an_unhealthy_cluster_and_is_finished_by_the_same_command(kueues: KueueFleet) -> None:
    kueues.want(NEW, install=_with_replicas(2))
    stuck = kueues.stick("north")
    first = kueues.run("upgrade", "north", "west", TO_NEW, "--timeout=5")
    assert first.returncode == 4
    assert "north: failed: not healthy after 5 s: the Deployment kueue-controller-manager is not" in first.stdout
    last = ["west: not started", "mend that and repeat the command: what is done is not done again"]
    assert first.stdout.splitlines()[-2:] == last
    running, state, unhealthy = kueues.states()["north"]
    assert (running, state, len(unhealthy)) == (NEW, "in sync", 1)
    stuck.unlink()
    code, steps = kueues.record("upgrade", "north", "west", TO_NEW)
    assert (code, [step["state"] for step in steps]) == (0, ["unchanged", "done"])
    kueues.want(NEW)


def test_run_whose_helm_was_killed_is_finished_by_the_same_command(kueues: KueueFleet) -> None:
    kueues.want(NEW, install=_with_replicas(3))
    process = kueues.start("upgrade", "west", TO_NEW)
    eventually(lambda: _pending(kueues), 60)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert kueues.states()["west"][1] == "unfinished"
    (problem,) = kueues.refusals("west", TO_NEW)
    assert problem.startswith("another helm works on the release kueue, or ended without a trace")
    code, (step,) = kueues.record("upgrade", "west", TO_NEW, "--clear-pending")
    assert (code, step["action"], step["state"]) == (0, "repeat", "done")
    assert kueues.states()["west"] == (NEW, "in sync", [])
    kueues.want(NEW)


def test_interrupted_run_is_finished_by_the_same_command_at_once(kueues: KueueFleet) -> None:
    kueues.want(NEW, install=_with_replicas(4))
    process = kueues.start("upgrade", "west", TO_NEW)
    eventually(lambda: _pending(kueues), 60)
    os.killpg(process.pid, signal.SIGINT)
    shown, said = process.communicate()
    assert process.returncode == 130 and "repeat the command to go on" in said, shown + said
    assert kueues.states()["west"][1] == "unfinished"
    code, (step,) = kueues.record("upgrade", "west", TO_NEW)
    assert (code, step["action"], step["state"]) == (0, "repeat", "done")
    kueues.want(NEW)


def _pending(kueues: KueueFleet) -> bool:
    secrets = kueues.api("west").list(SECRETS, "owner=helm")
    return any(secret["metadata"]["labels"]["status"].startswith("pending") for secret in secrets)


def test_kueue_without_helm_is_taken_over_only_with_permission(kueues: KueueFleet) -> None:
    """As if its manifests had been applied with kubectl: helm has no record, and no object names it."""
    api = kueues.api("west")
    for secret in api.list(SECRETS, "owner=helm"):
        api.delete(f"{SECRETS}/{secret['metadata']['name']}")
    names = dict.fromkeys(("meta.helm.sh/release-name", "meta.helm.sh/release-namespace"))
    for path in (DEPLOYMENT, CRD):
        api.patch(path, {"metadata": {"annotations": names}})
    assert kueues.refusals("west", TO_NEW) == ["Kueue was installed there without Helm"]
    code, (step,) = kueues.record("upgrade", "west", TO_NEW, "--take-ownership")
    assert (code, step["state"]) == (0, "done")
    assert kueues.states()["west"] == (NEW, "in sync", [])


def test_chart_comes_from_a_registry_in_the_version_of_git(kueues: KueueFleet, tmp_path: Path) -> None:
    with registry(chart(NEW), NEW, tmp_path) as served:
        kueues.settings["SSL_CERT_FILE"] = served.authority
        answer = kueues.run("upgrade", "south", "--dry-run", f"--chart={served.address}")
        kueues.want("0.19.9")
        other = kueues.run("upgrade", "south", "--dry-run", f"--chart={served.address}")
    del kueues.settings["SSL_CERT_FILE"]
    kueues.want(NEW)
    assert (answer.returncode, f"upgrade {OLD} -> {NEW}" in answer.stdout) == (0, True), answer.stderr
    assert other.returncode == 1 and "error: helm pull: " in other.stderr and "--chart FOLDER" in other.stderr
    assert f"/v2/charts/kueue/manifests/{NEW}" in served.asked
