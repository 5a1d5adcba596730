"""What kfleet may do on a cluster: the one table that its roles, `kfleet bootstrap` and preflight are made from.

A right is in the table because a request of kfleet needs it. Kinds that stand in a fleet as they are (native documents)
need rights of their own, which their owner gives by binding another role to the account.

Decision: kfleet holds the rights that it gives the manager's Kueue on a worker, instead of being allowed to `escalate`,
because whoever may escalate can become anything, and a leaked token of kfleet could.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.kueue.configuration import Settings
from reconciler.kueue.frameworks import FRAMEWORKS, worker_rules
from reconciler.kueue.kinds import GROUP, KINDS
from reconciler.objects import Manifest
from reconciler.spec.choices import Role
from reconciler.spec.kubestellar import KNOWN_KINDS

ACCOUNT = "kfleet"
NAMESPACE = "kfleet-system"
KUEUE_NAMESPACE = "kueue-system"
RBAC = "rbac.authorization.k8s.io"

_FOLLOWED = ("list", "watch")
_WRITTEN = ("create", "delete", "get", "list", "patch", "watch")
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


class Scope(StrEnum):
    """Where a right holds: everywhere, in the namespace of Kueue, or in that of kfleet itself."""

    CLUSTER = "cluster"
    KUEUE = "kueue"
    OWN = "own"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What is done with a kind, by its plural or `plural/subresource`."""

    group: str
    plural: str
    verbs: tuple[str, ...]
    scope: Scope = Scope.CLUSTER


@dataclass(frozen=True, slots=True)
class Places:
    """The namespaces of a cluster that matter to kfleet."""

    own: str = NAMESPACE
    kueue: str = KUEUE_NAMESPACE

    def of(self, scope: Scope) -> str:
        return {Scope.CLUSTER: "", Scope.KUEUE: self.kueue, Scope.OWN: self.own}[scope]


USUAL = Places()
ALL_FRAMEWORKS = Settings(frameworks=tuple(sorted(FRAMEWORKS)))

EVERYWHERE = (
    # Namespaces are never deleted.
    Right("", "namespaces", ("create", "get", "list", "patch", "watch")),
    Right("", "configmaps", _WRITTEN, Scope.KUEUE),
    # Kueue is restarted with a new Configuration, and asked why it does not come back.
    Right("", "pods", ("list",), Scope.KUEUE),
    Right("apps", "deployments", ("get", "list", "patch"), Scope.KUEUE),
    Right(GROUP, "workloads", ("list",)),
)
_MANAGER = (
    Right("", "events", ("create",), Scope.KUEUE),
    Right("", "secrets", ("create", "delete", "get", "list", "patch"), Scope.KUEUE),
    Right("", "secrets", ("get",), Scope.OWN),
    Right("coordination.k8s.io", "leases", ("create", "get", "update"), Scope.KUEUE),
    Right("galaxy.kubestellar.io", "clustermetrics", ("create", "get", "list", "watch")),
    Right("galaxy.kubestellar.io", "clustermetrics/status", ("patch",)),
    Right("vk.io", "masterqueues", _FOLLOWED),
)
_WORKER = (
    Right("", "nodes", _FOLLOWED),
    Right("", "pods", ("list",)),
    Right("", "serviceaccounts", _WRITTEN, Scope.KUEUE),
    Right("", "serviceaccounts/token", ("create",), Scope.KUEUE),
    Right("galaxy.kubestellar.io", "clustermetrics", _FOLLOWED),
    Right(RBAC, "clusterrolebindings", _WRITTEN),
    Right(RBAC, "clusterroles", _WRITTEN),
)

# What the manager of a fleet needs beside that whose jobs travel by KubeStellar: a role of its own, for those who do.
KUBESTELLAR = (
    Right("apiextensions.k8s.io", "customresourcedefinitions", ("get",)),
    Right("control.kubestellar.io", "bindingpolicies", _WRITTEN),
    Right("control.kubestellar.io", "combinedstatuses", _FOLLOWED),
    Right("control.kubestellar.io", "customtransforms", _WRITTEN),
    Right("control.kubestellar.io", "statuscollectors", _WRITTEN),
    Right(GROUP, "admissionchecks/status", ("patch",)),
    Right(GROUP, "workloads", _FOLLOWED),
    Right(GROUP, "workloads/status", ("patch",)),
    *(Right(kind.group, kind.plural, ("list", "patch", "watch")) for kind in KNOWN_KINDS),
)
# What kfleet does in the namespaces of SkyPilot teams.
SKYPILOT = (Right("", "configmaps", _WRITTEN),)


