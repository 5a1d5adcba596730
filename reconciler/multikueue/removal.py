"""Members of MultiKueueConfigs: which workers a config has, and when a removed worker may leave it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.structure import largest_count
from reconciler.kueue.workloads import holding_count
from reconciler.multikueue.model import ConfigMembership, RemovedCluster, WorkerRemovals
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.render.model import DesiredObject, Leaving, desired_object, kueue_manifest, offline_api, without_empty
from reconciler.render.queues import DRAIN
from reconciler.spec.enums import Dispatch, Drain, Role, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec, Queue
from reconciler.spec.places import workers_of

_HOLDING = "it is being removed, and takes no new jobs"
# Prefixes of labels and annotations that do not come from a document of the fleet.
_FOREIGN_MARKS = ("applyset.kubernetes.io/", "kubectl.kubernetes.io/", "kfleet.dev/")


def check_name(queue: Queue) -> str:
    """The name of a queue's AdmissionCheck and of its MultiKueueConfig."""
    return multikueue_check(queue.name)


def multikueue_check(queue: str) -> str:
    return f"multikueue-{queue}"


def config_members(spec: FleetSpec, queue: Queue, removals: WorkerRemovals | None) -> tuple[Cluster, ...]:
    """The desired members: workers that are not drained. If all are drained, one stays: Kueue requires one.

    If the removals could not be observed, drained workers stay as well: it is not known what runs there.
    """
    workers = workers_of(spec, queue)
    if removals is None or removals.problem:
        return workers
    active = tuple(worker for worker in workers if not worker.is_drained)
    members = {membership.cluster for membership in removals.memberships if membership.config == check_name(queue)}
    return active or (*(worker for worker in workers if worker.name in members), *workers)[:1]


def required_memberships(spec: FleetSpec) -> Mapping[str, frozenset[str]]:
    """The clusters that each config keeps whatever is observed: desired members that are not drained."""
    drained = {cluster.name for cluster in spec.clusters if cluster.is_drained}
    return {config: frozenset(clusters) - drained for config, clusters in _wanted_memberships(spec, None)}


def still_here(spec: FleetSpec, removals: WorkerRemovals | None) -> WorkerRemovals:
    """The removals that must wait: memberships to keep, and clusters to leave unchanged."""
    if removals is None or removals.problem:
        return removals or WorkerRemovals()
    wanted = dict(_wanted_memberships(spec, removals))
    in_spec = {cluster.name for cluster in spec.clusters}
    leaving = [
        membership for membership in removals.memberships if membership.cluster not in wanted.get(membership.config, ())
    ]
    stuck = [
        membership for membership in leaving if not _may_leave(membership, is_in_spec=membership.cluster in in_spec)
    ]
    # A config that is no longer desired is deleted as a whole. Until then Kueue queries all of its members, and loses
    # track of its jobs if one of them rejects the login.
    whole = {
        membership.config
        for membership in leaving
        if membership.config not in wanted and (membership in stuck or membership.is_busy)
    }
    memberships = tuple(membership for membership in leaving if membership in stuck or membership.config in whole)
    members = {membership.cluster for membership in memberships}
    return WorkerRemovals(
        memberships,
        tuple(
            removed
            for removed in removals.removed
            if not removed.problem and (removed.cluster.name in members or any(map(holding_count, removed.queues)))
        ),
        members=removals.members,
    )


def drained_first(spec: FleetSpec, removals: WorkerRemovals | None) -> FleetSpec:
    """The spec with former workers drained until they have left the manager's configs.

    Their queues are desired there and active: otherwise the manager would keep dispatching jobs, and they would never
    leave.
    """
    members = {membership.cluster for membership in removals.memberships} if removals else set()
    former = {one.name for one in spec.clusters if one.role is Role.STANDALONE and not one.is_drained} & members
    clusters = (replace(one, drain=Drain.WAIT) if one.name in former else one for one in spec.clusters)
    return replace(spec, clusters=tuple(clusters)) if former else spec


def staying_in(config: str, waiting: WorkerRemovals) -> tuple[ClusterName, ...]:
    """The clusters that a config keeps although they are not desired members."""
    return tuple(membership.cluster for membership in waiting.memberships if membership.config == config)


def with_room(config: str, wanted: Sequence[str], waiting: WorkerRemovals, manager: Cluster) -> tuple[str, ...]:
    """The desired members that fit into a config with the ones that cannot leave yet. Current members come first.

    With one too many, Kueue would reject the config, and then no worker could leave it either.
    """
    staying = staying_in(config, waiting)
    if not staying:
        return tuple(wanted)
    most = largest_count("MultiKueueConfig", "spec.clusters", offline_api(manager).version)
    room = len(wanted) if most is None else max(most - len(staying), 0)
    first = sorted(wanted, key=lambda name: (config, name) not in waiting.members)
    taken = frozenset(first[:room])
    return tuple(name for name in wanted if name in taken)


def held_for(waiting: WorkerRemovals) -> str:
    """Why a config must stay unchanged; empty if it may change."""
    return f"the members of the live config were not observed ({waiting.problem})" if waiting.problem else ""


