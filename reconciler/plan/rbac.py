"""The permissions of kfleet on a cluster: the one table behind its roles, `kfleet bootstrap` and preflight.

A permission is in the table because a request of kfleet needs it. Native documents of a fleet may be of other kinds.
The operator grants permissions for those by binding another role to the account.

Decision: kfleet holds the permissions that it grants the manager's Kueue on a worker, instead of the verb `escalate`.
An account with `escalate` can grant itself anything, and so could a leaked token of kfleet.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.frameworks import FRAMEWORKS, is_allowed, worker_rules
from reconciler.kueue.kinds import GROUP, KINDS
from reconciler.multikueue.model import ClusterFacts, Links, Permission
from reconciler.objects import ClusterName, Manifest
from reconciler.render.model import Desired
from reconciler.render.queues import ROLES
from reconciler.spec.enums import Role
from reconciler.spec.model import Cluster
from reconciler.spec.settings import ADMISSION_GROUP, GUARD, KNOWN_KINDS, PLACEMENT_GROUP, PLACEMENTS, PLACING
from reconciler.state.model import ClusterView

ACCOUNT = "kfleet"
NAMESPACE = "kfleet-system"
KUEUE_NAMESPACE = "kueue-system"
RBAC = "rbac.authorization.k8s.io"

_FOLLOWED = ("list", "watch")
_WRITTEN = ("create", "delete", "get", "list", "patch", "watch")
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


class RightScope(StrEnum):
    """Where a permission applies: in the whole cluster, in Kueue's namespace, or in kfleet's own namespace."""

    CLUSTER = "cluster"
    KUEUE = "kueue"
    OWN = "own"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """The verbs that kfleet uses on a resource, by its plural or `plural/subresource`."""

    group: str
    plural: str
    verbs: tuple[str, ...]
    scope: RightScope = RightScope.CLUSTER


@dataclass(frozen=True, slots=True)
class Places:
    """The namespaces of a cluster that kfleet uses."""

    own: str = NAMESPACE
    kueue: str = KUEUE_NAMESPACE

    def of(self, scope: RightScope) -> str:
        return {RightScope.CLUSTER: "", RightScope.KUEUE: self.kueue, RightScope.OWN: self.own}[scope]


USUAL = Places()
ALL_FRAMEWORKS = KueueSettings(frameworks=tuple(sorted(FRAMEWORKS)))

EVERYWHERE = (
    # kfleet never deletes a namespace.
    Right("", "namespaces", ("create", "get", "list", "patch", "watch")),
    Right("", "configmaps", _WRITTEN, RightScope.KUEUE),
    # kfleet restarts Kueue with a new Configuration, and reads from its pods why it does not become ready.
    Right("", "pods", ("list",), RightScope.KUEUE),
    Right("apps", "deployments", ("get", "list", "patch"), RightScope.KUEUE),
    Right(GROUP, "workloads", ("list",)),
)
_MANAGER = (
    Right("", "events", ("create",), RightScope.KUEUE),
    Right("", "secrets", ("create", "delete", "get", "list", "patch"), RightScope.KUEUE),
    Right("", "secrets", ("get",), RightScope.OWN),
    Right("coordination.k8s.io", "leases", ("create", "get", "update"), RightScope.KUEUE),
    Right("galaxy.kubestellar.io", "clustermetrics", ("create", "get", "list", "watch")),
    Right("galaxy.kubestellar.io", "clustermetrics/status", ("patch",)),
    Right("vk.io", "masterqueues", _FOLLOWED),
)
_WORKER = (
    Right("", "nodes", _FOLLOWED),
    Right("", "pods", ("list",)),
    Right("", "serviceaccounts", _WRITTEN, RightScope.KUEUE),
    Right("", "serviceaccounts/token", ("create",), RightScope.KUEUE),
    Right("galaxy.kubestellar.io", "clustermetrics", _FOLLOWED),
    Right(RBAC, "clusterrolebindings", _WRITTEN),
    Right(RBAC, "clusterroles", _WRITTEN),
)

# What the manager of a fleet needs in addition if KubeStellar dispatches jobs: a separate role, only for such fleets.
KUBESTELLAR = (
    # Without this admission policy a job that a user labels with a cluster would run without quota.
    Right(ADMISSION_GROUP, "validatingadmissionpolicies", _WRITTEN),
    Right(ADMISSION_GROUP, "validatingadmissionpolicybindings", _WRITTEN),
    Right("apiextensions.k8s.io", "customresourcedefinitions", ("get",)),
    Right(PLACEMENT_GROUP, PLACEMENTS, (PLACING,)),
    Right("control.kubestellar.io", "bindingpolicies", _WRITTEN),
    Right("control.kubestellar.io", "combinedstatuses", _FOLLOWED),
    Right("control.kubestellar.io", "customtransforms", _WRITTEN),
    Right("control.kubestellar.io", "statuscollectors", _WRITTEN),
    Right(GROUP, "admissionchecks/status", ("patch",)),
    Right(GROUP, "workloads", _FOLLOWED),
    Right(GROUP, "workloads/status", ("patch",)),
    *(Right(kind.group, kind.plural, ("list", "patch", "watch")) for kind in KNOWN_KINDS),
    # kfleet writes the end of a job where KubeStellar does not return its status.
    *(Right(kind.group, f"{kind.plural}/status", ("patch",)) for kind in KNOWN_KINDS),
)
# What kfleet does in the namespaces of SkyPilot teams.
SKYPILOT = (Right("", "configmaps", _WRITTEN),)
# What kfleet does in the namespaces of tenants with members: it binds Kueue's roles for users and administrators.
MEMBERS = (Right(RBAC, "rolebindings", _WRITTEN),)
BOUND_ROLES = tuple(sorted(ROLES.values()))


def rights_of(role: Role, settings: KueueSettings = ALL_FRAMEWORKS) -> tuple[Right, ...]:
    """The permissions that kfleet needs on a cluster of this role; `settings` are those of the manager's Kueue."""
    if role is Role.STANDALONE:
        return (*rights_of(Role.MANAGER), *rights_of(Role.WORKER, settings))
    kinds = [kind for kind in KINDS if kind.name != "Workload"]
    if role is Role.MANAGER:
        return (*EVERYWHERE, *_MANAGER, *(Right(GROUP, kind.plural, _WRITTEN) for kind in kinds))
    own = (Right(GROUP, kind.plural, _WRITTEN) for kind in kinds if not kind.name.startswith("MultiKueue"))
    return (*EVERYWHERE, *_WORKER, *own, *_given(settings))


