"""What happens to a fleet when a right is taken away: it is said, and all is well again when the right is back."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from reconciler.plan.rbac import Places, Right, RightScope, rights_of, rules_of
from reconciler.spec.enums import Role
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet, as_account
from tests.support import eventually

KUEUE = "kueue.x-k8s.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Removal:
    """One verb of one right, and what `kfleet apply` makes of its absence."""

    role: Role
    right: Right
    code: int
    words: str

    @property
    def cluster(self) -> str:
        return "manager" if self.role is Role.MANAGER else "worker1"

    @property
    def path(self) -> str:
        name = f"kfleet-{self.role}"
        namespace = Places().of(self.right.scope)
        return f"{RBAC}/namespaces/{namespace}/roles/{name}" if namespace else f"{RBAC}/clusterroles/{name}"

    def __str__(self) -> str:
        return f"{self.role}-{self.right.verbs[0]}-{self.right.plural}"


REMOVALS = [
    Removal(Role.WORKER, Right(KUEUE, "clusterqueues", ("patch",)), 4, 'cannot patch resource "clusterqueues"'),
    Removal(Role.WORKER, Right(KUEUE, "resourceflavors", ("list",)), 4, 'cannot list resource "resourceflavors"'),
    Removal(Role.WORKER, Right("batch", "jobs", ("watch",)), 3, "attempting to grant RBAC permissions not currently"),
    Removal(
        Role.WORKER,
        Right("", "serviceaccounts/token", ("create",), RightScope.KUEUE),
        4,
        'cannot create resource "serviceaccounts/token"',
    ),
    Removal(
        Role.MANAGER,
        Right("coordination.k8s.io", "leases", ("create",), RightScope.KUEUE),
        1,
        'create resource "leases"',
    ),
    Removal(Role.MANAGER, Right("", "secrets", ("get",), RightScope.OWN), 4, 'cannot get resource "secrets"'),
]


@pytest.mark.parametrize("removal", REMOVALS, ids=str)
def test_apply_says_which_right_is_missing(live_fleet: AccountLiveFleet, removal: Removal) -> None:
    eventually(lambda: _may(live_fleet, removal))
    _write_role(live_fleet, removal, lambda right: _without(right, removal.right))
    eventually(lambda: not _may(live_fleet, removal))
    answer = live_fleet.apply()
    assert answer.code == removal.code, answer
    assert removal.words in answer.out + answer.err
    _write_role(live_fleet, removal, lambda right: right)
    eventually(lambda: _may(live_fleet, removal))
    live_fleet.converge()


def _write_role(live_fleet: AccountLiveFleet, removal: Removal, change: Callable[[Right], Right]) -> None:
    changed = (change(right) for right in rights_of(removal.role))
    rules = rules_of((right for right in changed if right.verbs), removal.right.scope)
    live_fleet.sandbox.api(removal.cluster).patch(removal.path, {"rules": rules})


def _without(right: Right, removed: Right) -> Right:
    is_it = replace(right, verbs=()) == replace(removed, verbs=())
    return replace(right, verbs=tuple(verb for verb in right.verbs if not is_it or verb not in removed.verbs))


def _may(live_fleet: AccountLiveFleet, removal: Removal) -> bool:
    """Whether the server already knows."""
    plural, _, subresource = removal.right.plural.partition("/")
    asked = {
        "verb": removal.right.verbs[0],
        "group": removal.right.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": Places().of(removal.right.scope),
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    account = as_account(live_fleet.sandbox, removal.cluster)
    try:
        answer = account.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    finally:
        account.close()
    return bool(answer["status"]["allowed"])