def held_queues(spec: FleetSpec, waiting: WorkerRemovals, made: Iterable[DesiredObject]) -> Iterator[DesiredObject]:
    """Live queues that are no longer desired, stopped, while their workloads still run."""
    refs = {entry.ref for entry in made}
    for cluster, queue in _queues_behind(spec, waiting):
        entry = desired_object(cluster, _held(queue), spec.fleet.document, _HOLDING)
        if entry.ref not in refs:
            refs.add(entry.ref)
            yield entry


def leaving_of(
    waiting: WorkerRemovals, held: Iterable[DesiredObject], wanted: Iterable[DesiredObject]
) -> tuple[Leaving, ...]:
    """What each removed worker waits for. `held` are queues kept for it; `wanted` objects may contain more of them."""
    refs = [entry.ref for entry in held]
    takers = {entry.ref for entry in wanted if _takes_jobs(entry)} if waiting.memberships else set()
    removed = {entry.cluster.name: entry for entry in waiting.removed}
    return tuple(
        Leaving(
            name,
            _why(
                [membership for membership in waiting.memberships if membership.cluster == name],
                removed.get(name),
                takers,
            ),
            frozenset(ref.name for ref in refs if ref.cluster == name),
            is_whole=name in removed,
        )
        for name in dict.fromkeys((*(membership.cluster for membership in waiting.memberships), *removed))
    )


def _wanted_memberships(spec: FleetSpec, removals: WorkerRemovals | None) -> Iterator[tuple[str, Sequence[str]]]:
    for queue in spec.queues:
        if queue.dispatch is Dispatch.MULTIKUEUE:
            yield check_name(queue), [worker.name for worker in config_members(spec, queue, removals)]
    for entry in spec.objects:
        if entry.manifest["kind"] == "MultiKueueConfig":
            clusters = as_list(at(entry.manifest, "spec", "clusters"))
            yield entry.manifest["metadata"]["name"], [as_text(cluster) for cluster in clusters]


def _may_leave(membership: ConfigMembership, *, is_in_spec: bool) -> bool:
    return membership.running == 0 and (membership.is_held or (bool(membership.problem) and not is_in_spec))


def _queues_behind(spec: FleetSpec, waiting: WorkerRemovals) -> Iterator[tuple[Cluster, Manifest]]:
    for removed in waiting.removed:
        yield from ((removed.cluster, queue) for queue in removed.queues)
    clusters = {cluster.name: cluster for cluster in spec.clusters}
    for membership in waiting.memberships:
        if membership.cluster in clusters:
            yield from ((clusters[membership.cluster], queue) for queue in membership.queues)


def _held(queue: Manifest) -> dict[str, Any]:
    metadata = queue["metadata"]
    may_evict = as_map(metadata.get("annotations")).get(DRAIN) == "true"
    is_evicting = may_evict or at(queue, "spec", "stopPolicy") == StopPolicy.HOLD_AND_DRAIN.value
    policy = StopPolicy.HOLD_AND_DRAIN if is_evicting else StopPolicy.HOLD
    manifest = kueue_manifest("ClusterQueue", metadata["name"], {**queue["spec"], "stopPolicy": policy.value})
    marks = {name: own_marks(as_map(metadata.get(name))) for name in ("labels", "annotations")}
    return {**manifest, "metadata": {**manifest["metadata"], **without_empty(marks)}}


def own_marks(marks: Manifest) -> dict[str, Any]:
    return {name: value for name, value in marks.items() if name == DRAIN or not name.startswith(_FOREIGN_MARKS)}


def _takes_jobs(entry: DesiredObject) -> bool:
    policy = at(entry.manifest, "spec", "stopPolicy") or StopPolicy.NONE.value
    return entry.ref.kind == "ClusterQueue" and policy == StopPolicy.NONE.value


def _why(memberships: Sequence[ConfigMembership], removed: RemovedCluster | None, takers: Collection[Ref]) -> str:
    configs = ", ".join(membership.config for membership in memberships)
    then = (
        f"it leaves {configs} when nothing runs there any longer"
        if memberships
        else "then the fleet's objects there are deleted"
    )
    return f"{_state(memberships, removed) or _stopping(memberships, takers)}; {then}"


def _state(memberships: Sequence[ConfigMembership], removed: RemovedCluster | None) -> str:
    if any(membership.running is None for membership in memberships):
        return "what runs there could not be observed on the manager"
    if running := sum(membership.running or 0 for membership in memberships):
        return f"{running} of the manager's workloads still run there"
    if problem := next((membership.problem for membership in memberships if membership.problem), ""):
        return f"it cannot be observed, so it is not known what runs there ({problem})"
    if count := sum(map(holding_count, removed.queues if removed else ())):
        return f"{count} workloads still hold quota there"
    if memberships and all(membership.is_held for membership in memberships):
        return "nothing runs there, but the manager still has jobs for other workers that leave with it"
    return ""


def _stopping(memberships: Sequence[ConfigMembership], takers: Collection[Ref]) -> str:
    """Why the queues are not stopped yet. An active queue in the spec is not stopped for a worker that leaves."""
    queues = {
        (membership.cluster, queue["metadata"]["name"]) for membership in memberships for queue in membership.queues
    }
    open_ones = sorted(ref.name for ref in takers if (ref.cluster, ref.name) in queues)
    if open_ones:
        way_out = "set drain: true on the Cluster, or stopPolicy: Hold"
        return f"its queue {', '.join(open_ones)} is in the spec and takes jobs: {way_out}"
    return "its queues are being stopped, and the next run continues"
