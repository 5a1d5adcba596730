"""deploy/ as somebody puts it together: with its components, and with settings that fit each other."""

import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ExitCode
from reconciler.objects import Manifest
from reconciler.plan.rbac import account_objects
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests.unit.deploy.kustomized import DEPLOY, combined, kustomized

COMPONENTS = ("monitoring", "kubestellar", "members", "skypilot", "webhook")

Whole = dict[tuple[str, str], Manifest]


@pytest.fixture
def whole(tmp_path: Path, _programs: None) -> Whole:
    """The controller with everything that can be listed beside it."""
    manifests = combined(tmp_path, "controller", *COMPONENTS)
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in manifests}


def labels(manifest: Manifest) -> set[tuple[str, str]]:
    return set((manifest["metadata"].get("labels") or {}).items())


def pod_of(whole: Whole) -> dict[str, Any]:
    template: dict[str, Any] = whole["Deployment", "kfleet"]["spec"]["template"]
    return template


def test_components_go_together_and_are_accepted_strictly(fleet: Sandbox, whole: Whole) -> None:
    api: ApiServer = fleet.api("manager")
    api.apply(account_objects(Role.MANAGER)[0])
    # Its definition belongs to the Prometheus operator.
    ours = {key: entry for key, entry in whole.items() if key[0] != "ServiceMonitor"}
    assert len(ours) == len(whole) - 1
    for key, manifest in ours.items():
        answer = api.apply(manifest, is_dry_run=True)
        assert (answer["kind"], answer["metadata"]["name"]) == key


def test_service_monitor_finds_one_service_and_its_port(whole: Whole) -> None:
    monitor = whole["ServiceMonitor", "kfleet"]
    wanted = set(monitor["spec"]["selector"]["matchLabels"].items())
    (found,) = [entry for (kind, _), entry in whole.items() if kind == "Service" and wanted <= labels(entry)]
    assert found["metadata"]["namespace"] == monitor["metadata"]["namespace"]
    ports = {port["name"] for port in found["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


@pytest.mark.parametrize("name", ["kfleet", "kfleet-webhook"])
def test_service_and_policy_lead_to_the_port_of_the_pods(whole: Whole, name: str) -> None:
    service, policy, pod = whole["Service", name]["spec"], whole["NetworkPolicy", name]["spec"], pod_of(whole)
    own = set(pod["metadata"]["labels"].items())
    assert set(service["selector"].items()) <= own
    assert set(policy["podSelector"]["matchLabels"].items()) <= own
    (container,) = pod["spec"]["containers"]
    numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
    (rule,) = policy["ingress"]
    assert [numbers[port["targetPort"]] for port in service["ports"]] == [port["port"] for port in rule["ports"]]


def test_webhook_reads_its_secret_where_it_is_mounted(whole: Whole) -> None:
    pod = pod_of(whole)["spec"]
    (container,) = pod["containers"]
    (path,) = [found[1] for one in container["args"] if (found := re.fullmatch("--webhook=(.*)/secret", one))]
    (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == path]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    assert volume["secret"]["secretName"] == "kfleet-webhook"
    document = (DEPLOY.parent / "docs" / "in-cluster.md").read_text()
    assert "create secret generic kfleet-webhook --from-file=secret\n" in document


def job_of(folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A CronJob's spec, and that of its Jobs."""
    (spec,) = [entry["spec"] for entry in kustomized(folder) if entry["kind"] == "CronJob"]
    return spec, spec["jobTemplate"]["spec"]


@pytest.mark.usefixtures("_programs")
def test_job_of_apply_gives_up_where_the_next_try_would_say_the_same() -> None:
    """1 is an error or wrong usage; apply never ends with 2."""
    _, job = job_of("cronjob")
    lost, final = job["podFailurePolicy"]["rules"]
    assert lost["action"] == "Ignore" and lost["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert final["action"] == "FailJob" and final["onExitCodes"]["operator"] == "In"
    assert final["onExitCodes"]["values"] == [ExitCode.ERROR, ExitCode.REFUSED]
    assert ExitCode.INCOMPLETE not in final["onExitCodes"]["values"] and job["backoffLimit"] > 0
    (container,) = job["template"]["spec"]["containers"]
    assert final["onExitCodes"]["containerName"] == container["name"]


@pytest.mark.usefixtures("_programs")
def test_job_that_observes_is_tried_again_whatever_happened() -> None:
    """A push that came too late ends with 1, like a mistake."""
    _, job = job_of("observe")
    assert "podFailurePolicy" not in job and job["backoffLimit"] > 0


@pytest.mark.usefixtures("_programs")
@pytest.mark.parametrize(("folder", "seconds"), [("cronjob", 600), ("observe", 3600)])
def test_run_of_a_cron_job_is_over_before_the_next_one(folder: str, seconds: int) -> None:
    spec, job = job_of(folder)
    assert spec["concurrencyPolicy"] == "Forbid"
    assert job["activeDeadlineSeconds"] < seconds and spec["startingDeadlineSeconds"] < seconds
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    minutes = {"cronjob": r"\*/10", "observe": r"\d+"}[folder]
    assert re.fullmatch(rf"{minutes} \* \* \* \*", spec["schedule"])
