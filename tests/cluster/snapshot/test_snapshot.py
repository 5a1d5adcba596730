"""A snapshot of a real fleet says what the clusters said, also when no cluster can be reached."""

import gzip
import json
import shutil
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import fast_yaml
from tests.builders import asking, flavor, job, main_tenant, open_queue, pod_spec, sent_queue
from tests.cluster.live_fleet import SYSTEM, Answer, LiveFleet
from tests.cluster.multikueue.credentials import connect_all, token
from tests.cluster.multikueue.drains import end, submit, where
from tests.support import eventually

PLANTED = "hunter2-is-the-password"


@dataclass(frozen=True)
class World:
    """A fleet whose kubeconfig can be taken away."""

    live_fleet: LiveFleet
    kubeconfig: Path
    file: Path

    def write(self, *more: Any, quota: str = "4") -> None:
        name, fleet = self.live_fleet.name, self.live_fleet
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-login", "namespace": SYSTEM},
            "stringData": {"password": PLANTED},
        }
        fleet.write(
            flavor(f"{name}-cpu"),
            sent_queue(f"{name}-q", f"{name}-cpu"),
            open_queue(f"{name}-own", f"{name}-cpu", {"cpu": quota}),
            main_tenant(name, f"{name}-q"),
            secret,
            *more,
        )
        path = fleet.folder / "fleet" / "fleet.yaml"
        path.write_text(path.read_text().replace(str(fleet.sandbox.state.kubeconfig), str(self.kubeconfig)))
        fleet.commit_all()

    def snapshot(self) -> Answer:
        return self.live_fleet.run("snapshot", "--out", str(self.file))

    def replayed(self, command: str, *options: str) -> Answer:
        return self.live_fleet.run(command, "-o", "json", "--snapshot", str(self.file), *options)

    @property
    def text(self) -> str:
        content = self.file.read_bytes()
        return (gzip.decompress(content) if self.file.suffix == ".gz" else content).decode()


@pytest.fixture
def world(wide_live_fleet: LiveFleet, tmp_path: Path) -> World:
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copy(wide_live_fleet.sandbox.state.kubeconfig, kubeconfig)
    return World(wide_live_fleet, kubeconfig, tmp_path / "world.json.gz")


def test_plan_status_and_check_are_the_same_without_a_cluster(world: World, tmp_path: Path) -> None:
    fleet = world.live_fleet
    world.write()
    applied = fleet.apply()
    assert applied.code == 0, applied
    connect_all(fleet)
    submit(fleet, "long")
    worker = settled(fleet, "long")
    taken = world.snapshot()
    assert taken.code == 0, taken
    assert f"{world.file}: 3 clusters, " in taken.err
    jobs = tmp_path / "job.yaml"
    jobs.write_text(fast_yaml.safe_dump(job("other", pod_spec(asking(cpu="1")), namespace=fleet.name, queue="main")))
    live = fleet.plan(), fleet.run("status", "-o", "json"), fleet.run("check", "--live", "-o", "json", str(jobs))
    preflight = fleet.run("preflight", "-o", "json")
    end(fleet, worker, "long")
    world.kubeconfig.unlink()
    assert fleet.plan().code == 4
    plan = world.replayed("plan", "--detailed-exitcode")
    assert (plan.code, plan.actions) == (0, {}) and "notice: from a snapshot of " in plan.err
    assert plan.record == live[0].record
    assert world.replayed("status").record == live[1].record
    assert world.replayed("check", str(jobs)).record == live[2].record
    assert world.replayed("preflight").record == preflight.record
    for secret in (PLANTED, b64encode(PLANTED.encode()).decode(), token(fleet), token(fleet, "worker2")):
        assert secret not in world.text
    assert "sleep" not in world.text


def settled(fleet: LiveFleet, name: str) -> str:
    """The worker of a job, when Kueue counts its workload on both sides and the counts stay as they are."""
    worker = where(fleet, name)
    counts: list[int] = []

    def is_quiet() -> bool:
        rows = fleet.run("status", "-o", "json").record["clusters"]
        counts.append(sum(row["workloads"]["admitted"] for row in rows))
        return min(counts[-3:]) == max(counts[-3:]) >= 2 and len(counts) > 2

    eventually(is_quiet)
    return worker


def test_plan_with_changes_is_predicted_as_the_servers_predict_it(world: World) -> None:
    fleet, name = world.live_fleet, world.live_fleet.name
    world.write()
    applied = fleet.apply()
    assert applied.code == 0, applied
    connect_all(fleet)
    eventually(lambda: fleet.plan().code == 0)
    assert world.snapshot().code == 0
    world.write(flavor(f"{name}-new"), main_tenant(f"{name}-more", f"{name}-q"), quota="6")
    live = fleet.plan()
    world.kubeconfig.unlink()
    plan = world.replayed("plan", "--detailed-exitcode")
    assert plan.code == live.code == 2, plan.err
    assert plan.actions == live.actions
    assert "create" in plan.actions.values() and "update" in plan.actions.values()
    changed = [entry for entry, action in plan.actions.items() if action == "update"]
    assert {entry: plan.fields(entry) for entry in changed} == {entry: live.fields(entry) for entry in changed}
    assert "without an API server" in plan.err


def test_cluster_that_is_not_in_the_snapshot_is_a_gap(world: World) -> None:
    fleet = world.live_fleet
    world.write()
    world.kubeconfig.write_text(world.kubeconfig.read_text().replace("name: worker2", "name: elsewhere"))
    taken = world.snapshot()
    assert taken.code == 4 and "gap: " in taken.err
    plan = world.replayed("plan")
    assert plan.code == 4
    gaps = [gap["why"] for gap in plan.record["gaps"] if gap["cluster"] == f"{fleet.name}-worker2"]
    assert gaps and "no context 'worker2'" in gaps[0]
    record = json.loads(world.text)
    record["clusters"] = [entry for entry in record["clusters"] if not entry["name"].endswith("worker1")]
    world.file.write_bytes(json.dumps(record).encode())
    plan = world.replayed("plan")
    gaps = [gap["why"] for gap in plan.record["gaps"] if gap["cluster"] == f"{fleet.name}-worker1"]
    assert gaps == ["not in the snapshot"]
