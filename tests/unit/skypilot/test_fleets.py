"""SkyPilot teams as values: what they get, and the examples of the documentation."""

from typing import Any

import pytest

from reconciler.pipeline.load import load_files
from reconciler.render.compute import compute_desired
from reconciler.skypilot.render import configuration_text
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.cluster.skypilot.example_live_fleet import EXAMPLES, NAMES
from tests.support import SEEDS, Kfleet

SEEDS = SEEDS / "skypilot"
RESEARCH = """\
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: research}
spec: {role: standalone}
"""
BASE = """\
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: sky}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: hub}
spec: {role: manager, kueue: {config: {integrations: {frameworks: [batch/job, pod]}}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {role: worker, kueue: {config: {integrations: {frameworks: [batch/job, pod]}}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: static, resources: {cpu: 10}}}
---
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {dispatch: %s, quota: [{flavor: cpu, resources: {cpu: 100%%}}]}
---
apiVersion: kfleet.dev/v1alpha1
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research, localQueue: jobs, skypilot: %s}
"""


def skypilot_spec(skypilot: str, dispatch: str = "none") -> FleetSpec:
    return parse_fleet(FleetFiles("test", "", {"fleet/all.yaml": (BASE % (dispatch, skypilot)).encode()}))


@pytest.mark.parametrize(
    ("skypilot", "config"),
    [
        ("{}", {"kubernetes": {"kueue": {"local_queue_name": "jobs"}}}),
        ('{version: "v0.10.5"}', {"kubernetes": {"kueue": {"local_queue_name": "jobs"}}}),
        (
            '{version: "0.9.3"}',
            {
                "kubernetes": {
                    "pod_config": {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "jobs"}}},
                    "provision_timeout": -1,
                }
            },
        ),
        (
            "{config: {kubernetes: {ports: ingress, kueue: {admission_timeout: 60}}, jobs: {bucket: s3://x}}}",
            {
                "kubernetes": {"ports": "ingress", "kueue": {"admission_timeout": 60, "local_queue_name": "jobs"}},
                "jobs": {"bucket": "s3://x"},
            },
        ),
    ],
)
def test_server_config_sends_pods_to_the_queue_of_the_team(skypilot: str, config: dict[str, Any]) -> None:
    (tenant,) = skypilot_spec(skypilot).tenants
    assert fast_yaml.safe_load(configuration_text(tenant)) == config


@pytest.mark.parametrize(("dispatch", "cluster"), [("none", "east"), ("multikueue", "hub")])
def test_server_config_lies_where_the_team_submits(dispatch: str, cluster: str) -> None:
    objects = compute_desired(skypilot_spec("{}", dispatch)).objects
    found = [entry.ref for entry in objects if entry.ref.kind == "ConfigMap"]
    assert [str(ref) for ref in found] == [f"{cluster}/ConfigMap/astro/skypilot-astro"]


def test_provisioning_stays_off_the_manager_that_sends_jobs_on() -> None:
    options = "{provisioning: {className: queued-provisioning.gke.io, managedResources: [cpu], parameters: {a: b},"
    options += " podSetMergePolicy: IdenticalWorkloadSchedulingRequirements}}"
    objects = {
        str(entry.ref): entry.manifest for entry in compute_desired(skypilot_spec(options, "multikueue")).objects
    }
    assert objects["east/ProvisioningRequestConfig/skypilot-research"]["spec"] == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "managedResources": ["cpu"],
        "parameters": {"a": "b"},
        "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
        "retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
    }
    assert objects["east/AdmissionCheck/skypilot-research"]["spec"] == {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {
            "apiGroup": "kueue.x-k8s.io",
            "kind": "ProvisioningRequestConfig",
            "name": "skypilot-research",
        },
    }
    checks = {
        cluster: objects[f"{cluster}/ClusterQueue/research"]["spec"]["admissionChecksStrategy"]["admissionChecks"]
        for cluster in ("hub", "east")
    }
    assert checks == {"hub": [{"name": "multikueue-research"}], "east": [{"name": "skypilot-research"}]}


def test_provisioning_stays_off_workers_of_kubestellar_which_have_no_kueue() -> None:
    options = "{provisioning: {className: queued-provisioning.gke.io}}"
    objects = compute_desired(skypilot_spec(options, "kubestellar")).objects
    assert {entry.ref.kind for entry in objects if entry.ref.cluster == "east"} == {"Namespace"}
    checks = [str(entry.ref) for entry in objects if entry.ref.kind == "AdmissionCheck"]
    assert checks == ["hub/AdmissionCheck/kubestellar-research"]


@pytest.mark.parametrize(("left_out", "queues"), [("05-two-queues.yaml", 1), ("04-one-queue.yaml", 2)])
def test_what_the_documents_of_skypilot_write_gets_its_findings(left_out: str, queues: int) -> None:
    """Both of its setups, each with quotas that are no limit for cpu, memory and GPUs alike."""
    seeds = {path.name: path.read_bytes() for path in SEEDS.iterdir() if path.name != left_out}
    fleet = f"{BASE.partition('---')[0]}---\n{RESEARCH}"
    files = {f"fleet/{name}": content for name, content in {**seeds, "fleet.yaml": fleet.encode()}.items()}
    found = load_files(FleetFiles("test", "", files)).findings
    assert {finding.rule for finding in found} == {"KF013", "KF026", "KF053"}
    infinite = [finding.problem.split()[1] for finding in found if finding.rule == "KF026"]
    assert infinite == ["cpu", "memory", "nvidia.com/gpu"] * queues


@pytest.mark.parametrize("name", NAMES)
def test_examples_have_nothing_against_them_and_finite_quotas(name: str) -> None:
    files = {"fleet/fleet.yaml": (EXAMPLES / name / "fleet.yaml").read_bytes()}
    computed = load_files(FleetFiles("test", "", files))
    assert computed.findings == ()
    queues = [entry.manifest for entry in computed.desired.objects if entry.ref.kind == "ClusterQueue"]
    quotas = [
        [str(quota["nominalQuota"]) for quota in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]]
        for queue in queues
    ]
    assert quotas == ([["64", "256Gi", "8"]] if name == "skypilot-shared" else [["32", "128Gi", "4"]] * 2)


def test_render_prints_the_config_of_one_team(kfleet_in_process: Kfleet) -> None:
    example = ("render", "--repo", str(EXAMPLES.parent.parent), "--path", "docs/examples/skypilot-cohort", "--skypilot")
    assert fast_yaml.safe_load(kfleet_in_process(*example, "team2").stdout) == {
        "kubernetes": {"kueue": {"local_queue_name": "team2"}}
    }
    wrong = kfleet_in_process(*example, "team3")
    assert wrong.returncode == 1
    assert "no team 'team3' uses SkyPilot; teams that do: team1, team2" in wrong.stderr
