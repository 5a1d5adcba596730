"""Kueue by the real helm, from no release over 0.16.2 to 0.19.0: workers first, each healthy before the next."""

from typing import Any

import pytest

from tests.builders import cluster_queue, local_queue, namespace_object, resource_flavor
from tests.builders.kueue import cpu_group
from tests.cluster.kueue_install.conftest import NEW, OLD, ROOT, SYSTEM, KueueFleet, MakeKueueFleet, chart
from tests.support import eventually

TEAM = "team-a"
CONFIG = {"clientConnection": {"qps": 123}}


@pytest.fixture(scope="module")
def fleet_of_two(make_kueue_fleet: MakeKueueFleet) -> KueueFleet:
    return make_kueue_fleet(hub="manager", east="worker")


def job(name: str) -> dict[str, Any]:
    container = {"name": "work", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": "main"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def admitted(kueues: KueueFleet, name: str) -> bool:
    for workload in kueues.api("east").list(f"{ROOT}/namespaces/{TEAM}/workloads"):
        owners = [owner["name"] for owner in workload["metadata"]["ownerReferences"]]
        conditions = {entry["type"]: entry["status"] for entry in workload.get("status", {}).get("conditions", ())}
        if name in owners:
            return conditions.get("Admitted") == "True"
    return False


def test_kueue_comes_to_empty_clusters_and_is_upgraded_under_a_running_job(fleet_of_two: KueueFleet) -> None:
    _install(fleet_of_two)
    _submit(fleet_of_two)
    _upgrade(fleet_of_two)
    _do_nothing(fleet_of_two)
    _go_back(fleet_of_two)
    crds = fleet_of_two.api("hub").list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    assert sum(entry["spec"]["group"] == "kueue.x-k8s.io" for entry in crds) == 11


def _install(kueues: KueueFleet) -> None:
    kueues.want(OLD, config=CONFIG)
    assert kueues.states() == {"hub": ("", "not installed", []), "east": ("", "not installed", [])}
    refused = kueues.run("upgrade", "hub", f"--chart={chart(OLD)}")
    assert refused.returncode == 3 and "kfleet kueue install hub" in refused.stdout
    dry = kueues.run("install", "--dry-run", f"--chart={chart(OLD)}")
    assert (dry.returncode, dry.stdout.splitlines()) == (
        0,
        [
            f" 1. east  worker      install {OLD}  (Helm release {SYSTEM}/kueue)",
            f" 2. hub   manager     install {OLD}  (Helm release {SYSTEM}/kueue)",
        ],
    )
    assert kueues.api("east").find(f"/api/v1/namespaces/{SYSTEM}") is None
    done = kueues.run("install", f"--chart={chart(OLD)}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()[2:]] == ["east: done", "hub: done"]
    assert kueues.states() == {"hub": (OLD, "in sync", []), "east": (OLD, "in sync", [])}
    config_map = kueues.api("east").get(f"/api/v1/namespaces/{SYSTEM}/configmaps/kueue-manager-config")
    assert "qps: 123" in config_map["data"]["controller_manager_config.yaml"]


def _submit(kueues: KueueFleet) -> None:
    for manifest in (
        namespace_object(TEAM),
        resource_flavor("cpu"),
        cluster_queue("batch", cpu_group("4", of="cpu"), namespaceSelector={}),
        local_queue("main", TEAM, "batch"),
        job("before"),
    ):
        kueues.api("east").create(manifest)
    eventually(lambda: admitted(kueues, "before"), 60)


def _upgrade(kueues: KueueFleet) -> None:
    kueues.want(NEW, config=CONFIG)
    assert {state for _, state, _ in kueues.states().values()} == {"older than git"}
    code, steps = kueues.record("install", f"--chart={chart(NEW)}", "--dry-run")
    assert (code, [step["action"] for step in steps]) == (0, ["skip", "skip"])
    code, steps = kueues.record("upgrade", f"--chart={chart(NEW)}")
    assert code == 0, steps
    assert [(step["cluster"], step["action"], step["from"], step["to"], step["state"]) for step in steps] == [
        ("east", "upgrade", OLD, NEW, "done"),
        ("hub", "upgrade", OLD, NEW, "done"),
    ]
    assert kueues.states() == {"hub": (NEW, "in sync", []), "east": (NEW, "in sync", [])}
    assert admitted(kueues, "before")
    kueues.api("east").create(job("after"))
    eventually(lambda: admitted(kueues, "after"), 60)


def _do_nothing(kueues: KueueFleet) -> None:
    before = kueues.versions("hub")
    code, steps = kueues.record("upgrade", f"--chart={chart(NEW)}")
    assert (code, [(step["action"], step["state"]) for step in steps]) == (0, [("check", "unchanged")] * 2)
    assert kueues.versions("hub") == before


def _go_back(kueues: KueueFleet) -> None:
    kueues.want(NEW, {"hub": OLD}, config=CONFIG)
    older = kueues.run("upgrade", "hub", f"--chart={chart(OLD)}")
    assert older.returncode == 3 and f"Kueue {NEW} is newer than the {OLD} of git" in older.stdout
    assert kueues.states()["hub"][:2] == (NEW, "newer than git")
    back = kueues.run("upgrade", "hub", f"--chart={chart(OLD)}", "--allow-downgrade")
    assert back.returncode == 0, back.stdout + back.stderr
    assert kueues.states() == {"hub": (OLD, "in sync", []), "east": (NEW, "in sync", [])}
