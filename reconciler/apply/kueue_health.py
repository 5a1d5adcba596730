"""Checks whether Kueue works on a cluster: Deployment, CRDs, webhooks, and a write that goes through all of them."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from reconciler.apply.configuration import find_complaint, is_rolled_out
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import FINALIZER, GROUP, KINDS, KueueVersion
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue_config.observe import release_of
from reconciler.kueue_install.model import exact, version_of
from reconciler.kueue_install.records import labelled_version
from reconciler.objects import Manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KNOWN_DEFINITIONS = tuple(f"{kind.plural}.{GROUP}" for kind in KINDS)
_QUEUES = f"clusterqueues.{GROUP}"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOK_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_PROBE = "kfleet-probe"
_POLL = 1.0
FORBIDDEN, _CONFLICT = 403, 409


def wait_until_healthy(
    client: ClusterClient,
    namespace: str,
    target: KueueVersion,
    definitions: Collection[str],
    timeout: timedelta,
    report: Callable[[str], None],
) -> str:
    """Return an empty text as soon as Kueue is healthy with this release, or what is wrong when the time is over."""
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        problem = next(health_problems(client, namespace, definitions, target), "")
        if not problem:
            return ""
        if time.monotonic() > deadline:
            return f"not healthy after {timeout.total_seconds():.0f} s: {problem}"
        report(f"waiting: {problem}")
        time.sleep(_POLL)


def health_problems(
    client: ClusterClient, namespace: str, definitions: Collection[str], target: KueueVersion | None = None
) -> Iterator[str]:
    """Yield what keeps Kueue from working, the cause before what follows from it.

    Raises ClusterError where the account may not see it.
    """
    try:
        yield from _deployment_problems(client, namespace, target)
        queue_versions: list[str] = []
        for name in definitions:
            definition = client.find(f"{DEFINITIONS}/{name}")
            yield from _definition_problems(name, definition)
            if name == _QUEUES:
                queue_versions = list(_served(definition))
        yield from _webhook_problems(client, namespace)
        for version in queue_versions:
            yield from _write_problems(client, version)
    except ClusterError as error:
        if error.status == FORBIDDEN:
            raise
        yield error.problem


def find_manager(client: ClusterClient, namespace: str) -> Manifest | None:
    """Kueue's Deployment: the one of the namespace that runs its image, or that has the name that the chart gives."""
    for entry in client.list(f"/apis/apps/v1/namespaces/{namespace}/deployments"):
        labels = as_map(at(entry, "metadata", "labels"))
        is_controller = as_text(labels.get("app.kubernetes.io/component")) in {"", "controller"}
        name = as_text(at(entry, "metadata", "name"))
        if is_controller and (name.endswith("kueue-controller-manager") or release_of(entry)):
            return entry
    return None


def running_release(deployment: Manifest | None) -> str:
    """The release of an image whose tag names one, or else of the chart's label."""
    tag = release_of(deployment)
    return tag if version_of(tag) else labelled_version(deployment)


def _deployment_problems(client: ClusterClient, namespace: str, target: KueueVersion | None) -> Iterator[str]:
    deployment = find_manager(client, namespace)
    if deployment is None:
        yield f"there is no Deployment of Kueue in {namespace}"
        return
    name = as_text(at(deployment, "metadata", "name"))
    running = version_of(running_release(deployment))
    if target is not None and running is not None and running != target:
        yield f"the Deployment {name} is of Kueue {exact(running)}, and not of {exact(target)}"
    if not is_rolled_out(deployment):
        why = _pod_problem(client, deployment) or _counted(deployment)
        yield f"the Deployment {name} is not rolled out: {why}"


def _counted(deployment: Manifest) -> str:
    wanted, status = at(deployment, "spec", "replicas"), as_map(deployment.get("status"))
    new, ready = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    return f"{wanted} pods are wanted, {new} are new, {ready} of all are ready"


def _pod_problem(client: ClusterClient, deployment: Mapping[str, Any]) -> str:
    namespace, labels = deployment["metadata"]["namespace"], at(deployment, "spec", "selector", "matchLabels") or {}
    selector = quote(",".join(f"{name}={value}" for name, value in labels.items()))
    try:
        pods = as_list(client.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}").get("items"))
    except ClusterError:
        return ""
    return next(filter(None, map(find_complaint, pods)), "")


def _definition_problems(name: str, definition: Manifest | None) -> Iterator[str]:
    if definition is None:
        yield f"the CRD {name} is missing"
        return
    conditions = {
        as_text(at(entry, "type")): as_text(at(entry, "status"))
        for entry in as_list(at(definition, "status", "conditions"))
    }
    if conditions.get("Established") != "True":
        yield f"the CRD {name} is not established"


def _served(definition: Manifest | None) -> Iterator[str]:
    for version in as_list(at(definition, "spec", "versions")):
        if at(version, "served") is True:
            yield as_text(at(version, "name"))


def _webhook_problems(client: ClusterClient, namespace: str) -> Iterator[str]:
    """Before Kueue, or cert-manager, has written its authority there, the API server trusts no webhook of it."""
    for plural in _WEBHOOK_KINDS:
        for entry in client.list(f"{_WEBHOOKS}/{plural}"):
            name = as_text(at(entry, "metadata", "name"))
            without = [
                as_text(at(webhook, "name"))
                for webhook in as_list(entry.get("webhooks"))
                if "kueue" in name
                and at(webhook, "clientConfig", "service", "namespace") == namespace
                and not at(webhook, "clientConfig", "caBundle")
            ]
            if without:
                yield f"{len(without)} webhooks of {name} have no certificate authority yet"


def _write_problems(client: ClusterClient, version: str) -> Iterator[str]:
    """Rehearse a new ClusterQueue: the conversion, the mutating and the validating webhook have to answer for it.

    The finalizer is what Kueue's own webhook adds. Without it the API server did not ask Kueue.
    """
    queue = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ClusterQueue",
        "metadata": {"name": _PROBE},
        "spec": {"namespaceSelector": {}},
    }
    try:
        answer = client.post(f"/apis/{GROUP}/{version}/clusterqueues?dryRun=All", queue)
    except ClusterError as error:
        if error.status == FORBIDDEN:
            raise
        if error.status != _CONFLICT:  # one of that name exists, which was found after the webhooks had answered
            yield f"a rehearsed ClusterQueue of {version} is not accepted: {error.problem}"
        return
    if FINALIZER not in as_list(at(answer, "metadata", "finalizers")):
        yield f"Kueue's webhook does not answer: a rehearsed ClusterQueue of {version} lacks its finalizer"
