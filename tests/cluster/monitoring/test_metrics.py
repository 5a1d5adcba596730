"""Every metric that a dashboard or an alert names exists: in the real Kueue, after it had work, and in kfleet."""

import json
import re
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.objects import Manifest
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import Document, flavor, main_tenant, open_queue, team_documents, workload
from tests.cluster.controller.conftest import StartController
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet
from tests.support import eventually
from tests.unit.monitoring.names import named_labels, named_metrics, shown_labels

READER = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}


def reader_rights(namespace: str) -> list[Manifest]:
    """An account that may read Kueue's metrics, which Kueue shows to nobody else."""
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    api = "rbac.authorization.k8s.io/v1"
    name = {"name": f"{namespace}-reader"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name}
    return [
        {**READER, "metadata": {"name": "reader", "namespace": namespace}},
        {"apiVersion": api, "kind": "ClusterRole", "metadata": name, "rules": [rule]},
        {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": name, "roleRef": role, "subjects": [subject]},
    ]


@pytest.fixture(params=["worker1", "worker2"])
def kueue_live_fleet(
    request: pytest.FixtureRequest, fleet: Sandbox, tmp_path: Path, unique: str
) -> Iterator[LiveFleet]:
    """A fleet of one cluster, with today's Kueue or the older one."""
    made = LiveFleet(fleet, tmp_path / unique, unique, {request.param: request.param})
    yield made
    made.clean()


def read_metrics(live_fleet: LiveFleet) -> str:
    cluster = next(iter(live_fleet.contexts))
    api = live_fleet.api(cluster)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = api.post(f"/api/v1/namespaces/{live_fleet.name}/serviceaccounts/reader/token", asked)["status"]["token"]
    command = live_fleet.sandbox.state.part(f"{cluster}/kueue").command
    path = next(word.removeprefix("--config=") for word in command if word.startswith("--config="))
    address = fast_yaml.safe_load(Path(path).read_text())["metrics"]["bindAddress"]
    request = urllib.request.Request(f"https://{address}/metrics", headers={"Authorization": f"Bearer {token}"})
    # Kueue signs this certificate itself.
    context = ssl._create_unverified_context()  # noqa: S323
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310  (the address is above)
        return str(answer.read().decode())


def shown(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))


def preempting(name: str) -> Document:
    return open_queue(name, name, {"cpu": "1"}, preemption={"withinClusterQueue": "LowerPriority"})


def prioritized(name: str, namespace: str, priority: int) -> Document:
    made = workload(name, namespace)
    return {**made, "spec": {**made["spec"], "priority": priority}}


def test_metrics_of_kueue_exist(kueue_live_fleet: LiveFleet) -> None:
    live_fleet, name = kueue_live_fleet, kueue_live_fleet.name
    cluster = next(iter(live_fleet.contexts))
    api = live_fleet.api(cluster)
    live_fleet.commit(flavor(name), preempting(name), main_tenant(name, name))
    live_fleet.converge()
    for manifest in reader_rights(name):
        api.apply(manifest)
    # One workload is admitted, another one preempts it: that is all that the metrics count.
    api.apply(prioritized("low", name, 1))
    path = f"{KUEUE_ROOT}/namespaces/{name}/workloads"
    eventually(lambda: "Admitted" in json.dumps(api.get(f"{path}/low").get("status", {})))
    api.apply(prioritized("high", name, 100))
    eventually(lambda: "Preempted" in json.dumps(api.get(f"{path}/low").get("status", {})))
    wanted = named_metrics("kueue_")
    assert len(wanted) > 10
    eventually(lambda: wanted <= shown(read_metrics(live_fleet)) or None)
    labels = shown_labels(read_metrics(live_fleet))
    # The cluster is named by whoever collects the metrics of several.
    lacking = {metric: names - labels[metric] - {"cluster"} for metric, names in named_labels("kueue_").items()}
    assert {metric: names for metric, names in lacking.items() if names} == {}
    for workload_name in ("low", "high"):
        live_fleet.kubectl("delete", "workload", "-n", name, workload_name, "--wait=false", cluster=cluster)


def test_metrics_of_kfleet_exist(live_fleet: LiveFleet, start: StartController) -> None:
    name = live_fleet.name
    live_fleet.commit(*team_documents(name))
    controller = start()
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1)
    wanted = named_metrics("kfleet_")
    assert len(wanted) > 10
    assert wanted - shown(controller.get("/metrics")[1]) == set()
