"""The role for SkyPilot teams, bound in their namespaces as docs/skypilot.md says."""

from collections.abc import Iterator

import pytest

from reconciler.rights import ACCOUNT, NAMESPACE, RBAC, skypilot_objects
from tests.cluster.deploy.worlds import AccountWorld
from tests.documents import flavor, sent_queue, tenant
from tests.support import eventually


@pytest.fixture
def team(world: AccountWorld) -> Iterator[AccountWorld]:
    """A team that submits to the manager, whose namespace is there and has no binding yet."""
    name = world.name
    world.converge()
    _commit(world, tenant(name, f"{name}-q", skypilot={}))
    api = world.sandbox.api("manager")
    for manifest in skypilot_objects():
        api.apply(manifest)
    yield world
    for manifest in skypilot_objects():
        api.delete(api.path_of(manifest))


def _commit(world: AccountWorld, *tenants: dict[str, object]) -> None:
    name = world.name
    world.commit(flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu"), *tenants)


def _bind(world: AccountWorld) -> None:
    world.sandbox.api("manager").create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "kfleet-skypilot", "namespace": world.name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "kfleet-skypilot"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
    )


def _config(world: AccountWorld) -> object:
    path = f"/api/v1/namespaces/{world.name}/configmaps/skypilot-{world.name}"
    return world.sandbox.api("manager").find(path)


def test_config_of_a_team_is_written_and_deleted_with_the_role_bound_in_its_namespace(team: AccountWorld) -> None:
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
