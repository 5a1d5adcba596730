"""Looks at the manager's Kueue, at the credentials of its workers, and at what may be done on each cluster."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.credential import ORIGIN, ROLE_LABEL, SeenCredential, read_credential
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import (
    CONFIG_KEY,
    QUOTA_AUTOMATION,
    ConfigurationError,
    Settings,
    assumed_settings,
    read_settings,
    united,
)
from reconciler.kueue.configuration_patch import patched, read_configuration, write_configuration
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.leavers import Leavers
from reconciler.links import ClusterFacts, Links, Permission
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.observations.configuration import DEPLOYMENT, arguments_of, find_configuration, release_of
from reconciler.ports import ClusterPort
from reconciler.rollout import FAILED, PREVIOUS, short_name
from reconciler.spec.choices import Dispatch, Role
from reconciler.spec.model import Cluster, FleetSpec

IDENTITY = "/api/v1/namespaces/kube-system"
AUTHORIZATION = "authorization.k8s.io/v1"
RULES_REVIEW = f"/apis/{AUTHORIZATION}/selfsubjectrulesreviews"
ACCESS_REVIEW = f"/apis/{AUTHORIZATION}/selfsubjectaccessreviews"
EVERYTHING = Permission("*", "*", "*")
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
UNAUTHORIZED = 401
_PARALLEL = 16

Ports = Mapping[ClusterName, ClusterPort]


@dataclass(frozen=True, slots=True)
class LinksLook:
    """What was seen, and what was not; a fleet without MultiKueue has no links."""

    links: Links | None = None
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class _Credential:
    worker: ClusterName
    seen: SeenCredential | None
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """Of the manager's Kueue: as they will be, and as they are."""

    settings: Settings | None = None
    running: Settings | None = None
    gap: Gap | None = None


def observe_links(
    spec: FleetSpec,
    ports: Ports,
    leavers: Leavers | None = None,
    rotations: frozenset[ClusterName] = frozenset(),
    *,
    is_thorough: bool = False,
) -> LinksLook:
    """A few requests per cluster, all clusters at once; none at all where nothing is sent, unless told to look."""
    workers, manager = linked_workers(spec, leavers), spec.manager
    everyone = (*workers, *native_workers(spec))
    if not (everyone and manager) and not is_thorough:
        return LinksLook()
    port = ports.get(manager.name) if manager else None
    with ThreadPoolExecutor(_PARALLEL) as pool:
        settings = pool.submit(_settings, manager, port) if manager and port and everyone else None
        uid = pool.submit(_uid, port) if port else None
        facts = pool.map(lambda cluster: _facts(cluster, ports, is_worker=cluster in everyone), spec.clusters)
        credentials = list(pool.map(lambda worker: _credential(worker, manager, ports), workers if port else ()))
        known = {cluster.name: seen for cluster, seen in zip(spec.clusters, facts, strict=True) if seen}
    told = settings.result() if settings else _Settings()
    manager_uid = uid.result() if uid else ""
    links = Links(
        datetime.now(UTC),
        manager_uid,
        told.settings if manager_uid else None,
        {name: one.endpoint for name, one in ports.items()},
        {entry.worker: entry.seen for entry in credentials if entry.seen is not None},
        rotations,
        known,
        told.running,
    )
    # A manager that tells nothing at all is a gap of its own, and one is enough. Roles alone depend on its settings.
    gaps = (told.gap, *(one.gap for one in credentials)) if manager_uid and workers else ()
    return LinksLook(links, tuple(entry for entry in gaps if entry))


def sent_workers(spec: FleetSpec) -> tuple[Cluster, ...]:
    """The workers that MultiKueue sends jobs to."""
    queues = [queue for queue in spec.queues if queue.dispatch is Dispatch.MULTIKUEUE]
    chosen = {cluster.name: cluster for queue in queues for cluster in spec.selected(queue.clusters)}
    return tuple(cluster for cluster in chosen.values() if cluster.role is Role.WORKER)