def rights_of(role: Role, settings: Settings = ALL_FRAMEWORKS) -> tuple[Right, ...]:
    """What kfleet does on a cluster of this role; `settings` are those of the manager's Kueue."""
    if role is Role.STANDALONE:
        return (*rights_of(Role.MANAGER), *rights_of(Role.WORKER, settings))
    kinds = [kind for kind in KINDS if kind.name != "Workload"]
    if role is Role.MANAGER:
        return (*EVERYWHERE, *_MANAGER, *(Right(GROUP, kind.plural, _WRITTEN) for kind in kinds))
    own = (Right(GROUP, kind.plural, _WRITTEN) for kind in kinds if not kind.name.startswith("MultiKueue"))
    return (*EVERYWHERE, *_WORKER, *own, *_given(settings))


def _given(settings: Settings) -> Iterator[Right]:
    """Nobody may give away what he does not have."""
    for rule in worker_rules(settings):
        for plural in rule["resources"]:
            yield Right(rule["apiGroups"][0], plural, tuple(rule["verbs"]))


def verbs_for(group: str, plural: str) -> tuple[str, ...]:
    """What is done with objects of a kind that a fleet holds, from reading to deleting."""
    known = {(right.group, right.plural): right.verbs for right in EVERYWHERE if right.scope is Scope.CLUSTER}
    done = known.get((group, plural), _WRITTEN)
    return tuple(verb for verb in ("get", "list", "create", "patch", "delete") if verb in done)


def rules_of(rights: Iterable[Right], scope: Scope) -> list[dict[str, Any]]:
    """Rules of RBAC that allow these rights and no others, those of a group with the same verbs in one."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for right in rights:
        if right.scope is scope:
            verbs.setdefault((right.group, right.plural), set()).update(right.verbs)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, plural), allowed in sorted(verbs.items()):
        merged.setdefault((group, tuple(sorted(allowed))), []).append(plural)
    return [
        {"apiGroups": [group], "resources": plurals, "verbs": list(allowed)}
        for (group, allowed), plurals in sorted(merged.items())
    ]


def account_objects(role: Role, places: Places = USUAL, settings: Settings = ALL_FRAMEWORKS) -> tuple[Manifest, ...]:
    """The account of kfleet on a cluster, and its roles."""
    account = {**_plain("v1", "ServiceAccount", ACCOUNT, places.own), "automountServiceAccountToken": False}
    namespace = _plain("v1", "Namespace", places.own)
    namespace["metadata"]["labels"] = _RESTRICTED
    rights = rights_of(role, settings)
    bound = [entry for scope in Scope for entry in _role_objects(f"kfleet-{role}", rights, scope, places)]
    return (namespace, account, *bound)


def kubestellar_objects(places: Places = USUAL) -> tuple[Manifest, ...]:
    """The role for KubeStellar, bound to the account on the manager."""
    return tuple(_role_objects("kfleet-kubestellar", KUBESTELLAR, Scope.CLUSTER, places))


def skypilot_objects() -> tuple[Manifest, ...]:
    """A role that is bound in the namespace of each SkyPilot team: ConfigMaps elsewhere are no business of kfleet."""
    role = _plain(f"{RBAC}/v1", "ClusterRole", "kfleet-skypilot")
    return ({**role, "rules": rules_of(SKYPILOT, Scope.CLUSTER)},)


def _role_objects(name: str, rights: tuple[Right, ...], scope: Scope, places: Places) -> Iterator[Manifest]:
    rules, kind = rules_of(rights, scope), "ClusterRole" if scope is Scope.CLUSTER else "Role"
    if not rules:
        return
    namespace = places.of(scope)
    yield {**_plain(f"{RBAC}/v1", kind, name, namespace), "rules": rules}
    yield {
        **_plain(f"{RBAC}/v1", f"{kind}Binding", name, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": places.own}],
    }


def _plain(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
