"""Observes the manager's Kueue, the credentials of its workers, and the permissions of kfleet on each cluster."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import (
    CONFIG_KEY,
    QUOTA_AUTOMATION,
    ConfigurationError,
    KueueSettings,
    assumed_settings,
    patched,
    read_configuration,
    read_settings,
    united,
    write_configuration,
)
from reconciler.kueue.reading import ORIGIN as COPIES
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue_config.model import FAILED, PREVIOUS, short_name
from reconciler.kueue_config.observe import DEPLOYMENT, arguments_of, find_configuration, release_of
from reconciler.multikueue.model import (
    ORIGIN,
    ROLE_LABEL,
    ClusterFacts,
    Links,
    Permission,
    SeenCredential,
    WorkerRemovals,
    read_credential,
    role_name,
)
from reconciler.multikueue.observe_removal import ROLES, count_copies, list_canonical
from reconciler.objects import IDENTITY, ClusterName, Gap, Manifest
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.model import Cluster, FleetSpec

AUTHORIZATION = "authorization.k8s.io/v1"
RULES_REVIEW = f"/apis/{AUTHORIZATION}/selfsubjectrulesreviews"
ACCESS_REVIEW = f"/apis/{AUTHORIZATION}/selfsubjectaccessreviews"
EVERYTHING = Permission("*", "*", "*")
UNAUTHORIZED = 401
_PARALLEL = 16

Ports = Mapping[ClusterName, ClusterClient]


@dataclass(frozen=True, slots=True)
class ObservedLinks:
    """The links, and the gaps of the observation. A fleet without MultiKueue has no links."""

    links: Links | None = None
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class _Credential:
    worker: ClusterName
    seen: SeenCredential | None
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of the manager's Kueue: the future ones, and those of the running Kueue."""

    settings: KueueSettings | None = None
    running: KueueSettings | None = None
    gap: Gap | None = None


def observe_links(
    spec: FleetSpec,
    clients: Ports,
    removals: WorkerRemovals | None = None,
    rotations: frozenset[ClusterName] = frozenset(),
    *,
    is_thorough: bool = False,
    now: datetime | None = None,
) -> ObservedLinks:
    """Observe all clusters concurrently with a few requests each; none without MultiKueue, unless `is_thorough`."""
    workers, manager = linked_workers(spec, removals), spec.manager
    everyone = (*workers, *native_workers(spec))
    if not (everyone and manager) and not is_thorough:
        return ObservedLinks()
    client = clients.get(manager.name) if manager else None
    with ThreadPoolExecutor(_PARALLEL) as pool:
        settings = pool.submit(_settings, manager, client) if manager and client and everyone else None
        uid = pool.submit(_uid, client) if client else None
        facts = pool.map(
            lambda cluster: _facts(cluster, clients, is_worker=cluster in everyone, is_manager=cluster is manager),
            spec.clusters,
        )
        credentials = list(pool.map(lambda worker: _credential(worker, manager, clients), workers if client else ()))
        known = {cluster.name: seen for cluster, seen in zip(spec.clusters, facts, strict=True) if seen}
    found = settings.result() if settings else _Settings()
    manager_uid = uid.result() if uid else ""
    known = {name: _with_former(one, clients[name], spec.fleet.name, manager_uid) for name, one in known.items()}
    links = Links(
        now=now or datetime.now(UTC),
        manager_uid=manager_uid,
        settings=found.settings if manager_uid else None,
        endpoints={name: one.endpoint for name, one in clients.items()},
        credentials={entry.worker: entry.seen for entry in credentials if entry.seen is not None},
        rotations=rotations,
        facts=known,
        running=found.running,
        uncounted=_uncounted((*everyone, *([manager] if manager else [])), known, manager_uid),
    )
    # An unreachable manager is already a gap, and one is enough. Only the roles on workers depend on its settings.
    gaps = (found.gap, *(one.gap for one in credentials)) if manager_uid and workers else ()
    return ObservedLinks(links, tuple(entry for entry in gaps if entry))


def sent_workers(spec: FleetSpec) -> tuple[Cluster, ...]:
    """The workers to which MultiKueue dispatches jobs."""
    queues = [queue for queue in spec.queues if queue.dispatch is Dispatch.MULTIKUEUE]
    chosen = {cluster.name: cluster for queue in queues for cluster in spec.selected(queue.clusters)}
    return tuple(cluster for cluster in chosen.values() if cluster.role is Role.WORKER)


