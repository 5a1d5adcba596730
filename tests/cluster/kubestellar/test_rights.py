"""The role for KubeStellar: enough to bring a job out and home again, and not one right more."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import cli
from reconciler.plan.rbac import KUBESTELLAR, Right, kubestellar_objects
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests.builders import namespace_object, native
from tests.cluster.controller.controllers import Controller
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet, give_account, take_account
from tests.cluster.deploy.requests import Request, kept_requests, read_requests
from tests.cluster.kubestellar.downsynced import NAMESPACE, WORKERS, Downsynced, documents, downsynced_job
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.support import eventually

JOB = "told"
PLACES = {"hub": "manager", **{worker: worker for worker in WORKERS}}
# Asked for everywhere first, then where kfleet keeps its own.
DENIED = {("list", "configmaps"), ("list", "secrets"), ("list", "serviceaccounts")}


@pytest.fixture(scope="module")
def asked(kubestellar: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Request]]:
    """What kfleet asked of the manager in the life of a job; other requests bear the names of the sandbox."""
    folder: Path = tmp_path_factory.mktemp("rights") / "repository"
    live_fleet = AccountLiveFleet(kubestellar, folder, "rights", PLACES)
    eventually(lambda: not any(live_fleet.api(one).find(f"/api/v1/namespaces/{NAMESPACE}") for one in PLACES), 90)
    _log_in(live_fleet)
    downsynced = Downsynced(live_fleet)
    try:
        with kept_requests() as lines:
            _tell(downsynced)
        downsynced.remove(JOB)
        followed = _follow(live_fleet)
        with kept_requests() as last:
            _empty(live_fleet)
        requests = read_requests([*lines, *followed, *last])
        yield [request for request in requests if request.cluster == "hub"]
    finally:
        downsynced.remove(JOB)
        downsynced.clean()
        _log_out(live_fleet)
        _remove_released(live_fleet)


def _log_in(live_fleet: AccountLiveFleet) -> None:
    give_account(live_fleet.sandbox, "manager", Role.MANAGER)
    for manifest in kubestellar_objects():
        live_fleet.api("hub").apply(manifest)
    for worker in WORKERS:
        live_fleet.api(worker).apply(namespace_object(SYSTEM))
        contexts = ["--context", worker, "--manager-context", "manager"]
        kubeconfig = ["--kubeconfig", str(live_fleet.sandbox.state.kubeconfig)]
        assert cli.execute(["bootstrap", "worker", worker, "--apply", *contexts, *kubeconfig]) == 0
    live_fleet.log_in("hub")


def _log_out(live_fleet: AccountLiveFleet) -> None:
    api = live_fleet.api("hub")
    for manifest in kubestellar_objects():
        api.delete(api.path_of(manifest))
    take_account(live_fleet.sandbox, "manager", Role.MANAGER)
    for worker in WORKERS:
        take_account(live_fleet.sandbox, worker, Role.WORKER)


def _remove_released(live_fleet: AccountLiveFleet) -> None:
    """The namespace of the team, which kfleet lets go and never deletes."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    for api in map(live_fleet.api, PLACES):
        if api.find(path):
            api.delete(path)
    eventually(lambda: not any(api.find(path) for api in map(live_fleet.api, PLACES)), 60)


def _tell(downsynced: Downsynced) -> None:
    """A job gets a place, loses its quota, gets another place, and ends there."""
    live_fleet = downsynced.live_fleet
    live_fleet.commit(*documents())
    _apply(live_fleet)
    name = downsynced.submit(downsynced_job(JOB, cpu="1", selector={"instance": "spot"}))
    _place(downsynced, name)
    workload = f"{KUEUE_ROOT}/namespaces/{NAMESPACE}/workloads/{downsynced.workload(name)['metadata']['name']}"
    downsynced.manager.patch(workload, {"spec": {"active": False}})
    eventually(lambda: not downsynced.is_true(name, "QuotaReserved"))
    _apply(live_fleet)
    assert not downsynced.label(name)
    # Its copy may still be there: the job waits until it is gone.
    downsynced.manager.patch(workload, {"spec": {"active": True}})
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    _apply_until(live_fleet, lambda: bool(downsynced.label(name)))
    _apply_until(live_fleet, lambda: downsynced.is_true(name, "Finished"))


def _place(downsynced: Downsynced, name: str) -> None:
    eventually(lambda: downsynced.is_true(name, "QuotaReserved"))
    _apply(downsynced.live_fleet)
    assert downsynced.label(name) in WORKERS


def _follow(live_fleet: AccountLiveFleet) -> list[dict[str, Any]]:
    controller = Controller(live_fleet.folder, ("-v",))
    try:
        eventually(lambda: controller.metric("kfleet_leader") == 1, 60)
        eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1, 60)
        assert controller.stop() == 0
    finally:
        controller.kill()
    return controller.lines


def _empty(live_fleet: AccountLiveFleet) -> None:
    """All but a flavor: a fleet without anything is refused."""
    spare = native("ResourceFlavor", "spare", {}, "manager")
    live_fleet.commit(spare, policy={"prune": {"maxDeletes": 100, "maxPercent": 100}})
    _apply_until(live_fleet, lambda: not any(live_fleet.api("hub").list(f"{KUEUE_ROOT}/clusterqueues")))


def _apply(live_fleet: LiveFleet, *, is_leaving: bool = False) -> None:
    """Not complete (4) while something that left git is still in use."""
    applied = live_fleet.apply("--wait", "0")
    assert applied.code in ({0, 4} if is_leaving else {0}), applied.out + applied.err


def _apply_until(live_fleet: LiveFleet, is_done: Callable[[], bool]) -> None:
    """Again and again, as a CronJob would."""

    def applied() -> bool:
        _apply(live_fleet, is_leaving=True)
        return is_done()

    eventually(applied, 60)


def test_role_is_enough_for_the_life_of_a_job(asked: list[Request]) -> None:
    denied = {one for request in asked if request.status == 403 for one in request.asked}
    assert {one for one in denied if (one.verb, one.plural) not in DENIED} == set()


def test_role_has_no_right_that_is_not_used(asked: list[Request], kubestellar: Sandbox) -> None:
    """Of kinds that this KubeStellar has, and that are defined here."""
    allowed = {one for request in asked if request.status != 403 for one in request.asked}
    unused = [
        f"{verb} {right.plural}.{right.group}"
        for right in KUBESTELLAR
        if _is_served(kubestellar, right)
        for verb in right.verbs
        if not any(one.is_allowed_by(Right(right.group, right.plural, (verb,)), {}) for one in allowed)
    ]
    assert unused == []


def _is_served(sandbox: Sandbox, right: Right) -> bool:
    kinds = {(kind.group, kind.plural) for kind in sandbox.api("manager").discover()}
    return (right.group, right.plural.partition("/")[0]) in kinds
