"""Looks at what keeps workers from leaving: their seats in live configs, and what still runs behind each of them.

A fleet from which nobody is leaving costs one request.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.upgrade import to_canonical
from reconciler.leavers import Departed, Leavers, Seat
from reconciler.objects import ClusterName, Manifest
from reconciler.observations.workloads import RemoteLook, SentWorkload, is_in_use, is_stopped, read_remote, read_sent
from reconciler.ports import ClusterPort
from reconciler.spec.model import Cluster

MULTIKUEUE = f"{GROUP}/multikueue"
UNKNOWN_WAY = "the fleet does not know any more how to reach it"
_VERSIONS = ("v1beta2", "v1beta1")

Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """`firm` are the clusters that each config keeps for sure; `members` selects the fleet's own objects on a cluster.

    `lost` says why there is no connection to a cluster.
    """

    manager: ClusterName
    firm: Mapping[str, frozenset[str]]
    members: Mapping[ClusterName, str]
    departed: tuple[Cluster, ...] = ()
    lost: Mapping[ClusterName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Manager:
    """What leads from the manager's configs to workloads: the queues of each config, and their LocalQueues.

    `busy` are queues whose quota is held by workloads.
    """

    queues: Mapping[str, frozenset[str]]
    busy: frozenset[str]
    local_queues: Mapping[Address, str]
    sent: tuple[SentWorkload, ...]


def observe_leavers(question: Question, ports: Mapping[ClusterName, ClusterPort]) -> Leavers:
    port = ports.get(question.manager)
    if port is None:
        return Leavers(problem=question.lost.get(question.manager, "no connection"))
    try:
        configs = [config for config in _list(port, "MultiKueueConfig") if _concerns(config, question)]
    except ClusterError as error:
        # Another look at them may well succeed: it would find leavers whom nobody has asked what they wait for.
        return Leavers(problem=error.problem)
    seats = [seat for config in configs for seat in _open_seats(config, question.firm)]
    names = {seat.cluster for seat in seats} | {cluster.name for cluster in question.departed}
    if not names:
        return Leavers()
    manager = _look_at_manager(port)
    remotes = _look_at_workers(sorted(names), question, ports)
    return Leavers(
        tuple(_judged(seat, manager, remotes[seat.cluster]) for seat in seats),
        tuple(_departed(cluster, remotes[cluster.name]) for cluster in question.departed),
        sitting=frozenset((config["metadata"]["name"], name) for config in configs for name in _clusters(config)),
    )


def _concerns(config: Manifest, question: Question) -> bool:
    """Whether the fleet has written a config, or is about to take it over."""
    return config["metadata"]["name"] in question.firm or _is_member(config, question.members[question.manager])


def _open_seats(config: Manifest, firm: Mapping[str, frozenset[str]]) -> Iterable[Seat]:
    name = config["metadata"]["name"]
    for cluster in _clusters(config):
        if cluster not in firm.get(name, ()):
            yield Seat(name, ClusterName(cluster))


def _clusters(config: Manifest) -> list[str]:
    return [as_text(cluster) for cluster in as_list(at(config, "spec", "clusters"))]


def _look_at_manager(port: ClusterPort) -> _Manager | None:
    try:
        checks = {
            check["metadata"]["name"]: as_text(at(check, "spec", "parameters", "name"))
            for check in _list(port, "AdmissionCheck")
            if at(check, "spec", "controllerName") == MULTIKUEUE
        }
        queues = _list(port, "ClusterQueue")
        return _Manager(
            _queues_of_configs(queues, checks),
            frozenset(queue["metadata"]["name"] for queue in queues if is_in_use(queue)),
            _local_queues(_list(port, "LocalQueue")),
            tuple(read_sent(_list(port, "Workload"))),
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
    names: Iterable[ClusterName], question: Question, ports: Mapping[ClusterName, ClusterPort]
) -> Mapping[ClusterName, RemoteLook]:
    def look(name: ClusterName) -> RemoteLook:
        port = ports.get(name)
        if port is None:
            return RemoteLook(problem=question.lost.get(name, UNKNOWN_WAY))
        try:
            # The queues first: whatever they let in before they were stopped is then among the workloads.
            queues = _list(port, "ClusterQueue")
            own = frozenset(queue["metadata"]["name"] for queue in queues if _is_member(queue, question.members[name]))
            local_queues = _local_queues(_list(port, "LocalQueue"))
            return read_remote(queues, own, local_queues, _list(port, "Workload"))
        except ClusterError as error:
            return RemoteLook(problem=error.problem)

    known = list(names)
    with ThreadPoolExecutor(len(known)) as pool:
        return dict(zip(known, pool.map(look, known), strict=True))


def _judged(seat: Seat, manager: _Manager | None, remote: RemoteLook) -> Seat:
    if manager is None:
        return Seat(seat.config, seat.cluster, problem=remote.problem)
    queues = manager.queues.get(seat.config, frozenset())
    queue_of = {entry.address: entry.queue for entry in manager.sent}
    here = {entry.address for entry in manager.sent if entry.cluster == seat.cluster and entry.queue in {*queues, ""}}
    # A copy whose workload the manager has forgotten may belong to any of its configs.
    there = {address for address in remote.reserving if queue_of.get(address, "") in {*queues, ""}}
    routes = {
        remote.local_queues[address]
        for address, queue in manager.local_queues.items()
        if queue in queues and address in remote.local_queues
    }
    passed = tuple(remote.queues[name] for name in sorted(routes) if name in remote.queues)
    # The manager's LocalQueues may be gone already: the fleet's queues have one name on both sides.
    own = sorted((routes | queues) & remote.own)
    return Seat(
        seat.config,
        seat.cluster,
        len(here | there),
        is_held=not remote.problem and all(is_stopped(queue) for queue in passed),
        queues=tuple(remote.queues[name] for name in own),
        problem=remote.problem,
        is_busy=bool(queues & manager.busy),
    )


def _departed(cluster: Cluster, remote: RemoteLook) -> Departed:
    return Departed(cluster, tuple(remote.queues[name] for name in sorted(remote.own)), remote.problem)


def _is_member(manifest: Manifest, selector: str) -> bool:
    label, _, value = selector.partition("=")
    return as_map(at(manifest, "metadata", "labels")).get(label) == value


def _list(port: ClusterPort, kind: str) -> tuple[Manifest, ...]:
    """All objects of a kind, as the newest version has them; none where the cluster does not know the kind."""
    plural = KIND_BY_NAME[kind].plural
    for version in _VERSIONS:
        try:
            found = tuple(port.list(f"/apis/{GROUP}/{version}/{plural}"))
        except ClusterError as error:
            if error.status == 404:
                continue
            raise
        return tuple(_canonical(entry, f"{GROUP}/{version}", kind) for entry in found)
    return ()


def _canonical(entry: Manifest, api_version: str, kind: str) -> Manifest:
    typed = {**entry, "apiVersion": api_version, "kind": kind}
    # What the server made of it is of interest here too.
    return {**to_canonical(typed).manifest, "metadata": entry["metadata"], "status": entry.get("status") or {}}