def native_workers(spec: FleetSpec) -> tuple[Cluster, ...]:
    """All others, where a MultiKueueConfig is written by hand: how the manager logs in there is nobody's business."""
    is_written = any(entry.manifest["kind"] == "MultiKueueConfig" for entry in spec.objects)
    sent = sent_workers(spec)
    others = (cluster for cluster in spec.clusters if cluster.role is Role.WORKER and cluster not in sent)
    return tuple(others) if is_written else ()


def linked_workers(spec: FleetSpec, leavers: Leavers | None) -> tuple[Cluster, ...]:
    """Those, and the ones on their way out whose jobs the manager still asks for: they need their logins to the end."""
    sent = sent_workers(spec)
    departed = [entry.cluster for entry in leavers.departed] if leavers else []
    sitting = {seat.cluster for seat in leavers.seats} if leavers else set()
    leaving = (cluster for cluster in (*spec.clusters, *departed) if cluster.name in sitting)
    return (*sent, *(cluster for cluster in leaving if cluster not in sent))


def ask_permissions(port: ClusterPort, wanted: Iterable[Permission]) -> tuple[Permission, ...]:
    """Those that the server does not deny: one question each, or one for all where everything is allowed."""
    if _may(port, EVERYTHING):
        return tuple(wanted)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        permissions = tuple(wanted)
        answers = pool.map(lambda permission: _may(port, permission), permissions)
        return tuple(permission for permission, answer in zip(permissions, answers, strict=True) if answer)