def native_workers(spec: FleetSpec) -> tuple[Cluster, ...]:
    """All other workers, if the fleet has a native MultiKueueConfig. kfleet does not manage the logins to these."""
    is_written = any(entry.manifest["kind"] == "MultiKueueConfig" for entry in spec.objects)
    sent = sent_workers(spec)
    others = (cluster for cluster in spec.clusters if cluster.role is Role.WORKER and cluster not in sent)
    return tuple(others) if is_written else ()


def linked_workers(spec: FleetSpec, removals: WorkerRemovals | None) -> tuple[Cluster, ...]:
    """The workers of MultiKueue, and removed ones with jobs of the manager: they need their logins to the end."""
    sent = sent_workers(spec)
    removed = [entry.cluster for entry in removals.removed] if removals else []
    members = {membership.cluster for membership in removals.memberships} if removals else set()
    leaving = (cluster for cluster in (*spec.clusters, *removed) if cluster.name in members)
    return (*sent, *(cluster for cluster in leaving if cluster not in sent))


def ask_permissions(client: ClusterClient, wanted: Iterable[Permission]) -> tuple[Permission, ...]:
    """The permissions that the API server does not deny: one review each, or one for all if everything is allowed."""
    if _may(client, EVERYTHING):
        return tuple(wanted)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        permissions = tuple(wanted)
        answers = pool.map(lambda permission: _may(client, permission), permissions)
        return tuple(permission for permission, answer in zip(permissions, answers, strict=True) if answer)


