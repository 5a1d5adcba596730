"""Which clusters: the home of the fleet, the workers and clusters of a queue, and those of a document that names none.

Decision: a native Cohort, ResourceFlavor or WorkloadPriorityClass that names no clusters goes to every cluster with a
queue that uses it, instead of the manager alone: there it would do nothing, and the workers would lack it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.errors import SpecError
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import ClusterName
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.files import Document, FleetFiles, is_inside
from reconciler.spec.model import Cluster, Flavor, FleetSpec, NativeObject, Queue
from reconciler.spec.selectors import Targets, parse_targets
from reconciler.spec.settings import check_of
from reconciler.text import quote_value

FOLLOWERS = ("Cohort", "ResourceFlavor", "WorkloadPriorityClass")
FIELD = "defaultClusters"


def home_cluster(spec: FleetSpec) -> Cluster:
    """Return the manager; in a fleet without one, the cluster that the Fleet names, or else the first."""
    named = next((cluster for cluster in spec.clusters if cluster.name == spec.fleet.home), None)
    return spec.manager or named or spec.clusters[0]


def workers_of(spec: FleetSpec, queue: Queue) -> tuple[Cluster, ...]:
    """Return the workers of a queue in the order in which MultiKueue should try them: as named, else as in the spec."""
    chosen = [cluster for cluster in spec.selected(queue.clusters) if cluster.role is Role.WORKER]
    if queue.clusters is not None and queue.clusters.names:
        chosen.sort(key=lambda cluster: queue.clusters.names.index(cluster.name) if queue.clusters else 0)
    return tuple(chosen)


def placement_check(queue: Queue) -> str:
    return check_of(queue.name)


def downsynced_queues(spec: FleetSpec) -> tuple[Queue, ...]:
    return tuple(queue for queue in spec.queues if queue.dispatch is Dispatch.KUBESTELLAR)


def downsynced_by(spec: FleetSpec) -> tuple[tuple[Cluster, Queue], ...]:
    """Return the workers that KubeStellar dispatches jobs to, each with the first queue that uses it."""
    found: dict[ClusterName, tuple[Cluster, Queue]] = {}
    for queue in downsynced_queues(spec):
        for worker in workers_of(spec, queue):
            found.setdefault(worker.name, (worker, queue))
    return tuple(found.values())


def is_only_downsynced(spec: FleetSpec) -> Callable[[Flavor, Cluster], bool]:
    """Whether KubeStellar dispatches all queues of a flavor on a worker: a Kueue there does not need the flavor."""
    downsynced = {entry.flavor for queue in downsynced_queues(spec) for entry in queue.quota}
    others = {
        (entry.flavor, cluster.name)
        for queue in spec.queues
        if downsynced and queue.dispatch is not Dispatch.KUBESTELLAR
        for cluster in spec.selected(queue.clusters)
        for entry in queue.quota
    }
    return lambda flavor, cluster: (
        flavor.name in downsynced and cluster.role is not Role.MANAGER and (flavor.name, cluster.name) not in others
    )


def clusters_of_queue(spec: FleetSpec, queue: Queue) -> tuple[Cluster, ...]:
    """The clusters of a queue: those that run its jobs, and the manager that dispatches them."""
    runs = spec.selected(queue.clusters)
    manager = spec.manager
    is_sent = queue.dispatch is not Dispatch.NONE and manager is not None and manager not in runs
    return (manager, *runs) if is_sent and manager else runs


def clusters_of_queues(spec: FleetSpec) -> Mapping[str, tuple[Cluster, ...]]:
    """The clusters of every queue that a Tenant may use: Queues, native ClusterQueues, MasterQueues and branches."""
    found: dict[str, dict[ClusterName, Cluster]] = {}
    for entry in spec.objects:
        if is_kueue_object(entry, "ClusterQueue"):
            _add(found, entry.manifest["metadata"]["name"], spec.targeted(entry.targets))
    for master in spec.master_queues:
        branches = (lending.queue for flavor in master.flavors for lending in flavor.lend_to)
        for name in (master.name, *branches):
            _add(found, name, spec.targeted(master.targets))
    for queue in spec.queues:
        _add(found, queue.name, clusters_of_queue(spec, queue))
    return {name: tuple(clusters.values()) for name, clusters in found.items()}


def _add(found: dict[str, dict[ClusterName, Cluster]], name: str, clusters: tuple[Cluster, ...]) -> None:
    found.setdefault(name, {}).update({cluster.name: cluster for cluster in clusters})


def is_kueue_object(entry: NativeObject, kind: str) -> bool:
    return entry.document.group == GROUP and entry.document.kind == kind


def is_follower(entry: NativeObject) -> bool:
    """Whether the object goes where it is used, because no document says where it goes."""
    return not entry.document.targets and any(is_kueue_object(entry, kind) for kind in FOLLOWERS)


@dataclass(frozen=True, slots=True)
class _Use:
    """A queue or cohort on a cluster uses a cohort or a flavor."""

    kind: str
    name: str
    cluster: ClusterName


def with_followers(spec: FleetSpec) -> FleetSpec:
    """The fleet with the clusters of native objects that follow their users; without users they go to the manager."""
    followers = [entry for entry in spec.objects if is_follower(entry)]
    uses = set(_uses_of_specs(spec))
    for entry in spec.objects:
        if not is_follower(entry):
            uses.update(_uses_of(entry, [cluster.name for cluster in spec.targeted(entry.targets)]))
    for _ in followers:
        # A cohort that follows its queues takes its parent along, whatever the order of the documents.
        more = {use for entry in followers for use in _uses_of(entry, _users(entry, uses))} - uses
        if not more:
            break
        uses |= more
    placed = {
        _Use(entry.document.kind, entry.document.name, cluster.name)
        for entry in spec.objects
        if not is_follower(entry)
        for cluster in spec.targeted(entry.targets)
    }
    return replace(spec, objects=tuple(_following(entry, uses, placed) for entry in spec.objects))


def _following(entry: NativeObject, uses: set[_Use], placed: set[_Use]) -> NativeObject:
    """A cluster for which another document declares the object has it already."""
    kind, name = entry.document.kind, entry.document.name
    users = _users(entry, uses) if is_follower(entry) else []
    users = [user for user in users if _Use(kind, name, user) not in placed]
    return replace(entry, targets=Targets(words=tuple(users))) if users else entry


def _users(entry: NativeObject, uses: set[_Use]) -> list[ClusterName]:
    kind, name = entry.document.kind, entry.document.name
    is_any = kind == "WorkloadPriorityClass"
    return sorted({use.cluster for use in uses if use.kind == kind and (is_any or use.name == name)})


def _uses_of_specs(spec: FleetSpec) -> Iterator[_Use]:
    manager = spec.manager
    for queue in spec.queues:
        for cluster in clusters_of_queue(spec, queue):
            if queue.dispatch is not Dispatch.KUBESTELLAR or cluster.role is Role.MANAGER:
                yield from (_Use(kind, queue.cohort, cluster.name) for kind in ("Cohort", "WorkloadPriorityClass"))
        if manager:
            yield from (_Use("ResourceFlavor", entry.flavor, manager.name) for entry in queue.manager_quota)
    for master in spec.master_queues:
        for cluster in spec.targeted(master.targets):
            yield _Use("WorkloadPriorityClass", "", cluster.name)
            yield _Use("Cohort", as_text(at(master.template or {}, "cohort")), cluster.name)
            yield from (_Use("ResourceFlavor", flavor.name, cluster.name) for flavor in master.flavors)


def _uses_of(entry: NativeObject, clusters: list[ClusterName]) -> Iterator[_Use]:
    """What a native ClusterQueue or Cohort refers to on these clusters."""
    is_queue, is_cohort = is_kueue_object(entry, "ClusterQueue"), is_kueue_object(entry, "Cohort")
    if not is_queue and not is_cohort:
        return
    parent = as_text(at(entry.current, "spec", "cohortName" if is_queue else "parentName"))
    for cluster in clusters:
        yield _Use("Cohort", parent, cluster)
        if is_queue:
            yield _Use("WorkloadPriorityClass", "", cluster)
        for group in as_list(at(entry.current, "spec", "resourceGroups")):
            for flavor in as_list(at(group, "flavors")):
                yield _Use("ResourceFlavor", as_text(at(flavor, "name")), cluster)


@dataclass(frozen=True, slots=True)
class FolderTargets:
    """A folder or file of the fleet, relative to the fleet's folder, and the clusters of its native documents."""

    index: int
    path: str
    clusters: str


