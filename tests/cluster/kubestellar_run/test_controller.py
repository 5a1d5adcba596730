"""KubeStellar under `kfleet run`: workers leave and dispatch changes while jobs run, and no job runs twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.builders import Document
from tests.cluster.controller.controllers import Controller
from tests.cluster.kubestellar.downsynced import (
    KUBESTELLAR,
    MANY_DELETES,
    NAMESPACE,
    QUEUE,
    SPOT,
    STUCK,
    WORKERS,
    Downsynced,
    documents,
    downsynced_job,
    has_policy,
    stick,
)
from tests.cluster.live_fleet import LiveFleet
from tests.soak.record import JobRecord, Recorder
from tests.support import eventually

CLUSTERS = ("manager", *WORKERS)
ENDLESS = 3600


@dataclass(frozen=True)
class Scene:
    """A fleet that a controller looks after, and what really runs on its clusters."""

    fleet: Downsynced
    controller: Controller
    recorder: Recorder

    def commit(self, *changed: Document, without: str = "") -> None:
        places = {name: name for name in CLUSTERS if name != without}
        self.fleet.live_fleet.contexts.clear()
        self.fleet.live_fleet.contexts.update(places)
        self.fleet.live_fleet.commit(*(changed or documents()), policy=MANY_DELETES)

    def submit(self, name: str, seconds: int = ENDLESS, *, may_move: bool = False) -> JobRecord:
        record = JobRecord(NAMESPACE, name, "manager", may_move=may_move)
        self.recorder.add(record)
        self.fleet.submit(downsynced_job(name, cpu="1", seconds=seconds, selector=SPOT))
        return record

    def where(self, record: JobRecord) -> str:
        """The worker that a job runs on, once it does."""
        eventually(lambda: record.running, 60)
        (copy,) = record.running
        return copy.cluster

    def end(self, record: JobRecord) -> None:
        """Let its pod succeed where it runs."""
        cluster = self.where(record)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        (pod,) = self.fleet.live_fleet.api(cluster).list(path, f"batch.kubernetes.io/job-name={record.name}")
        status = {"status": {"phase": "Succeeded"}}
        self.fleet.live_fleet.api(cluster).patch(f"{path}/{pod['metadata']['name']}/status", status)

    def check(self) -> list[dict[str, Any]]:
        strategy = self.fleet.live_fleet.queue(QUEUE, "manager")["spec"].get("admissionChecksStrategy") or {}
        return list(strategy.get("admissionChecks") or ())

    def is_dispatched_by(self, way: str) -> bool:
        spec = self.fleet.live_fleet.queue(QUEUE, "manager")["spec"]
        return [one["name"] for one in self.check()] == [f"{way}-{QUEUE}"] and spec.get("stopPolicy", "None") == "None"


@pytest.fixture
def scene(equipped: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """After the test nothing of the fleet is left, whatever became of it."""
    live_fleet = LiveFleet(equipped, tmp_path / "repository", "steered", {name: name for name in CLUSTERS})
    fleet = Downsynced(live_fleet)
    live_fleet.commit(*documents(), policy=MANY_DELETES)
    controller, recorder = Controller(live_fleet.folder, ("--interval", "2")), Recorder(equipped, "steered", CLUSTERS)
    recorder.start()
    try:
        scene = Scene(fleet, controller, recorder)
        eventually(lambda: scene.is_dispatched_by("kubestellar"))
        yield scene
        assert recorder.violations == []
    finally:
        recorder.stop()
        controller.kill()
        live_fleet.contexts.update({name: name for name in CLUSTERS})
        fleet.clean()
        live_fleet.clean()
        remove_namespace(live_fleet)


def remove_namespace(live_fleet: LiveFleet) -> None:
    """Also from a worker that left the fleet, which keeps its namespaces."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    for cluster in CLUSTERS:
        if live_fleet.api(cluster).find(path):
            live_fleet.api(cluster).delete(path)
    eventually(lambda: not any(live_fleet.api(one).find(path) for one in CLUSTERS), 90)


def test_jobs_of_a_worker_that_left_git_run_elsewhere_when_their_copies_were_seen_gone(
    scene: Scene, unique: str
) -> None:
    """One of the copies does not go, as when KubeStellar has lost track of it; quota counts the worker until then."""
    fleet = scene.fleet
    records = [scene.submit(f"{unique}-{number}", may_move=True) for number in range(6)]
    done = scene.submit(f"{unique}-done", seconds=1)
    places = {record.name: scene.where(record) for record in records}
    eventually(lambda: done.is_complete)
    first, other = WORKERS
    moving = [record for record in records if places[record.name] == first]
    assert moving and fleet.quota("spot") == "32"
    kept = moving[0]
    stick(fleet, kept.name, first, [STUCK])
    try:
        scene.commit(without=first)
        eventually(lambda: {fleet.label(record.name) for record in moving[1:]} <= {other}, 60)
        for _ in range(3):
            assert (fleet.label(kept.name), has_policy(fleet, first), fleet.quota("spot")) == ("", True, "32")
            assert reasons(fleet, kept.name) == {f"its former copy on {first} is not gone yet"}
    finally:
        stick(fleet, kept.name, first, [])
    eventually(lambda: fleet.label(kept.name) == other, 60)
    eventually(lambda: not has_policy(fleet, first) and fleet.quota("spot") == "16", 60)
    assert not [record.name for record in records if fleet.job(record.name, first)]
    assert {record.name: scene.where(record) for record in records} == dict.fromkeys(places, other)
    assert len(done.ends) == 2


