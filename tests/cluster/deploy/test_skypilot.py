"""The role for SkyPilot teams, bound in their namespaces as docs/skypilot.md says."""

from collections.abc import Iterator

import pytest

from reconciler.plan.rbac import ACCOUNT, NAMESPACE, RBAC, skypilot_objects
from tests.builders import flavor, main_tenant, sent_queue
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet
from tests.support import eventually


@pytest.fixture
def team(live_fleet: AccountLiveFleet) -> Iterator[AccountLiveFleet]:
    """A team that submits to the manager, whose namespace is there and has no binding yet."""
    name = live_fleet.name
    live_fleet.converge()
    _commit(live_fleet, main_tenant(name, f"{name}-q", skypilot={}))
    api = live_fleet.sandbox.api("manager")
    for manifest in skypilot_objects():
        api.apply(manifest)
    yield live_fleet
    for manifest in skypilot_objects():
        api.delete(api.path_of(manifest))


def _commit(live_fleet: AccountLiveFleet, *tenants: dict[str, object]) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu"), *tenants)


def _bind(live_fleet: AccountLiveFleet) -> None:
    live_fleet.sandbox.api("manager").create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "kfleet-skypilot", "namespace": live_fleet.name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "kfleet-skypilot"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
    )


def _config(live_fleet: AccountLiveFleet) -> object:
    path = f"/api/v1/namespaces/{live_fleet.name}/configmaps/skypilot-{live_fleet.name}"
    return live_fleet.sandbox.api("manager").find(path)


def test_config_of_a_team_is_written_and_deleted_with_the_role_bound_in_its_namespace(team: AccountLiveFleet) -> None:
    answer = team.apply()
    assert 'cannot list resource "configmaps"' in answer.out + answer.err
    assert _config(team) is None
    _bind(team)
    eventually(lambda: team.apply().code == 0)  # a new right is known after a moment only
    team.converge()
    assert _config(team)
    _commit(team)
    team.converge()
    assert _config(team) is None