def with_folder_targets(files: FleetFiles, documents: tuple[Document, ...]) -> tuple[Document, ...]:
    """Return the documents with the clusters of their folder; the most specific entry wins."""
    folders = sorted((one for fleet in _fleets(documents) for one in _entries(fleet)), key=lambda one: -len(one.path))
    if not folders:
        return documents
    return tuple(replace(document, folder_targets=_targets(files, document, folders)) for document in documents)


def check_folders(files: FleetFiles, fleet: Document) -> Iterator[SpecError]:
    """Report entries with wrong clusters, and entries that no file belongs to."""
    for entry in _entries(fleet):
        path = ("spec", FIELD, entry.index)
        try:
            parse_targets(entry.clusters)
        except ValueError as error:
            yield fleet.error((*path, "clusters"), str(error))
        if not any(_is_meant(name, entry) for file in files.files for name in _names(files, file)):
            yield fleet.error((*path, "path"), f"there is no folder or file {quote_value(entry.path)} in the fleet")


def _targets(files: FleetFiles, document: Document, folders: list[FolderTargets]) -> str:
    names = _names(files, document.path)
    return next((one.clusters for one in folders if any(_is_meant(name, one) for name in names)), "")


def _is_meant(name: str, entry: FolderTargets) -> bool:
    return name == entry.path or name.startswith(f"{entry.path}/")


def _names(files: FleetFiles, path: str) -> list[str]:
    """Return the path relative to the fleet's folder, or to the folder of its overlay."""
    if is_inside(path, files.overlays_path):
        return [path.removeprefix(f"{files.overlays_path}/").partition("/")[2]]
    return [path.removeprefix(f"{files.fleet_path}/")]


def _fleets(documents: tuple[Document, ...]) -> Iterator[Document]:
    return (one for one in documents if one.kind == "Fleet" and one.group == "kfleet.dev")


def _entries(fleet: Document) -> Iterator[FolderTargets]:
    """Read the entries before the schema is checked: a wrong one is skipped here and reported there."""
    spec = fleet.value.get("spec")
    listed = spec.get(FIELD) if isinstance(spec, dict) else None
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        path, clusters = (entry.get(key) if isinstance(entry, dict) else None for key in ("path", "clusters"))
        if isinstance(path, str) and path.strip("/") and isinstance(clusters, str):
            yield FolderTargets(index, path.removeprefix("./").strip("/"), clusters)