def _given(settings: KueueSettings) -> Iterator[Right]:
    """RBAC escalation check: kfleet can only grant permissions that it holds itself."""
    for rule in worker_rules(settings):
        for plural in rule["resources"]:
            yield Right(rule["apiGroups"][0], plural, tuple(rule["verbs"]))


def verbs_for(group: str, plural: str) -> tuple[str, ...]:
    """The verbs that kfleet uses on objects of a fleet, from reading to deleting."""
    known = {(right.group, right.plural): right.verbs for right in EVERYWHERE if right.scope is RightScope.CLUSTER}
    done = known.get((group, plural), _WRITTEN)
    return tuple(verb for verb in ("get", "list", "create", "patch", "delete") if verb in done)


def rules_of(rights: Iterable[Right], scope: RightScope) -> list[dict[str, Any]]:
    """RBAC rules for exactly these permissions; resources of one group with the same verbs share a rule."""
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


def account_objects(
    role: Role, places: Places = USUAL, settings: KueueSettings = ALL_FRAMEWORKS
) -> tuple[Manifest, ...]:
    """The ServiceAccount of kfleet on a cluster, with its namespace and roles."""
    account = {**_plain("v1", "ServiceAccount", ACCOUNT, places.own), "automountServiceAccountToken": False}
    namespace = _plain("v1", "Namespace", places.own)
    namespace["metadata"]["labels"] = _RESTRICTED
    rights = rights_of(role, settings)
    bound = [entry for scope in RightScope for entry in _role_objects(f"kfleet-{role}", rights, scope, places)]
    return (namespace, account, *bound)


