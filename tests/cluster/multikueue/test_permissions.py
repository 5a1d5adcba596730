"""What kfleet may do, on a server that cannot list it because others than its roles decide too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.multikueue.model import Permission
from reconciler.multikueue.observe import RULES_REVIEW, ask_permissions
from reconciler.objects import Check, ClusterName, Manifest, PreflightIssue
from reconciler.pipeline.compare import observe_objects
from reconciler.pipeline.observe import Connections, observe_permissions
from reconciler.pipeline.plan import preflight
from tests.builders import flavor, open_queue
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.cluster.stages import observe_fleet
from tests.support import eventually

RBAC = "rbac.authorization.k8s.io"
RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
NAME = ClusterName("worker1")


class UnsureServer(ApiServer):
    """A server with a webhook that allows what its roles do not: it lists what it knows, and says there is more."""

    def post(self, path: str, body: Manifest) -> dict[str, Any]:
        answer = super().post(path, body)
        return {**answer, "status": {**answer["status"], "incomplete": True}} if path == RULES_REVIEW else answer


@pytest.fixture
def reader(live_fleet: LiveFleet) -> Iterator[ClusterLogin]:
    """An account that may look at everything, and change nothing."""
    api, name = live_fleet.api(), f"{live_fleet.name}-reader"
    account = {"name": name, "namespace": SYSTEM}
    named = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    binding = {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    api.create({**named, "kind": "ClusterRole", "rules": RULES})
    api.create({**named, "kind": "ClusterRoleBinding", **binding})
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{name}"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.post(f"{path}/token", request)["status"]["token"]
    yield ClusterLogin(api.access.server, api.access.ca, token=token)
    api.delete(path)
    api.delete(f"/apis/{RBAC}/v1/clusterrolebindings/{name}")
    api.delete(f"/apis/{RBAC}/v1/clusterroles/{name}")


@pytest.fixture
def unsure() -> Iterator[Callable[[ClusterLogin], UnsureServer]]:
    opened: list[UnsureServer] = []

    def begin(access: ClusterLogin) -> UnsureServer:
        opened.append(UnsureServer(NAME, access))
        return opened[-1]

    yield begin
    for server in opened:
        server.close()


def test_permissions_are_asked_one_by_one(
    live_fleet: LiveFleet, reader: ClusterLogin, unsure: Callable[..., UnsureServer]
) -> None:
    allowed = {Permission("get", "", "configmaps", SYSTEM), Permission("list", "batch", "jobs")}
    denied = {Permission("create", "", "configmaps", SYSTEM), Permission("create", "", "serviceaccounts/token", SYSTEM)}
    server = unsure(reader)
    # What an account may do is known a moment after it was said.
    eventually(lambda: set(ask_permissions(server, allowed | denied)) == allowed)
    assert set(ask_permissions(unsure(live_fleet.api().access), allowed | denied)) == allowed | denied


def test_rights_that_only_a_review_shows_are_reported(
    live_fleet: LiveFleet, reader: ClusterLogin, unsure: Callable[..., UnsureServer]
) -> None:
    live_fleet.commit(flavor(live_fleet.name), open_queue(live_fleet.name, live_fleet.name))
    assert preflight_issues(live_fleet, unsure(live_fleet.api().access)) == ()
    server = unsure(reader)
    eventually(lambda: ask_permissions(server, [Permission("list", "", "configmaps")]))
    (found,) = eventually(lambda: preflight_issues(live_fleet, server))
    assert (found.cluster, found.check) == (NAME, Check.RIGHTS)
    assert found.problem.startswith("kfleet may not create, patch configmaps; ")
    assert "create, patch, delete clusterqueues.kueue.x-k8s.io" in found.problem


def preflight_issues(live_fleet: LiveFleet, server: UnsureServer) -> tuple[PreflightIssue, ...]:
    connections = Connections({NAME: server})
    computed = observe_fleet(live_fleet.computed(), connections, is_thorough=True)
    computed = observe_permissions(computed, connections)
    return preflight(computed, observe_objects(computed, connections))
