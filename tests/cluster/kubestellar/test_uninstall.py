"""The end of a fleet whose jobs KubeStellar downsyncs: nothing goes under a job, and a release says what it costs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.kubestellar.downsynced import QUEUE, Downsynced
from tests.cluster.kubestellar.test_leaving import (
    PLACES,
    _await_namespaces,
    apply_documents,
    has_policy,
    running,
)
from tests.cluster.live_fleet import LiveFleet
from tests.support import eventually

KEEP, DELETE = "uninstall --keep-objects", "uninstall --delete"


@pytest.fixture
def fleet(kubestellar: Sandbox, tmp_path: Path, unique: str) -> Iterator[Downsynced]:
    live_fleet = LiveFleet(kubestellar, tmp_path / "repository", unique, dict(PLACES))
    _await_namespaces(live_fleet)
    fleet = Downsynced(live_fleet)
    apply_documents(fleet)
    yield fleet
    fleet.clean()
    _await_namespaces(live_fleet)


def deleted(fleet: Downsynced) -> str:
    asked = fleet.live_fleet.run(DELETE, "--dry-run", "-o", "json").record["refusals"]
    count = asked[0]["problem"].rpartition(" ")[2] if asked else "0"
    answer = fleet.live_fleet.run(DELETE, "--confirm-deletes", count)
    assert answer.code in {0, 4} or "were confirmed, but there are" in answer.out, answer.out + answer.err
    return answer.out if answer.code == 0 else ""


def test_fleet_ends_when_no_copy_of_a_job_is_left_on_a_worker(fleet: Downsynced, unique: str) -> None:
    live_fleet, job = fleet.live_fleet, f"{unique}-job"
    place = running(fleet, job)
    shown = live_fleet.run(KEEP, "--dry-run")
    assert f"AdmissionCheck/kubestellar-{QUEUE}: kfleet answered it" in shown.out, shown
    assert "lets only kfleet place jobs" in shown.out

    assert not deleted(fleet) and not deleted(fleet)
    assert fleet.label(job) == place and fleet.job(job, place) and has_policy(fleet, place)
    assert fleet.reserving() == 1
    fleet.remove(job)
    assert "has ended" in eventually(lambda: deleted(fleet), 120)
    assert not has_policy(fleet, place) and live_fleet.members("manager") == {}
    namespaces = [live_fleet.api(worker).find("/api/v1/namespaces/astro") for worker in PLACES]
    assert all(namespaces)
    for worker in PLACES:
        live_fleet.api(worker).delete("/api/v1/namespaces/astro")
