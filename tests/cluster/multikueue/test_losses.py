"""Parts of a fleet are lost while jobs run, on real clusters: every job runs to its end exactly once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.wish import Wish
from tests.cluster.engine.conftest import ALL
from tests.cluster.engine.worlds import World
from tests.cluster.multikueue.drains import WORKERS, end, is_complete, other_than, seats, start_fleet, submit, where
from tests.cluster.multikueue.worlds import connect_all
from tests.documents import flavor, job, tenant
from tests.documents import queue as queue_document
from tests.support import eventually

JOBS = ("early", "late")


@pytest.fixture(scope="module")
def breakable(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """A fleet of the module's own, whose manager is as patient with a lost worker as Kueue is by default."""
    sandbox = sandbox_fleet.up(Wish("losses", is_owned=True))
    path = sandbox.folder / "manager" / "kueue-config.yaml"
    path.write_text(path.read_text().replace("workerLostTimeout: 15s", "workerLostTimeout: 15m"))
    sandbox.restart("manager/kueue")
    yield sandbox
    sandbox.down()


@pytest.fixture
def breakable_world(breakable: Sandbox, tmp_path: Path, unique: str) -> Iterator[World]:
    world = World(breakable, tmp_path / unique, unique, {f"{unique}-{context}": context for context in ALL})
    yield world
    world.clean()


def test_job_of_a_lost_worker_ends_there_once_when_the_worker_is_back(breakable_world: World) -> None:
    world = breakable_world
    start_fleet(world)
    submit(world, "kept")
    lost = where(world, "kept")
    before = wishes(world)

    world.sandbox.kill(f"{lost}/kube-apiserver")
    try:
        status = eventually(lambda: "SomeActiveClusters" in (said := world.run("status")).out and said, 60)
        assert status.code == 4, status
        assert f"{world.name}-{lost}: unreachable" in status.out
        assert f"{world.name}-{other_than(lost)}: ok" in status.out
        assert_changes_nothing(world, lost)
        assert wishes(world) == before
        assert not is_complete(world, "kept")
    finally:
        world.sandbox.restart(f"{lost}/kube-apiserver")

    end(world, lost, "kept")
    assert eventually(lambda: is_complete(world, "kept"), 120)
    assert starts(world, "kept") == [lost]
    assert eventually(lambda: world.run("status").code == 0, 60)
    world.converge()


def test_job_ends_once_though_the_managers_kueue_is_gone_for_a_while(breakable_world: World) -> None:
    world = breakable_world
    start_fleet(world)
    for name in JOBS:
        submit(world, name)
    places = {name: where(world, name) for name in JOBS}
    world.sandbox.kill("manager/kueue")
    try:
        end(world, places["early"], "early")
        # What ends while nobody looks is not forgotten.
        assert eventually(lambda: "Complete" in conditions(world, places["early"], "early"))
        assert not is_complete(world, "early")
    finally:
        world.sandbox.restart("manager/kueue")
    assert eventually(lambda: is_complete(world, "early"), 60)
    assert not is_complete(world, "late")
    end(world, places["late"], "late")
    assert eventually(lambda: is_complete(world, "late"), 60)
    assert {name: starts(world, name) for name in JOBS} == {name: [place] for name, place in places.items()}
    left = world.plan()
    assert (left.code, left.actions) == (0, {}), left


def test_job_goes_to_the_only_worker_whose_quota_it_fits(breakable_world: World) -> None:
    world = breakable_world
    name = world.name
    kinds = {worker: f"{name}-{size}" for worker, size in zip(WORKERS, ("small", "large"), strict=True)}
    quota = [{"flavor": kinds[worker], "resources": {"cpu": cpu}} for worker, cpu in zip(WORKERS, "28", strict=True)]
    world.commit(
        *(flavor(kind, clusters={"names": [f"{name}-{worker}"]}) for worker, kind in kinds.items()),
        queue_document(f"{name}-q", "", dispatch="multikueue", quota=quota),
        tenant(name, f"{name}-q"),
    )
    world.converge()
    connect_all(world)
    for number in range(2):
        world.api("manager").create(job(f"big{number}", name, cpu="3", seconds=1))
    for number in range(2):
        assert eventually(lambda number=number: is_complete(world, f"big{number}"), 60)
        assert eventually(lambda number=number: starts(world, f"big{number}")) == ["worker2"]


def assert_changes_nothing(world: World, lost: str) -> None:
    planned = world.plan()
    assert (planned.code, planned.actions) == (4, {}), planned
    assert [gap["cluster"] for gap in planned.record["gaps"]] == [f"{world.name}-{lost}"]
    assert world.apply().code == 4
    assert lost in seats(world)


def wishes(world: World) -> dict[str, Any]:
    """What the fleet's objects on the manager say, without what Kueue writes there."""
    return {name: (entry.get("spec"), entry.get("data")) for name, entry in world.members("manager").items()}


def starts(world: World, name: str) -> list[str]:
    """The workers on which a pod of a job was started, one entry for each pod; Events outlive jobs and API servers."""
    return [
        worker
        for worker in WORKERS
        for event in world.api(worker).list(f"/api/v1/namespaces/{world.name}/events")
        if event["reason"] == "SuccessfulCreate" and event["involvedObject"]["name"] == name
    ]


def conditions(world: World, worker: str, name: str) -> list[str]:
    live = world.api(worker).get(f"/apis/batch/v1/namespaces/{world.name}/jobs/{name}")
    return [entry["type"] for entry in (live.get("status") or {}).get("conditions") or ()]
