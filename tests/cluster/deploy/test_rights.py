"""The shipped rights: enough for everything that kfleet does, and not one more."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.frameworks import is_allowed, worker_rules
from reconciler.objects import ClusterName
from reconciler.plan.rbac import EVERYWHERE, KUEUE_NAMESPACE, NAMESPACE, Right, RightScope, rights_of
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import DEFAULT_KUEUE
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.cluster.apply.test_example import NAMESPACES as TENANTS
from tests.cluster.apply.test_example import left_behind
from tests.cluster.definitions import held_definitions
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet, give_account, take_account
from tests.cluster.deploy.lifecycle import Lifecycle, go_through
from tests.cluster.deploy.requests import Asked, Request
from tests.conftest import CRDS
from tests.support import eventually

FIFTH = ClusterName("fifth")
PLACES = {"hub": "manager", "cnaf-gpu": "worker1", "cnaf-cpu": "worker2", "lyon-gpu": FIFTH}
DEFINED = ("manager", "worker1", "worker2")
DEFINITIONS = [fast_yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
NAMESPACES = {RightScope.CLUSTER: "", RightScope.KUEUE: KUEUE_NAMESPACE, RightScope.OWN: NAMESPACE}
# Asked for everywhere first, then where kfleet keeps its own, and where the fleet is no more.
DENIED = {("list", "configmaps"), ("list", "secrets"), ("list", "serviceaccounts")}


@pytest.fixture(scope="module")
def lifecycle(fleet: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lifecycle]:
    fleet.add_cluster(FIFTH, DEFAULT_KUEUE)
    live_fleet = AccountLiveFleet(fleet, tmp_path_factory.mktemp("lifecycle") / "science", "science", PLACES)
    with ExitStack() as definitions:
        for cluster in DEFINED:
            definitions.enter_context(_defined(fleet.api(cluster)))
        for cluster in PLACES.values():
            give_account(fleet, cluster, _role(cluster))
        eventually(lambda: not left_behind(live_fleet), 90)
        told = Lifecycle(live_fleet)
        go_through(told)
        yield told
        live_fleet.clean()
        for cluster in PLACES.values():
            take_account(fleet, cluster, _role(cluster))
            _remove_released(fleet.api(cluster))
    fleet.remove_cluster(FIFTH)


@contextmanager
def _defined(api: ApiServer) -> Iterator[None]:
    """What others than Kueue bring, and a report of its own on each worker."""
    with held_definitions(api, DEFINITIONS):
        if api.cluster != "manager":
            kind = {"apiVersion": "galaxy.kubestellar.io/v1alpha1", "kind": "ClusterMetrics"}
            report = api.create({**kind, "metadata": {"name": "local"}, "spec": {}})
            api.patch(f"{api.path_of(report)}/status", {"status": {"nodes": []}})
        yield


def _remove_released(api: ApiServer) -> None:
    """Namespaces, which kfleet lets go and never deletes."""
    for path in (f"/api/v1/namespaces/{name}" for name in TENANTS):
        if api.find(path):
            api.delete(path)


def _role(cluster: str) -> Role:
    return Role.MANAGER if cluster == "manager" else Role.WORKER


@pytest.mark.parametrize("role", [Role.MANAGER, Role.WORKER])
def test_rights_are_enough_for_the_whole_lifecycle(lifecycle: Lifecycle, role: Role) -> None:
    denied = {asked for request in lifecycle.of(role) if request.status == 403 for asked in request.asked}
    assert {asked for asked in denied if (asked.verb, asked.plural) not in DENIED} == set()
    assert KUEUE_NAMESPACE not in {asked.namespace for asked in denied}


@pytest.mark.parametrize("role", [Role.MANAGER, Role.WORKER])
def test_rights_are_all_used_in_the_lifecycle(lifecycle: Lifecycle, role: Role) -> None:
    """What is done everywhere may have been done on a cluster of the other role."""
    own, all_of_it = _allowed(lifecycle.of(role)), _allowed(lifecycle.of(Role.MANAGER) + lifecycle.of(Role.WORKER))
    unused = [
        f"{verb} {right.plural}.{right.group} ({right.scope})"
        for right in rights_of(role, KueueSettings())
        for verb in right.verbs
        if not _is_used(right, verb, all_of_it if right in EVERYWHERE else own)
        and not (role is Role.WORKER and _is_given(right, verb))
    ]
    assert unused == []


def _allowed(requests: list[Request]) -> set[Asked]:
    return {asked for request in requests if request.status != 403 for asked in request.asked}


def _is_given(right: Right, verb: str) -> bool:
    """Whether kfleet has it because it gives it to the manager's Kueue."""
    return is_allowed(worker_rules(KueueSettings()), verb, right.group, right.plural)


def _is_used(right: Right, verb: str, asked: set[Asked]) -> bool:
    single = Right(right.group, right.plural, (verb,), right.scope)
    return any(one.is_allowed_by(single, NAMESPACES) for one in asked)
