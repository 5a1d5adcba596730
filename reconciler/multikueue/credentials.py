"""The logins of the manager's Kueue to the workers of MultiKueue, and its permissions there.

Decision: the role is made from the frameworks that the manager's Kueue has enabled, because Kueue watches all of them
on every worker and disconnects from a worker if one watch is forbidden. It contains nothing else, so that a leaked
token is worth little.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.kueue.configuration import assumed_settings
from reconciler.kueue.frameworks import worker_rules
from reconciler.multikueue.model import (
    ORIGIN,
    ROLE_LABEL,
    Links,
    SeenCredential,
    reason_to_issue,
    role_name,
    subject_of,
    with_token,
)
from reconciler.objects import ApiEndpoint, Ref, TokenRequestSpec
from reconciler.render.model import DesiredObject, desired_object, kueue_manifest
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.settings import Credentials

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
    """Logins that kfleet has issued, unchanged: the credentials of a removed worker are no longer in git."""
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
    """The ServiceAccount of the manager on every worker."""
    return f"multikueue-{fleet}"


def is_login(ref: Ref, fleet: str) -> bool:
    """Whether an object on a worker is part of the manager's login."""
    role = ref.kind in {"ClusterRole", "ClusterRoleBinding"} and ref.name == role_name(fleet)
    return role or (ref.kind == "ServiceAccount" and ref.name == account_name(fleet))


def _waits(worker: Cluster, links: Links | None) -> str:
    """Why the working login must stay: its replacement does not exist yet."""
    if links is None or worker.credentials.cluster_profile:
        return ""
    seen = links.credentials.get(worker.name)
    if seen is None:
        return f"the Secret {worker.kubeconfig_secret} could not be read"
    return (
        f"the Secret {worker.kubeconfig_secret} does not exist yet, so the working login stays"
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
    """The manager's role on a worker. If the enabled frameworks cannot be read, the live role stays unchanged.

    A permission that the manager's Kueue still needs is not removed either: Kueue would disconnect from the worker and
    lose its jobs.
    """
    settings = links.granted if links else assumed_settings(manager.kueue.configuration)
    manifest = _plain(_API, "ClusterRole", name)
    manifest["metadata"]["labels"] = {ROLE_LABEL: "true"}
    if settings is None:
        held = f"the enabled frameworks of Kueue on {manager.name} could not be read"
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
        return replace(entry, held=f"the credential of {worker.name} could not be read")
    request = _request(spec, worker, endpoint, seen, links)
    notes = (_note(request),) if request.reason else ()
    return replace(entry, manifest=with_token(entry.manifest, request, ""), token=request, notes=notes)


def _request(
    spec: FleetSpec, worker: Cluster, endpoint: ApiEndpoint, seen: SeenCredential, links: Links
) -> TokenRequestSpec:
    namespace, account = worker.kueue.namespace, account_name(spec.fleet.name)
    is_asked_for, lifetime = worker.name in links.rotations, worker.credentials.lifetime
    reason = reason_to_issue(seen, subject_of(namespace, account), links.now, lifetime, is_asked_for=is_asked_for)
    kept = "" if reason or seen.token is None else seen.token.text
    if kept and seen.endpoint and seen.token and seen.token.is_accepted is None:
        # The worker does not respond at the address of kfleet. The manager's own address may work, so it stays.
        endpoint = seen.endpoint
    return TokenRequestSpec(
        worker=worker.name,
        namespace=namespace,
        service_account=account,
        lifetime=lifetime,
        endpoint=endpoint,
        kept=kept,
        reason=reason,
    )


def _endpoint(worker: Cluster, links: Links) -> ApiEndpoint | None:
    known = links.endpoints.get(worker.name)
    return replace(known, server=worker.credentials.server or known.server) if known else None


def _note(request: TokenRequestSpec) -> str:
    hours = request.lifetime.total_seconds() / 3600
    return f"a token for {hours:g} h is issued on {request.worker}: {request.reason}"


def _plain(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
