"""What is seen by an account that may not list a kind in all namespaces."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.objects import Ref
from reconciler.plan.rbac import ACCOUNT, NAMESPACE
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from reconciler.state.applyset import MEMBER_LABEL, Inventory, SetName
from reconciler.state.model import ClusterView
from reconciler.state.observe import look, probe
from tests.cluster.deploy.account_live_fleet import as_account, give_account, take_account
from tests.cluster.live_fleet import SYSTEM
from tests.support import eventually

RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def account(fleet: Sandbox, namespace: str) -> Iterator[ApiServer]:
    """Kfleet on a worker, with a right to ConfigMaps in one more namespace, where one of the fleet lies."""
    give_account(fleet, "worker1", Role.WORKER)
    api = fleet.api("worker1")
    metadata = {"name": "more", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    api.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]})
    api.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "more"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
    )
    labels = {MEMBER_LABEL: SetName(namespace, SYSTEM).id}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": labels}})
    port = as_account(fleet, "worker1")
    eventually(lambda: _seen(port, namespace, namespace).live)
    yield port
    port.close()
    take_account(fleet, "worker1", Role.WORKER)


def _seen(
    port: ApiServer,
    fleet_name: str,
    *namespaces: str,
    kind: str = "ConfigMap",
    left: str = "",
    others: tuple[Ref, ...] = (),
) -> ClusterView:
    """The view of a fleet that wants objects of a kind in some namespaces, and had one in another."""
    probed = probe(port, SetName(fleet_name, SYSTEM))
    known = Inventory(frozenset({kind}), frozenset({left}) - {""})
    wanted = [Ref(port.cluster, "", kind, namespace, "wanted") for namespace in namespaces]
    return look(port, replace(probed, inventory=known), (*wanted, *others))


def test_look_finds_members_where_their_kind_is_wanted(account: ApiServer, namespace: str) -> None:
    view = _seen(account, namespace, namespace)
    assert [ref.name for ref in view.live] == ["more"] and view.gaps == ()


def test_look_finds_members_where_nothing_is_wanted_any_more(account: ApiServer, namespace: str) -> None:
    view = _seen(account, namespace, left=namespace)
    assert [ref.name for ref in view.live] == ["more"] and view.gaps == ()


def test_look_finds_members_where_only_other_kinds_are_wanted(account: ApiServer, namespace: str) -> None:
    other = Ref(account.cluster, KUEUE_GROUP, "LocalQueue", namespace, "main")
    view = _seen(account, namespace, left=namespace, others=(other,))
    assert [ref.name for ref in view.live] == ["more"] and view.gaps == ()


def test_look_passes_over_a_namespace_that_is_left_and_forbidden(account: ApiServer, namespace: str) -> None:
    view = _seen(account, namespace, namespace, left="default")
    assert [ref.name for ref in view.live] == ["more"] and view.gaps == ()


def test_look_has_a_gap_where_the_kind_is_wanted_and_forbidden(account: ApiServer, namespace: str) -> None:
    (gap,) = _seen(account, namespace, "default").gaps
    assert gap.what == "ConfigMap" and '"configmaps" in API group "" in the namespace "default"' in gap.why


def test_look_has_a_gap_where_a_kind_is_forbidden_everywhere(account: ApiServer, namespace: str) -> None:
    (gap,) = _seen(account, namespace, kind="Secret").gaps
    assert gap.what == "Secret" and 'cannot list resource "secrets"' in gap.why