def _may(client: ClusterClient, permission: Permission) -> bool:
    plural, _, subresource = permission.plural.partition("/")
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": permission.namespace,
    }
    body = {"apiVersion": AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    review = _try(lambda: client.post(ACCESS_REVIEW, body))
    return review is None or at(review, "status", "allowed") is True


def _uid(client: ClusterClient) -> str:
    return as_text(at(_try(lambda: client.get(IDENTITY)), "metadata", "uid"))


def _settings(manager: Cluster, client: ClusterClient) -> _Settings:
    """The settings by Kueue's Configuration in the cluster, or by the spec if that cannot be read."""
    namespace = manager.kueue.namespace
    try:
        found = _configuration(client, namespace)
        # The future settings: workers must serve the frameworks before the fleet enables them.
        settings, running = expected_settings(manager, found), running_settings(found)
    except (ClusterError, ConfigurationError) as error:
        if at(manager.kueue.configuration, "integrations", "frameworks"):
            return _Settings(assumed_settings(manager.kueue.configuration))
        why = f"{error.problem if isinstance(error, ClusterError) else error}; or set them in spec.kueue.config"
        return _Settings(gap=Gap(manager.name, "the frameworks of Kueue", why))
    deployment = _try(lambda: client.find(_deployment_path(namespace)))
    has_gate = any(f"{QUOTA_AUTOMATION}=true" in argument for argument in arguments_of(deployment))
    return _Settings(replace(settings, has_quota_automation=settings.has_quota_automation or has_gate), running)


def expected_settings(cluster: Cluster, config_map: Manifest) -> KueueSettings:
    """The settings with the fleet's patch, unless Kueue did not start with it: kfleet does not retry that."""
    text, patch = _text(config_map), {} if cluster.suspend else cluster.kueue.configuration
    then = write_configuration(patched(read_configuration(text), patch))
    failed, _, _ = _annotation(config_map, FAILED).partition(" ")
    return read_settings(text, {} if failed == short_name(then) else patch)


def running_settings(config_map: Manifest) -> KueueSettings:
    """The settings of the current text and, during a rollout, of the previous one: either may be in effect."""
    now, previous = read_settings(_text(config_map)), _annotation(config_map, PREVIOUS)
    return united(now, read_settings(previous)) if previous else now


def _configuration(client: ClusterClient, namespace: str) -> Manifest:
    found = find_configuration(client, namespace)
    if found is None:
        raise ConfigurationError(f"no ConfigMap in {namespace} has the key {CONFIG_KEY}")
    return found


def _text(config_map: Manifest) -> str:
    return as_text(at(config_map, "data", CONFIG_KEY))


def _annotation(config_map: Manifest, name: str) -> str:
    return as_text(at(config_map, "metadata", "annotations", name))


def _credential(worker: Cluster, manager: Cluster | None, clients: Ports) -> _Credential:
    """The Secret on the manager, with the worker's review of the token in it."""
    if manager is None or worker.credentials.cluster_profile:
        return _Credential(worker.name, None)
    secrets = f"/api/v1/namespaces/{manager.kueue.namespace}/secrets"
    try:
        seen = read_credential(clients[manager.name].find(f"{secrets}/{worker.kubeconfig_secret}"))
        if seen.is_missing and not worker.credentials.is_issued:
            former = clients[manager.name].find(f"{secrets}/{worker.issued_secret}")
            seen = replace(seen, is_replacing=former is not None)
    except ClusterError as error:
        what = f"Secret {worker.kubeconfig_secret}"
        return _Credential(worker.name, None, Gap(manager.name, what, error.problem))
    client = clients.get(worker.name)
    return _Credential(worker.name, _reviewed(seen, client, worker.kueue.namespace) if client else seen)


def _reviewed(seen: SeenCredential, client: ClusterClient, namespace: str) -> SeenCredential:
    """One request reviews both: whether the worker accepts the token, and its permissions."""
    if seen.token is None:
        return seen
    try:
        answer = client.post_as(seen.token.text, RULES_REVIEW, _review(namespace))
    except ClusterError as error:
        is_accepted = False if error.status == UNAUTHORIZED else (True if error.status else None)
        return replace(seen, token=replace(seen.token, is_accepted=is_accepted))
    rules = _rules(answer) if _has_all_rules(answer) else None
    return replace(seen, token=replace(seen.token, is_accepted=True), rules=rules)


def _with_former(facts: ClusterFacts, client: ClusterClient, fleet: str, manager_uid: str) -> ClusterFacts:
    """Count jobs of another manager, if the fleet's role was created for another one: it may have been replaced."""
    _, _, former = facts.origins.get(role_name(fleet), "").partition("@")
    if not (former and manager_uid) or former == manager_uid:
        return facts
    try:
        return replace(facts, former_jobs=count_copies(list_canonical(client, "Workload", COPIES)))
    except ClusterError:
        return replace(facts, former_jobs=None)


def _uncounted(
    linked: Iterable[Cluster], known: Mapping[ClusterName, ClusterFacts], manager_uid: str
) -> frozenset[ClusterName]:
    """Where it could not be read whether another manager has jobs."""
    return frozenset(
        one.name for one in linked if not manager_uid or one.name not in known or not known[one.name].has_origins
    )


def _facts(cluster: Cluster, clients: Ports, *, is_worker: bool, is_manager: bool) -> ClusterFacts | None:
    client = clients.get(cluster.name)
    if client is None:
        return None
    namespace = cluster.kueue.namespace
    review = _try(lambda: client.post(RULES_REVIEW, _review(namespace)))
    if review is None:
        # Skip the other requests: a server that does not respond to this one will not respond to them.
        return None
    deployment = _try(lambda: client.find(_deployment_path(namespace)))
    # A manager has no such roles, unless it was a worker before, and kfleet may lack permission to list them.
    has_roles = is_worker or (is_manager and _has_copies(client))
    roles = _try(lambda: {"items": list(client.list(ROLES, f"{ROLE_LABEL}=true"))}) if has_roles else {}
    frameworks = _frameworks(cluster, client) if is_worker else None
    return ClusterFacts(
        release=release_of(deployment),
        rules=_rules(review),
        origins=dict(_origins(as_list(at(roles, "items")))),
        frameworks=frameworks,
        has_all_rules=_has_all_rules(review),
        has_origins=roles is not None,
    )


def _has_copies(client: ClusterClient) -> bool:
    """Whether there may be copies of another manager."""
    try:
        return bool(list_canonical(client, "Workload", COPIES))
    except ClusterError:
        return True


def _frameworks(worker: Cluster, client: ClusterClient) -> tuple[str, ...] | None:
    try:
        return expected_settings(worker, _configuration(client, worker.kueue.namespace)).frameworks
    except (ClusterError, ConfigurationError):
        return None


def _try(ask: Callable[[], Manifest | None]) -> Manifest | None:
    """An optional request: None on any error."""
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
    """Whether the list is complete; false if another authorizer has rules that the API server cannot list."""
    return not at(review, "status", "incomplete")


def _origins(roles: Iterable[Manifest]) -> Iterable[tuple[str, str]]:
    for role in roles:
        if origin := as_text(at(role, "metadata", "annotations", ORIGIN)):
            yield role["metadata"]["name"], origin


def _deployment_path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{DEPLOYMENT}"
