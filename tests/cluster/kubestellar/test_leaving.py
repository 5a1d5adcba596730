"""Workers and queues that leave KubeStellar while jobs run: no job runs twice, starts elsewhere, or is lost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import Document, labelled_flavor, queue, quota
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.cluster.kubestellar.downsynced import (
    KUBESTELLAR,
    NAMESPACE,
    QUEUE,
    WORKERS,
    Downsynced,
    documents,
    downsynced_job,
)
from tests.cluster.live_fleet import LiveFleet
from tests.support import eventually

PLACES = {name: name for name in ("manager", *WORKERS)}
SPOT = {"instance": "spot"}
# A transform goes for every kind of jobs.
MANY_DELETES = {"prune": {"maxDeletes": 100, "maxPercent": 100}}
STUCK = "example.org/stuck"


@pytest.fixture(scope="module")
def fleet(kubestellar: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Downsynced]:
    folder: Path = tmp_path_factory.mktemp("leaving") / "repository"
    live_fleet = LiveFleet(kubestellar, folder, "leaving", dict(PLACES))
    _await_namespaces(live_fleet)
    fleet = Downsynced(live_fleet)
    apply_documents(fleet)
    yield fleet
    fleet.clean()
    _await_namespaces(live_fleet)


def _await_namespaces(live_fleet: LiveFleet) -> None:
    """Until those of the fleet before are gone."""
    eventually(lambda: not any(live_fleet.api(one).find(f"/api/v1/namespaces/{NAMESPACE}") for one in PLACES), 90)


@pytest.fixture
def name(fleet: Downsynced, unique: str) -> Iterator[str]:
    """A name for a job; after the test it is gone, and the fleet is as it was."""
    yield unique
    fleet.live_fleet.contexts.update(PLACES)
    fleet.live_fleet.commit(*documents(), policy=MANY_DELETES)
    fleet.remove(unique)
    apply_until(fleet, lambda: fleet.live_fleet.plan().code == 0)


def apply_documents(fleet: Downsynced, *changed: Document) -> None:
    fleet.live_fleet.commit(*(changed or documents()), policy=MANY_DELETES)
    applied = fleet.live_fleet.apply("--wait", "0")
    # 4 while something that left git is still in use.
    assert applied.code in ({0, 4} if changed else {0}), applied.out + applied.err


def apply_until(fleet: Downsynced, is_done: Callable[[], bool]) -> None:
    def applied() -> bool:
        answer = fleet.live_fleet.apply("--wait", "0")
        assert answer.code in {0, 4}, answer.out + answer.err
        return is_done()

    eventually(applied, 60)


def running(fleet: Downsynced, name: str) -> str:
    """The worker that a job runs on."""
    fleet.submit(downsynced_job(name, cpu="1", seconds=3600, selector=SPOT))
    eventually(lambda: fleet.is_true(name, "QuotaReserved"))
    apply_until(fleet, lambda: bool(fleet.label(name)))
    cluster = fleet.label(name)
    eventually(lambda: fleet.nodes_of(name, cluster))
    return cluster


def stick(fleet: Downsynced, name: str, cluster: str, finalizers: list[str]) -> None:
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}"
    if fleet.job(name, cluster):
        fleet.live_fleet.api(cluster).patch(path, {"metadata": {"finalizers": finalizers}})


def commit_behind(fleet: Downsynced, proxy: FaultProxy, *changed: Document) -> None:
    """Commit a fleet whose manager kfleet reaches through a proxy."""
    live_fleet = fleet.live_fleet
    live_fleet.write(*(changed or documents()), policy=MANY_DELETES)
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    written = [*fast_yaml.safe_load_all(path.read_text())]
    manager = next(one for one in written if one["kind"] == "Cluster" and one["metadata"]["name"] == "manager")
    kubeconfig = proxy.kubeconfig(live_fleet.folder.parent / "proxy.yaml")
    manager["spec"]["access"] = {"context": "manager", "kubeconfig": str(kubeconfig)}
    path.write_text(fast_yaml.safe_dump_all(written))
    live_fleet.commit_all()


def has_policy(fleet: Downsynced, cluster: str) -> bool:
    return fleet.manager.find(f"{KUBESTELLAR}/bindingpolicies/kfleet-{cluster}") is not None


def queue_spec(fleet: Downsynced) -> dict[str, Any]:
    found: dict[str, Any] = fleet.live_fleet.queue(QUEUE, "manager")["spec"]
    return found


def test_worker_out_of_git_keeps_policy_and_memory_until_its_copy_was_seen_gone(fleet: Downsynced, name: str) -> None:
    """Its copy does not go, as when KubeStellar deletes the work before its agent has noticed."""
    first = running(fleet, name)
    stick(fleet, name, first, [STUCK])
    other = next(worker for worker in WORKERS if worker != first)
    try:
        del fleet.live_fleet.contexts[first]
        apply_documents(fleet)
        assert not fleet.label(name)
        for _ in range(3):
            assert fleet.live_fleet.apply("--wait", "0").code == 0
            assert (fleet.label(name), has_policy(fleet, first)) == ("", True)
        planned = fleet.live_fleet.plan().record
        waiting = {one["cluster"]: one["why"] for one in planned["waiting"]}
        assert f"1 job that kfleet placed is still there ({NAMESPACE}/{name})" in waiting[first]
        assert planned["placements"] == []
        explained = fleet.live_fleet.run(f"why {NAMESPACE}/{name}").out.splitlines()[0]
        assert f"its former copy on {first} is not gone yet" in explained
        assert fleet.message(name) == f"its former copy on {first} is not gone yet"
    finally:
        stick(fleet, name, first, [])
    eventually(lambda: fleet.job(name, first) is None)
    apply_until(fleet, lambda: fleet.label(name) == other)
    apply_until(fleet, lambda: not has_policy(fleet, first))


@pytest.mark.parametrize("times", [1, 2], ids=["when connecting", "when connecting and probing"])
def test_failed_read_of_the_inventory_takes_no_policy_and_places_no_job_again(
    fleet: Downsynced, name: str, times: int
) -> None:
    first = running(fleet, name)
    stick(fleet, name, first, [STUCK])
    unread = Fault(Deed.ANSWER, f"/configmaps/{fleet.live_fleet.set_name.name}$", "GET", status=502, times=times)
    try:
        del fleet.live_fleet.contexts[first]
        with proxied(fleet.live_fleet.sandbox, "manager") as proxy:
            commit_behind(fleet, proxy)
            for label in (first, ""):
                proxy.inject(unread)
                blind = fleet.live_fleet.apply("--wait", "0")
                assert (blind.code, fleet.label(name), has_policy(fleet, first)) == (4, label, True), blind
                proxy.let_go()
                assert fleet.live_fleet.apply("--wait", "0").code == 0
                assert (fleet.label(name), has_policy(fleet, first)) == ("", True)
    finally:
        stick(fleet, name, first, [])


def test_question_for_kubestellar_that_a_proxy_answers_takes_no_policy(fleet: Downsynced, name: str) -> None:
    cluster = running(fleet, name)
    with proxied(fleet.live_fleet.sandbox, "manager") as proxy:
        commit_behind(fleet, proxy, *elsewhere())
        proxy.inject(Fault(Deed.ANSWER, "/apis/control.kubestellar.io/v1alpha1$", "GET", status=502))
        blind = fleet.live_fleet.apply("--wait", "0")
        assert (blind.code, fleet.label(name), has_policy(fleet, cluster)) == (4, cluster, True), blind


def elsewhere(**spec: Any) -> tuple[Document, ...]:
    """The same queue on the manager alone."""
    *_, team = documents()
    manager = {"clusters": {"names": ["manager"]}}
    home = labelled_flavor("home", {"cpu": 8}, **manager)
    return (home, queue(QUEUE, quota("home", {"cpu": 8}), dispatch="none", **manager, **spec), team)


def test_queue_that_leaves_kubestellar_lets_its_jobs_end_and_evicts_them_when_told(
    fleet: Downsynced, name: str
) -> None:
    cluster, second = running(fleet, name), f"{name}-late"
    apply_documents(fleet, *elsewhere())
    fleet.submit(downsynced_job(second, cpu="1", seconds=3600, selector=SPOT))

    def has_changed() -> bool:
        is_twice = fleet.is_true(name, "Admitted") and fleet.job(name, cluster)
        assert not is_twice
        return "admissionChecksStrategy" not in queue_spec(fleet)

    try:
        apply_documents(fleet, *elsewhere())
        assert (fleet.label(name), has_policy(fleet, cluster)) == (cluster, True)
        assert fleet.is_true(name, "QuotaReserved") and not fleet.is_true(name, "Admitted")
        assert not fleet.is_true(second, "QuotaReserved")
        assert "namespaceSelector" not in queue_spec(fleet)
        waiting = {one["cluster"]: one["why"] for one in fleet.live_fleet.plan().record["waiting"]}
        assert f"queue {QUEUE}: it changes when its jobs on workers have ended" in waiting["manager"]
        fleet.live_fleet.commit(*elsewhere(drainOnDelete=True), policy=MANY_DELETES)
        apply_until(fleet, has_changed)
        assert fleet.job(name, cluster) is None and not fleet.label(name)
        eventually(lambda: fleet.is_true(name, "Admitted"))
        apply_until(fleet, lambda: not has_policy(fleet, cluster))
        assert queue_spec(fleet).get("stopPolicy", "None") == "None"
    finally:
        fleet.remove(second)