def _may(port: ClusterPort, permission: Permission) -> bool:
    plural, _, subresource = permission.plural.partition("/")
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": permission.namespace,
    }
    body = {"apiVersion": AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    review = _try(lambda: port.post(ACCESS_REVIEW, body))
    return review is None or at(review, "status", "allowed") is True


def _uid(port: ClusterPort) -> str:
    return as_text(at(_try(lambda: port.get(IDENTITY)), "metadata", "uid"))


def _settings(manager: Cluster, port: ClusterPort) -> _Settings:
    """What the running Kueue was told; what the fleet says of it, where that cannot be seen."""
    namespace = manager.kueue.namespace
    try:
        found = _configuration(port, namespace)
        # As it will be: what the fleet enables, its workers have to know before.
        settings, running = expected_settings(manager, found), running_settings(found)
    except (ClusterError, ConfigurationError) as error:
        if at(manager.kueue.configuration, "integrations", "frameworks"):
            return _Settings(assumed_settings(manager.kueue.configuration))
        why = f"{error.problem if isinstance(error, ClusterError) else error}; or name them in spec.kueue.config"
        return _Settings(gap=Gap(manager.name, "the frameworks of Kueue", why))
    deployment = _try(lambda: port.find(_deployment_path(namespace)))
    has_gate = any(f"{QUOTA_AUTOMATION}=true" in argument for argument in arguments_of(deployment))
    return _Settings(replace(settings, has_quota_automation=settings.has_quota_automation or has_gate), running)


def expected_settings(cluster: Cluster, config_map: Manifest) -> Settings:
    """With what the fleet sets, unless Kueue did not start with it: nobody tries that again."""
    text, patch = _text(config_map), {} if cluster.suspend else cluster.kueue.configuration
    then = write_configuration(patched(read_configuration(text), patch))
    failed, _, _ = _annotation(config_map, FAILED).partition(" ")
    return read_settings(text, {} if failed == short_name(then) else patch)


def running_settings(config_map: Manifest) -> Settings:
    """By the text that is there and, while a rollout is open, by the one before it: either may be in effect."""
    now, previous = read_settings(_text(config_map)), _annotation(config_map, PREVIOUS)
    return united(now, read_settings(previous)) if previous else now


def _configuration(port: ClusterPort, namespace: str) -> Manifest:
    found = find_configuration(port, namespace)
    if found is None:
        raise ConfigurationError(f"no ConfigMap in {namespace} has the key {CONFIG_KEY}")
    return found


def _text(config_map: Manifest) -> str:
    return as_text(at(config_map, "data", CONFIG_KEY))


def _annotation(config_map: Manifest, name: str) -> str:
    return as_text(at(config_map, "metadata", "annotations", name))


def _credential(worker: Cluster, manager: Cluster | None, ports: Ports) -> _Credential:
    """The Secret on the manager, and what the worker says of the token in it."""
    if manager is None or worker.credentials.cluster_profile:
        return _Credential(worker.name, None)
    secrets = f"/api/v1/namespaces/{manager.kueue.namespace}/secrets"
    try:
        seen = read_credential(ports[manager.name].find(f"{secrets}/{worker.kubeconfig_secret}"))
        if seen.is_missing and not worker.credentials.is_issued:
            former = ports[manager.name].find(f"{secrets}/{worker.issued_secret}")
            seen = replace(seen, is_replacing=former is not None)
    except ClusterError as error:
        what = f"Secret {worker.kubeconfig_secret}"
        return _Credential(worker.name, None, Gap(manager.name, what, error.problem))
    port = ports.get(worker.name)
    return _Credential(worker.name, _reviewed(seen, port, worker.kueue.namespace) if port else seen)


def _reviewed(seen: SeenCredential, port: ClusterPort, namespace: str) -> SeenCredential:
    """One question for both: who is let in, and what he may do."""
    if seen.token is None:
        return seen
    try:
        answer = port.post_as(seen.token.text, RULES_REVIEW, _review(namespace))
    except ClusterError as error:
        is_accepted = False if error.status == UNAUTHORIZED else (True if error.status else None)
        return replace(seen, token=replace(seen.token, is_accepted=is_accepted))
    rules = _rules(answer) if _has_all_rules(answer) else None
    return replace(seen, token=replace(seen.token, is_accepted=True), rules=rules)


def _facts(cluster: Cluster, ports: Ports, *, is_worker: bool) -> ClusterFacts | None:
    port = ports.get(cluster.name)
    if port is None:
        return None
    namespace = cluster.kueue.namespace
    review = _try(lambda: port.post(RULES_REVIEW, _review(namespace)))
    if review is None:
        # Not worth two more waits: whoever does not answer this answers nothing.
        return None
    deployment = _try(lambda: port.find(_deployment_path(namespace)))
    roles = _try(lambda: {"items": list(port.list(ROLES, f"{ROLE_LABEL}=true"))}) if is_worker else None
    frameworks = _frameworks(cluster, port) if is_worker else None
    origins = dict(_origins(as_list(at(roles, "items"))))
    return ClusterFacts(release_of(deployment), _rules(review), origins, frameworks, _has_all_rules(review))


def _frameworks(worker: Cluster, port: ClusterPort) -> tuple[str, ...] | None:
    try:
        return expected_settings(worker, _configuration(port, worker.kueue.namespace)).frameworks
    except (ClusterError, ConfigurationError):
        return None


def _try(ask: Callable[[], Manifest | None]) -> Manifest | None:
    """An answer that helps where there is one, and is missed by nobody where there is none."""
    try:
        return ask()
    except ClusterError:
        return None


def _review(namespace: str) -> Manifest:
    return {
        "apiVersion": AUTHORIZATION,
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }


def _rules(review: Manifest) -> tuple[Manifest, ...]:
    return tuple(as_list(at(review, "status", "resourceRules")))


def _has_all_rules(review: Manifest) -> bool:
    """False where the server knows of rules that it cannot list, because others decide about them."""
    return not at(review, "status", "incomplete")


def _origins(roles: Iterable[Manifest]) -> Iterable[tuple[str, str]]:
    for role in roles:
        if origin := as_text(at(role, "metadata", "annotations", ORIGIN)):
            yield role["metadata"]["name"], origin


def _deployment_path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{DEPLOYMENT}"
