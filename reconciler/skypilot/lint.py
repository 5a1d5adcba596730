"""KF092 to KF097: teams that use SkyPilot."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import yaml

from reconciler.decoding import load_yaml
from reconciler.kueue.configuration import plain
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View, about, misnamed
from reconciler.skypilot.render import QUEUE_LABEL, submitting_clusters
from reconciler.spec.enums import Dispatch
from reconciler.spec.files import FieldPath
from reconciler.spec.model import Cluster, Queue, Tenant

LINES = "spec.kueue.config: {integrations: {frameworks: {add: [pod]}}}"
CLASSES = (
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
    "check-capacity.autoscaling.x-k8s.io",
    "queued-provisioning.gke.io",
)
CLASS: FieldPath = ("spec", "provisioningClassName")
# The fields in which a SkyPilot config names a queue: for servers with Kueue support, and as a pod label for others.
# Each can be set globally, for a workspace, for a context, or for both; `quota.queue` wins over the name beside it.
_ANY = "*"
_SCOPES = (("kubernetes",), ("workspaces", _ANY, "kubernetes"))
_QUEUES = tuple(
    (*scope, *context, *name)
    for scope in _SCOPES
    for context in ((), ("context_configs", _ANY))
    for name in (
        ("kueue", "local_queue_name"),
        ("quota", "queue"),
        ("pod_config", "metadata", "labels", QUEUE_LABEL),
    )
)

RULES = (
    Rule(
        "KF092",
        Severity.WARNING,
        "Kueue manages plain pods where a team uses SkyPilot",
        "SkyPilot runs its tasks as plain pods; without the integration for them they start at once, past every queue",
    ),
    Rule(
        "KF093",
        Severity.ERROR,
        "SkyPilot config of a team names no other queue",
        "pods of an API server with the config of another team name a LocalQueue that is not in their namespace",
    ),
    Rule(
        "KF094",
        Severity.ERROR,
        "teams of a queue agree on provisioning",
        "an admission check holds for the whole queue",
    ),
    Rule(
        "KF095",
        Severity.WARNING,
        "SkyPilot config in a ConfigMap names a queue of its namespace",
        "two API servers on one cluster are easily given the config of the first one, and the pods of the second wait",
    ),
    Rule(
        "KF096",
        Severity.WARNING,
        "provisioning class is spelled as its autoscaler spells it",
        "a class that no autoscaler serves gets no answer, and its queues admit nothing",
    ),
    Rule(
        "KF097",
        Severity.ERROR,
        "teams that use SkyPilot have a queue that takes pods",
        "SkyPilot runs plain pods, which KubeStellar does not carry: they would hold quota on the manager for ever",
    ),
)


def check_pod_integration(view: View) -> Iterator[Remark]:
    """SkyPilot runs plain pods, which Kueue ignores unless it is configured to manage them.

    Both the manager that dispatches them and the clusters that run them need the pod integration.
    """
    for tenant, queue in _with_queues(view):
        if queue.dispatch is Dispatch.KUBESTELLAR:
            continue
        asked = (*submitting_clusters(view.spec, queue), *view.clusters_of_queue[queue.name])
        for cluster in {cluster.name: cluster for cluster in asked}.values():
            if not _has_pods(cluster):
                problem = f"the fleet does not configure the Kueue of {cluster.name} to manage plain pods"
                hint = f"add to Cluster {cluster.name}: {LINES}"
                yield Remark("KF092", tenant.document, ("spec", "skypilot"), problem, hint)


def check_downsynced_teams(view: View) -> Iterator[Remark]:
    for tenant, queue in _with_queues(view):
        if queue.dispatch is Dispatch.KUBESTELLAR:
            problem = f"SkyPilot runs plain pods, and KubeStellar, which dispatches queue {queue.name}, supports none"
            hint = "use a queue with dispatch none or multikueue for the team"
            yield Remark("KF097", tenant.document, ("spec", "queue"), problem, hint)


def check_queue_names(view: View) -> Iterator[Remark]:
    for tenant in _teams(view):
        written = tenant.skypilot.configuration if tenant.skypilot else {}
        for path, name in _queues_in(written):
            if name != tenant.local_queue:
                problem = f"{name!r} is not the team's LocalQueue, {tenant.local_queue}"
                path_to = ("spec", "skypilot", "config", *path)
                yield Remark("KF093", tenant.document, path_to, problem, "remove it: kfleet sets it")


def check_provisioning(view: View) -> Iterator[Remark]:
    first: dict[str, Tenant] = {}
    for tenant in _teams(view):
        other = first.setdefault(tenant.queue, tenant)
        asked, known = _asked(tenant), _asked(other)
        if asked != known:
            problem = f"team {other.name} has different settings for the nodes that queue {tenant.queue} requests"
            hint = "a check applies to the whole queue: use the same settings for both, or separate queues"
            yield Remark("KF094", tenant.document, ("spec", "skypilot", "provisioning"), problem, hint)


def check_server_configs(view: View) -> Iterator[Remark]:
    """Check configs of API servers in ConfigMaps: a queue of another team does not exist in this namespace."""
    for entry in view.spec.objects:
        if entry.document.kind != "ConfigMap":
            continue
        namespace = entry.document.namespace or "default"
        for key, text in as_map(at(entry.manifest, "data")).items():
            for queue in _named_queues(text):
                for cluster in view.spec.targeted(entry.targets):
                    known = [name for there, name in view.of(cluster.name, "LocalQueue") if there == namespace]
                    if queue not in known:
                        problem = f"SkyPilot would send its pods to {queue!r}, and {namespace} has no such LocalQueue"
                        hint = "they would wait forever"
                        remark = Remark(
                            rule="KF095",
                            document=entry.document,
                            path=("data", key),
                            problem=problem,
                            hint=hint,
                            cluster=cluster.name,
                        )
                        yield misnamed(remark, queue, known)


def check_classes(view: View) -> Iterator[Remark]:
    for entry in view.every("ProvisioningRequestConfig"):
        name = as_text(at(entry.manifest, *map(str, CLASS)))
        meant = get_close_matches(name, CLASSES, n=1, cutoff=0.9)
        if meant and name not in CLASSES:
            problem = f"no known controller serves the class {name!r}: its requests would never be answered"
            yield about(entry, "KF096", CLASS, problem, f"did you mean {meant[0]}?")


def _teams(view: View) -> Iterator[Tenant]:
    return (tenant for tenant in view.spec.tenants if tenant.skypilot is not None)


def _with_queues(view: View) -> Iterator[tuple[Tenant, Queue]]:
    queues = {queue.name: queue for queue in view.spec.queues}
    return ((tenant, queues[tenant.queue]) for tenant in _teams(view) if tenant.queue in queues)


def _asked(tenant: Tenant) -> object:
    return tenant.skypilot.provisioning if tenant.skypilot else None


def _has_pods(cluster: Cluster) -> bool:
    frameworks = at(cluster.kueue.configuration, "integrations", "frameworks")
    return "pod" in as_list(plain(frameworks))


def _named_queues(text: Any) -> Iterator[str]:
    if not isinstance(text, str) or "queue" not in text:
        return
    try:
        content = load_yaml(text)
    except yaml.YAMLError:
        return
    yield from dict.fromkeys(name for _, name in _queues_in(content))


def _queues_in(content: Any) -> Iterator[tuple[FieldPath, str]]:
    """Return every name of a queue in a SkyPilot config, by its path."""
    for pattern in _QUEUES:
        for path, value in _found(content, pattern):
            if isinstance(value, str) and value:
                yield path, value


def _found(content: Any, pattern: tuple[str, ...]) -> Iterator[tuple[FieldPath, Any]]:
    if not pattern:
        yield (), content
        return
    step, *rest = pattern
    below = as_map(content)
    for name in [*below] if step == _ANY else [step]:
        yield from (((name, *path), value) for path, value in _found(below.get(name), tuple(rest)))
