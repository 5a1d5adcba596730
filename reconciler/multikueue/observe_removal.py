"""Observes workers that are being removed: which workloads still run there, by Workloads and queues."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reconciler.clients.protocols import ClusterClient, list_kueue
from reconciler.errors import ClusterError
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import ORIGIN, as_list, as_map, as_text, at
from reconciler.kueue.workloads import has_begun, has_condition, holding_count, is_stopped
from reconciler.multikueue.model import ORIGIN as ROLE_ORIGIN
from reconciler.multikueue.model import (
    ROLE_LABEL,
    ConfigMembership,
    FormerJobs,
    RemovedCluster,
    WorkerRemovals,
    role_name,
)
from reconciler.objects import ClusterName, Manifest
from reconciler.spec.model import Cluster

Address = tuple[str, str]
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
UNKNOWN_WAY = "the fleet no longer knows how to reach it"


@dataclass(frozen=True, slots=True)
class SentWorkload:
    """An unfinished workload of the manager: the queue that admitted it, and the cluster it was dispatched to."""

    address: Address
    queue: str
    cluster: str


@dataclass(frozen=True, slots=True)
class RemoteWorkloads:
    """A worker: its queues, those of the fleet (`own`), and active copies of the manager's workloads.

    `reserving` are copies that hold quota, or held it and still exist: these would start again.
    """

    queues: Mapping[str, Manifest] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    local_queues: Mapping[Address, str] = field(default_factory=dict)
    reserving: frozenset[Address] = frozenset()
    problem: str = ""


def read_sent(workloads: Iterable[Manifest]) -> Iterator[SentWorkload]:
    for workload in workloads:
        if not has_condition(workload, "Finished"):
            queue = as_text(at(workload, "status", "admission", "clusterQueue"))
            yield SentWorkload(_address(workload), queue, as_text(at(workload, "status", "clusterName")))


def read_remote(
    queues: Iterable[Manifest],
    own: frozenset[str],
    local_queues: Mapping[Address, str],
    workloads: Iterable[Manifest],
) -> RemoteWorkloads:
    reserving = frozenset(_address(entry) for entry in workloads if _is_reserving(entry, own, local_queues))
    return RemoteWorkloads({queue["metadata"]["name"]: queue for queue in queues}, own, local_queues, reserving)


def _is_reserving(workload: Manifest, queues: frozenset[str], local_queues: Mapping[Address, str]) -> bool:
    """Whether a workload is a copy from a manager that holds or held quota in one of these queues.

    Other copies belong to another manager.
    """
    if ORIGIN not in (at(workload, "metadata", "labels") or {}) or has_condition(workload, "Finished"):
        return False
    if has_condition(workload, "QuotaReserved") or has_condition(workload, "Admitted"):
        return as_text(at(workload, "status", "admission", "clusterQueue")) in {*queues, ""}
    way_in = (workload["metadata"]["namespace"], as_text(at(workload, "spec", "queueName")))
    return has_begun(workload) and local_queues.get(way_in) in queues


def count_copies(workloads: Iterable[Manifest]) -> int:
    """The number of unfinished copies from a manager."""
    return sum(
        ORIGIN in (at(entry, "metadata", "labels") or {}) and not has_condition(entry, "Finished")
        for entry in workloads
    )


def observe_former_jobs(fleet: str, manager: str, linked: Mapping[ClusterName, ClusterClient]) -> FormerJobs:
    """The jobs of a manager that the fleet had before, where nothing else of MultiKueue is observed.

    `manager` is the uid of the present manager, empty without one. `linked` are clusters with a ClusterRole of the
    fleet.
    """
    if not linked:
        return FormerJobs()
    with ThreadPoolExecutor(len(linked)) as pool:
        counts = pool.map(lambda client: _count_former(client, role_name(fleet), manager), linked.values())
        found = dict(zip(linked, counts, strict=True))
    uncounted = frozenset(name for name, count in found.items() if count is None)
    return FormerJobs({name: count for name, count in found.items() if count}, uncounted)


def _count_former(client: ClusterClient, role: str, manager: str) -> int | None:
    """The copies on a cluster that still has the role of another manager; None if that could not be read."""
    try:
        origins = [
            as_text(at(one, "metadata", "annotations", ROLE_ORIGIN))
            for one in client.list(ROLES, f"{ROLE_LABEL}=true")
            if one["metadata"]["name"] == role
        ]
        if all(manager and origin.endswith(f"@{manager}") for origin in origins):
            return 0
        return count_copies(list_canonical(client, "Workload", ORIGIN))
    except ClusterError:
        return None


def _address(manifest: Manifest) -> Address:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


@dataclass(frozen=True, slots=True)
class RemovalQuestion:
    """The inputs of the observation.

    `firm` are the clusters that each config keeps in any case. `members` are label selectors of the fleet's objects on
    each cluster. `lost` is why there is no connection to a cluster. `aliases` are names that lead to the API server of
    another name.
    """

    manager: ClusterName
    firm: Mapping[str, frozenset[str]]
    members: Mapping[ClusterName, str]
    removed: tuple[Cluster, ...] = ()
    lost: Mapping[ClusterName, str] = field(default_factory=dict)
    aliases: frozenset[ClusterName] = frozenset()


@dataclass(frozen=True, slots=True)
class _Manager:
    """The links from the manager's configs to workloads: the queues of each config, and their LocalQueues.

    `busy` are queues with workloads that hold quota.
    """

    queues: Mapping[str, frozenset[str]]
    busy: frozenset[str]
    local_queues: Mapping[Address, str]
    sent: tuple[SentWorkload, ...]


def observe_removals(question: RemovalQuestion, clients: Mapping[ClusterName, ClusterClient]) -> WorkerRemovals:
    client = clients.get(question.manager)
    if client is None:
        return WorkerRemovals(problem=question.lost.get(question.manager, "no connection"))
    try:
        configs = [config for config in list_canonical(client, "MultiKueueConfig") if _concerns(config, question)]
    except ClusterError as error:
        # A later list may succeed, but would find leaving workers whose workloads were not checked.
        return WorkerRemovals(problem=error.problem)
    memberships = [
        membership for config in configs for membership in _open_memberships(config, question.firm, question.aliases)
    ]
    names = {membership.cluster for membership in memberships} | {cluster.name for cluster in question.removed}
    if not names:
        return WorkerRemovals()
    manager = _look_at_manager(client)
    remotes = _look_at_workers(sorted(names), question, clients)
    return WorkerRemovals(
        tuple(_with_remote(membership, manager, remotes[membership.cluster]) for membership in memberships),
        tuple(_removed(cluster, remotes[cluster.name]) for cluster in question.removed),
        members=frozenset((config["metadata"]["name"], name) for config in configs for name in _clusters(config)),
    )


def _concerns(config: Manifest, question: RemovalQuestion) -> bool:
    """Whether the fleet owns a config, or is about to adopt it."""
    return config["metadata"]["name"] in question.firm or _is_member(config, question.members[question.manager])


def _open_memberships(
    config: Manifest, firm: Mapping[str, frozenset[str]], aliases: frozenset[ClusterName]
) -> Iterable[ConfigMembership]:
    name = config["metadata"]["name"]
    for cluster in _clusters(config):
        if cluster not in firm.get(name, ()) and cluster not in aliases:
            yield ConfigMembership(name, ClusterName(cluster))


def _clusters(config: Manifest) -> list[str]:
    return [as_text(cluster) for cluster in as_list(at(config, "spec", "clusters"))]


def _look_at_manager(client: ClusterClient) -> _Manager | None:
    try:
        checks = {
            check["metadata"]["name"]: as_text(at(check, "spec", "parameters", "name"))
            for check in list_canonical(client, "AdmissionCheck")
            if at(check, "spec", "controllerName") == MULTIKUEUE_CONTROLLER
        }
        queues = list_canonical(client, "ClusterQueue")
        return _Manager(
            _queues_of_configs(queues, checks),
            frozenset(queue["metadata"]["name"] for queue in queues if holding_count(queue)),
            _local_queues(list_canonical(client, "LocalQueue")),
            tuple(read_sent(list_canonical(client, "Workload"))),
        )
    except ClusterError:
        return None


def _queues_of_configs(queues: Iterable[Manifest], config_of_check: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for queue in queues:
        for check in as_list(at(queue, "spec", "admissionChecksStrategy", "admissionChecks")):
            config = config_of_check.get(as_text(at(check, "name")))
            if config:
                found.setdefault(config, set()).add(queue["metadata"]["name"])
    return {config: frozenset(names) for config, names in found.items()}


def _local_queues(manifests: Iterable[Manifest]) -> Mapping[Address, str]:
    return {
        (entry["metadata"]["namespace"], entry["metadata"]["name"]): as_text(at(entry, "spec", "clusterQueue"))
        for entry in manifests
    }


def _look_at_workers(
    names: Iterable[ClusterName], question: RemovalQuestion, clients: Mapping[ClusterName, ClusterClient]
) -> Mapping[ClusterName, RemoteWorkloads]:
    def look(name: ClusterName) -> RemoteWorkloads:
        client = clients.get(name)
        if client is None:
            return RemoteWorkloads(problem=question.lost.get(name, UNKNOWN_WAY))
        try:
            # List the queues first: workloads that they admitted before they were stopped are then in the later list.
            queues = list_canonical(client, "ClusterQueue")
            own = frozenset(queue["metadata"]["name"] for queue in queues if _is_member(queue, question.members[name]))
            local_queues = _local_queues(list_canonical(client, "LocalQueue"))
            return read_remote(queues, own, local_queues, list_canonical(client, "Workload"))
        except ClusterError as error:
            return RemoteWorkloads(problem=error.problem)

    known = list(names)
    with ThreadPoolExecutor(len(known)) as pool:
        return dict(zip(known, pool.map(look, known), strict=True))


def _with_remote(membership: ConfigMembership, manager: _Manager | None, remote: RemoteWorkloads) -> ConfigMembership:
    if manager is None:
        return ConfigMembership(membership.config, membership.cluster, problem=remote.problem)
    queues = manager.queues.get(membership.config, frozenset())
    queue_of = {entry.address: entry.queue for entry in manager.sent}
    here = {
        entry.address for entry in manager.sent if entry.cluster == membership.cluster and entry.queue in {*queues, ""}
    }
    # A copy whose workload no longer exists on the manager may belong to any of its configs.
    there = {address for address in remote.reserving if queue_of.get(address, "") in {*queues, ""}}
    routes = {
        remote.local_queues[address]
        for address, queue in manager.local_queues.items()
        if queue in queues and address in remote.local_queues
    }
    passed = tuple(remote.queues[name] for name in sorted(routes) if name in remote.queues)
    # The manager's LocalQueues may already be gone: the fleet's queues have the same name on both sides.
    own = sorted((routes | queues) & remote.own)
    return ConfigMembership(
        membership.config,
        membership.cluster,
        len(here | there),
        is_held=not remote.problem and all(is_stopped(queue) for queue in passed),
        queues=tuple(remote.queues[name] for name in own),
        problem=remote.problem,
        is_busy=bool(queues & manager.busy),
    )


def _removed(cluster: Cluster, remote: RemoteWorkloads) -> RemovedCluster:
    return RemovedCluster(cluster, tuple(remote.queues[name] for name in sorted(remote.own)), remote.problem)


def _is_member(manifest: Manifest, selector: str) -> bool:
    label, _, value = selector.partition("=")
    return as_map(at(manifest, "metadata", "labels")).get(label) == value


def list_canonical(client: ClusterClient, kind: str, selector: str = "") -> tuple[Manifest, ...]:
    """All objects of a kind, optionally by selector, in the form of the canonical version."""
    return tuple(_canonical(entry) for entry in list_kueue(client, kind, selector))


def _canonical(entry: Manifest) -> Manifest:
    # The conversion drops metadata and status, which are needed here too.
    return {**to_canonical(entry).manifest, "metadata": entry["metadata"], "status": entry.get("status") or {}}
