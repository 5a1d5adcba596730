"""Parts of a fleet are lost while jobs run, on real clusters: every job runs to its end exactly once."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import fleet as sandbox_fleet
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.options import SandboxOptions
from tests.builders import flavor, main_job, main_tenant, open_queue
from tests.cluster.live_fleet import ALL, LiveFleet
from tests.cluster.multikueue.credentials import WORKERS, connect_all
from tests.cluster.multikueue.drains import end, is_complete, memberships, other_than, start_fleet, submit, where
from tests.support import eventually

JOBS = ("early", "late")


@pytest.fixture(scope="module")
def breakable(_own_state_folder: None, _programs: None) -> Iterator[Sandbox]:
    """A fleet of the module's own, whose manager is as patient with a lost worker as Kueue is by default."""
    sandbox = sandbox_fleet.up(SandboxOptions("losses", is_owned=True))
    path = sandbox.folder / "manager" / "kueue-config.yaml"
    path.write_text(path.read_text().replace("workerLostTimeout: 15s", "workerLostTimeout: 15m"))
    sandbox.restart("manager/kueue")
    yield sandbox
    sandbox.discard()


@pytest.fixture
def breakable_live_fleet(breakable: Sandbox, tmp_path: Path, unique: str) -> Iterator[LiveFleet]:
    live_fleet = LiveFleet(breakable, tmp_path / unique, unique, {f"{unique}-{context}": context for context in ALL})
    yield live_fleet
    live_fleet.clean()


def test_job_of_a_lost_worker_ends_there_once_when_the_worker_is_back(breakable_live_fleet: LiveFleet) -> None:
    live_fleet = breakable_live_fleet
    start_fleet(live_fleet)
    submit(live_fleet, "kept")
    lost = where(live_fleet, "kept")
    before = desired_fields(live_fleet)

    live_fleet.sandbox.kill(f"{lost}/kube-apiserver")
    try:
        status = eventually(lambda: "SomeActiveClusters" in (said := live_fleet.run("status")).out and said, 60)
        assert status.code == 4, status
        assert f"{live_fleet.name}-{lost}: unreachable" in status.out
        assert f"{live_fleet.name}-{other_than(lost)}: ok" in status.out
        assert_changes_nothing(live_fleet, lost)
        assert desired_fields(live_fleet) == before
        assert not is_complete(live_fleet, "kept")
    finally:
        live_fleet.sandbox.restart(f"{lost}/kube-apiserver")

    end(live_fleet, lost, "kept")
    assert eventually(lambda: is_complete(live_fleet, "kept"), 120)
    assert starts(live_fleet, "kept") == [lost]
    assert eventually(lambda: live_fleet.run("status").code == 0, 60)
    live_fleet.converge()


def test_job_ends_once_though_the_managers_kueue_is_gone_for_a_while(breakable_live_fleet: LiveFleet) -> None:
    live_fleet = breakable_live_fleet
    start_fleet(live_fleet)
    for name in JOBS:
        submit(live_fleet, name)
    places = {name: where(live_fleet, name) for name in JOBS}
    live_fleet.sandbox.kill("manager/kueue")
    try:
        end(live_fleet, places["early"], "early")
        # What ends while nobody looks is not forgotten.
        assert eventually(lambda: "Complete" in conditions(live_fleet, places["early"], "early"))
        assert not is_complete(live_fleet, "early")
    finally:
        live_fleet.sandbox.restart("manager/kueue")
    assert eventually(lambda: is_complete(live_fleet, "early"), 60)
    assert not is_complete(live_fleet, "late")
    end(live_fleet, places["late"], "late")
    assert eventually(lambda: is_complete(live_fleet, "late"), 60)
    assert {name: starts(live_fleet, name) for name in JOBS} == {name: [place] for name, place in places.items()}
    left = live_fleet.plan()
    assert (left.code, left.actions) == (0, {}), left


def test_job_goes_to_the_only_worker_whose_quota_it_fits(breakable_live_fleet: LiveFleet) -> None:
    live_fleet = breakable_live_fleet
    name = live_fleet.name
    kinds = {worker: f"{name}-{size}" for worker, size in zip(WORKERS, ("small", "large"), strict=True)}
    quota = [{"flavor": kinds[worker], "resources": {"cpu": cpu}} for worker, cpu in zip(WORKERS, "28", strict=True)]
    live_fleet.commit(
        *(flavor(kind, clusters={"names": [f"{name}-{worker}"]}) for worker, kind in kinds.items()),
        open_queue(f"{name}-q", "", dispatch="multikueue", quota=quota),
        main_tenant(name, f"{name}-q"),
    )
    live_fleet.converge()
    connect_all(live_fleet)
    for number in range(2):
        live_fleet.api("manager").create(main_job(f"big{number}", name, cpu="3", seconds=1))
    for number in range(2):
        assert eventually(partial(is_complete, live_fleet, f"big{number}"), 60)
        assert eventually(partial(starts, live_fleet, f"big{number}")) == ["worker2"]


def assert_changes_nothing(live_fleet: LiveFleet, lost: str) -> None:
    planned = live_fleet.plan()
    assert (planned.code, planned.actions) == (4, {}), planned
    assert [gap["cluster"] for gap in planned.record["gaps"]] == [f"{live_fleet.name}-{lost}"]
    assert live_fleet.apply().code == 4
    assert lost in memberships(live_fleet)


def desired_fields(live_fleet: LiveFleet) -> dict[str, Any]:
    """What the fleet's objects on the manager say, without what Kueue writes there."""
    return {name: (entry.get("spec"), entry.get("data")) for name, entry in live_fleet.members("manager").items()}


def starts(live_fleet: LiveFleet, name: str) -> list[str]:
    """The workers on which a pod of a job was started, one entry for each pod; Events outlive jobs and API servers."""
    return [
        worker
        for worker in WORKERS
        for event in live_fleet.api(worker).list(f"/api/v1/namespaces/{live_fleet.name}/events")
        if event["reason"] == "SuccessfulCreate" and event["involvedObject"]["name"] == name
    ]


def conditions(live_fleet: LiveFleet, worker: str, name: str) -> list[str]:
    live = live_fleet.api(worker).get(f"/apis/batch/v1/namespaces/{live_fleet.name}/jobs/{name}")
    return [entry["type"] for entry in (live.get("status") or {}).get("conditions") or ()]
