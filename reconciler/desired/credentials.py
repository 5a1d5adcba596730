"""How the manager's Kueue reaches the workers that MultiKueue sends jobs to, and what it may do there.

Decision: the role comes from the frameworks that the manager's Kueue has enabled, because Kueue watches all of them on
every worker and gives a worker up where one watch is forbidden; and from nothing else, because a token that leaves its
manager should be worth little.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.credential import (
    ORIGIN,
    ROLE_LABEL,
    Endpoint,
    SeenCredential,
    TokenWish,
    reason_to_issue,
    subject_of,
    with_token,
)
from reconciler.desired.model import DesiredObject
from reconciler.desired.shape import desired_object, kueue_manifest
from reconciler.kueue.configuration import assumed_settings
from reconciler.kueue.frameworks import worker_rules
from reconciler.links import Links
from reconciler.objects import Ref
from reconciler.spec.credentials import Credentials
from reconciler.spec.model import Cluster, FleetSpec

_RBAC = "rbac.authorization.k8s.io"
_API = f"{_RBAC}/v1"


def credential_objects(
    spec: FleetSpec, manager: Cluster, workers: Iterable[Cluster], links: Links | None
) -> Iterator[DesiredObject]:
    for worker in workers:
        content = {"clusterSource": _source(worker)}
        link = desired_object(manager, kueue_manifest("MultiKueueCluster", worker.name, content), worker.document)
        if worker.credentials.is_issued:
            yield from (link, *_account_objects(spec, manager, worker, links), _secret(spec, manager, worker, links))
        elif held := _waits(worker, links):
            former = (link, *_account_objects(spec, manager, worker, links), _issued(manager, worker))
            yield from (replace(entry, held=held) for entry in former)
        else:
            yield link


def kept_logins(
    spec: FleetSpec, manager: Cluster, workers: Iterable[Cluster], links: Links | None
) -> Iterator[DesiredObject]:
    """Logins that kfleet has issued, as they are: of a worker that has left nobody knows any more what git said."""
    for worker in workers:
        seen = links.credentials.get(worker.name) if links else None
        account = subject_of(worker.kueue.namespace, account_name(spec.fleet.name))
        is_ours = worker.credentials.is_issued and seen and seen.token and seen.token.subject == account
        if links and seen and seen.token and seen.endpoint and is_ours:
            credentials = Credentials(seen.token.lifetime or worker.credentials.lifetime)
            same = replace(links, endpoints={**links.endpoints, worker.name: seen.endpoint})
            yield from _account_objects(spec, manager, worker, links)
            yield _secret(spec, manager, replace(worker, credentials=credentials), same)


def account_name(fleet: str) -> str:
    """The ServiceAccount on every worker that the manager logs in as."""
    return f"multikueue-{fleet}"


def role_name(fleet: str) -> str:
    return f"kfleet-{fleet}-multikueue"


def is_login(ref: Ref, fleet: str) -> bool:
    """Whether an object on a worker is a part of what lets the manager in."""
    role = ref.kind in {"ClusterRole", "ClusterRoleBinding"} and ref.name == role_name(fleet)
    return role or (ref.kind == "ServiceAccount" and ref.name == account_name(fleet))


def _waits(worker: Cluster, links: Links | None) -> str:
    """Why the login that works has to stay: what should take its place is not there."""
    if links is None or worker.credentials.cluster_profile:
        return ""
    seen = links.credentials.get(worker.name)
    if seen is None:
        return f"the Secret {worker.kubeconfig_secret} could not be looked at"
    return (
        f"the Secret {worker.kubeconfig_secret} is not there yet, and the login that works stays"
        if seen.is_replacing
        else ""
    )


def _issued(manager: Cluster, worker: Cluster) -> DesiredObject:
    manifest = {**_plain("v1", "Secret", worker.issued_secret, manager.kueue.namespace), "type": "Opaque"}
    return desired_object(manager, manifest, worker.document)


def _source(worker: Cluster) -> dict[str, Any]:
    if worker.credentials.cluster_profile:
        return {"clusterProfileRef": {"name": worker.credentials.cluster_profile}}
    return {"kubeConfig": {"locationType": "Secret", "location": worker.kubeconfig_secret}}


def _account_objects(
    spec: FleetSpec, manager: Cluster, worker: Cluster, links: Links | None
) -> Iterator[DesiredObject]:
    namespace, role = worker.kueue.namespace, role_name(spec.fleet.name)
    subject = {"kind": "ServiceAccount", "name": account_name(spec.fleet.name), "namespace": namespace}
    account = _plain("v1", "ServiceAccount", account_name(spec.fleet.name), namespace)
    binding = {
        **_plain(_API, "ClusterRoleBinding", role),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    yield desired_object(worker, account, worker.document)
    yield _role(role, manager, worker, links)
    yield desired_object(worker, binding, worker.document)


def _role(name: str, manager: Cluster, worker: Cluster, links: Links | None) -> DesiredObject:
    """What was enabled and cannot be seen now keeps its rights: nothing is taken away on a guess.

    Nor is anything taken away that the manager's Kueue still watches: it would give the worker up, and its jobs.
    """
    settings = links.granted if links else assumed_settings(manager.kueue.configuration)
    manifest = _plain(_API, "ClusterRole", name)
    manifest["metadata"]["labels"] = {ROLE_LABEL: "true"}
    if settings is None:
        held = f"which frameworks the Kueue of {manager.name} has enabled could not be read"
        return replace(desired_object(worker, manifest, worker.document), held=held)
    if links:
        manifest["metadata"]["annotations"] = {ORIGIN: links.origin}
    manifest["rules"] = worker_rules(settings)
    return desired_object(worker, manifest, worker.document)


def _secret(spec: FleetSpec, manager: Cluster, worker: Cluster, links: Links | None) -> DesiredObject:
    entry = _issued(manager, worker)
    if links is None:
        return replace(entry, held="its token is issued when the fleet is applied")
    endpoint, seen = _endpoint(worker, links), links.credentials.get(worker.name)
    if endpoint is None or seen is None:
        return replace(entry, held=f"the credential of {worker.name} could not be looked at")
    wish = _wish(spec, worker, endpoint, seen, links)
    notes = (_note(wish),) if wish.reason else ()
    return replace(entry, manifest=with_token(entry.manifest, wish, ""), token=wish, notes=notes)


def _wish(spec: FleetSpec, worker: Cluster, endpoint: Endpoint, seen: SeenCredential, links: Links) -> TokenWish:
    namespace, account = worker.kueue.namespace, account_name(spec.fleet.name)
    is_asked_for, lifetime = worker.name in links.rotations, worker.credentials.lifetime
    reason = reason_to_issue(seen, subject_of(namespace, account), links.now, lifetime, is_asked_for=is_asked_for)
    kept = "" if reason or seen.token is None else seen.token.text
    if kept and seen.endpoint and seen.token and seen.token.is_accepted is None:
        # Nobody answers at the address that we know: the manager's own may be better, and is not taken from it.
        endpoint = seen.endpoint
    return TokenWish(worker.name, namespace, account, lifetime, endpoint, kept, reason)


def _endpoint(worker: Cluster, links: Links) -> Endpoint | None:
    known = links.endpoints.get(worker.name)
    return replace(known, server=worker.credentials.server or known.server) if known else None


def _note(wish: TokenWish) -> str:
    hours = wish.lifetime.total_seconds() / 3600
    return f"a token for {hours:g} h is issued on {wish.worker}: {wish.reason}"


def _plain(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