def reasons(fleet: Downsynced, name: str) -> set[str]:
    """Why a job waits, by `kfleet why` and by its check; the plan does nothing with it."""
    planned = fleet.live_fleet.plan().record["placements"]
    assert not [step for step in planned if step["object"].endswith(f"/{name}")]
    (explained,) = fleet.live_fleet.run(f"why {NAMESPACE}/{name} -o json").record["jobs"]
    return {eventually(lambda: fleet.message(name)), explained["reason"]}


def test_ended_job_is_out_of_placement_also_when_dispatch_is_switched_and_back(scene: Scene, unique: str) -> None:
    record = scene.submit(unique, seconds=1)
    eventually(lambda: record.is_complete, 60)
    for dispatch in ("multikueue", "kubestellar"):
        scene.commit(*documents(dispatch=dispatch))
        eventually(partial(scene.is_dispatched_by, dispatch), 60)
    later = scene.submit(f"{unique}-later", seconds=1)
    eventually(lambda: later.is_complete, 60)
    assert not fleet_copies(scene, unique)
    assert "kfleet.dev/placement-ended" in (scene.fleet.job(unique) or {})["metadata"]["annotations"]
    scene.commit(without="worker1")
    eventually(lambda: not has_policy(scene.fleet, "worker1"), 60)
    scene.commit()
    eventually(lambda: has_policy(scene.fleet, "worker1"), 60)
    third = scene.submit(f"{unique}-third", seconds=1)
    eventually(lambda: third.is_complete, 60)
    # Its own copy, and the job on the manager.
    assert len(record.ends) <= 2 and not fleet_copies(scene, unique)


def fleet_copies(scene: Scene, name: str) -> list[str]:
    return [worker for worker in WORKERS if scene.fleet.job(name, worker)]


def test_queue_goes_over_to_multikueue_when_its_jobs_have_ended(scene: Scene, unique: str) -> None:
    fleet = scene.fleet
    record = scene.submit(unique)
    cluster = scene.where(record)
    scene.commit(*documents(dispatch="multikueue"))
    eventually(lambda: "namespaceSelector" not in fleet.live_fleet.queue(QUEUE, "manager")["spec"])
    later = scene.submit(f"{unique}-later")
    for _ in range(3):
        waiting = {one["cluster"]: one["why"] for one in fleet.live_fleet.plan().record["waiting"]}
        assert f"queue {QUEUE}: it changes when its jobs on workers have ended" in waiting["manager"]
        assert fleet.is_true(unique, "QuotaReserved") and not fleet.is_true(unique, "Admitted")
        assert fleet.label(unique) == cluster and has_policy(fleet, cluster)
        assert not fleet.is_true(later.name, "QuotaReserved")
    scene.end(record)
    eventually(lambda: scene.is_dispatched_by("multikueue"), 60)
    eventually(lambda: not any(has_policy(fleet, one) for one in WORKERS), 60)
    eventually(lambda: not [*fleet.manager.list(f"{KUBESTELLAR}/customtransforms")], 60)
    assert record.is_complete and not fleet_copies(scene, unique)
    # What waited was submitted to another dispatch: MultiKueue does not take it, and no one else does.
    eventually(lambda: is_rejected(fleet, later.name), 60)
    assert not later.copies
    sent = scene.submit(f"{unique}-sent")
    place = scene.where(sent)
    assert fleet.workload(sent.name)["status"]["clusterName"] == place and not fleet.label(sent.name)
    scene.end(sent)
    eventually(lambda: sent.is_complete, 60)


def is_rejected(fleet: Downsynced, name: str) -> bool:
    """Whether MultiKueue says that a job was not submitted to it; Kueue itself may have stopped it since."""
    workload = fleet.workload(name)
    states = {check["name"]: check["state"] for check in workload["status"].get("admissionChecks") or ()}
    return states.get(f"multikueue-{QUEUE}") == "Rejected" or workload["spec"].get("active") is False


def test_queue_evicts_its_jobs_on_the_way_to_multikueue_when_told(scene: Scene, unique: str) -> None:
    fleet = scene.fleet
    record = scene.submit(unique)
    record.is_excused = True
    first = scene.where(record)
    assert fleet.label(unique) == first
    scene.commit(*documents(dispatch="multikueue", drainOnDelete=True))
    eventually(lambda: scene.is_dispatched_by("multikueue"), 60)
    assert not fleet_copies(scene, unique) and not fleet.label(unique)
    assert not fleet.is_true(unique, "QuotaReserved") or not fleet.is_true(unique, "Admitted")
    eventually(lambda: is_rejected(fleet, unique), 60)
    assert len(record.copies) == 1


def test_queue_comes_back_from_multikueue_when_its_jobs_have_ended(scene: Scene, unique: str) -> None:
    scene.commit(*documents(dispatch="multikueue"))
    eventually(lambda: scene.is_dispatched_by("multikueue"), 60)
    record = scene.submit(unique)
    place = scene.where(record)
    scene.commit(*documents())
    eventually(lambda: "namespaceSelector" not in scene.fleet.live_fleet.queue(QUEUE, "manager")["spec"], 60)
    later = scene.submit(f"{unique}-later")
    for _ in range(2):
        waiting = {one["cluster"]: one["why"] for one in scene.fleet.live_fleet.plan().record["waiting"]}
        assert f"queue {QUEUE}: it changes when its jobs on workers have ended" in waiting["manager"]
        assert scene.where(record) == place and not later.copies
    scene.end(record)
    eventually(lambda: record.is_complete, 60)
    eventually(lambda: scene.is_dispatched_by("kubestellar"), 60)
    place = scene.where(later)
    assert scene.fleet.label(later.name) == place
    scene.end(later)
    eventually(lambda: later.is_complete, 60)