def kubestellar_objects(places: Places = USUAL) -> tuple[Manifest, ...]:
    """The role for KubeStellar, bound to the account on the manager."""
    return tuple(_role_objects("kfleet-kubestellar", KUBESTELLAR, RightScope.CLUSTER, places))


def skypilot_objects() -> tuple[Manifest, ...]:
    """A role that is bound in the namespace of each SkyPilot team: kfleet needs no ConfigMaps elsewhere."""
    role = _plain(f"{RBAC}/v1", "ClusterRole", "kfleet-skypilot")
    return ({**role, "rules": rules_of(SKYPILOT, RightScope.CLUSTER)},)


def member_objects() -> tuple[Manifest, ...]:
    """A role for fleets with members: kfleet may bind Kueue's two roles without holding their permissions itself."""
    bind = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": [*BOUND_ROLES]}
    role = _plain(f"{RBAC}/v1", "ClusterRole", "kfleet-members")
    return ({**role, "rules": [*rules_of(MEMBERS, RightScope.CLUSTER), bind]},)


def _role_objects(name: str, rights: tuple[Right, ...], scope: RightScope, places: Places) -> Iterator[Manifest]:
    rules, kind = rules_of(rights, scope), "ClusterRole" if scope is RightScope.CLUSTER else "Role"
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


def needed(cluster: Cluster, view: ClusterView, desired: Desired) -> Iterator[Permission]:
    """The permissions for cluster-scoped kinds and for Kueue's namespace.

    In other namespaces a role binding that kfleet cannot see may grant them.
    """
    own = cluster.kueue.namespace
    found: dict[tuple[str, str, str], Iterable[str]] = {("", "configmaps", own): ("get", "create", "patch")}
    if cluster.kueue.configuration:
        found["apps", "deployments", own] = ("get", "patch")
    for entry in desired.of_cluster(cluster.name):
        group, namespace = entry.ref.group, entry.ref.namespace
        versions = view.served.get((group, entry.ref.kind), ())
        if versions and namespace in {"", own}:
            found[group, versions[0].plural, namespace] = verbs_for(group, versions[0].plural)
        if (entry.ref.group, entry.ref.name) == (ADMISSION_GROUP, GUARD):
            found[PLACEMENT_GROUP, PLACEMENTS, ""] = (PLACING,)
        if entry.ref.kind == "ServiceAccount":
            found["", "serviceaccounts/token", own] = ("create",)
    for (group, plural, namespace), verbs in found.items():
        yield from (Permission(verb, group, plural, namespace) for verb in verbs)


def given(settings: KueueSettings) -> Iterator[Permission]:
    """What the manager's account needs on a worker with these settings. kfleet grants it, and must hold it itself."""
    for rule in worker_rules(settings):
        for plural in rule["resources"]:
            yield from (Permission(verb, rule["apiGroups"][0], plural) for verb in rule["verbs"])


def held_rules(known: ClusterFacts) -> tuple[Manifest, ...]:
    """Rules for single objects (resourceNames) count as well: these may be the objects of the fleet."""
    return tuple({**rule, "resourceNames": []} for rule in known.rules or ())


def lacking(rules: tuple[Manifest, ...], permissions: Iterable[Permission]) -> Iterator[Permission]:
    return (one for one in permissions if not is_allowed(rules, one.verb, one.group, one.plural))


def named(permissions: Iterable[Permission]) -> Iterator[str]:
    """The verbs of a kind together: `create, patch clusterqueues.kueue.x-k8s.io`."""
    verbs: dict[str, dict[str, None]] = {}
    for one in permissions:
        verbs.setdefault(f"{one.plural}.{one.group}" if one.group else one.plural, {})[one.verb] = None
    return (f"{', '.join(names)} {kind}" for kind, names in verbs.items())


def with_answers(links: Links, allowed: Mapping[ClusterName, Iterable[Permission]]) -> Links:
    """The links, with all rules of the clusters that answered access reviews for permissions they had not listed."""
    known = dict(links.facts)
    for name, permissions in allowed.items():
        rules = (*(known[name].rules or ()), *(permission.rule for permission in permissions))
        known[name] = replace(known[name], rules=rules, has_all_rules=True)
    return replace(links, facts=known)
