"""Which live objects belong into the fleet, and to whom the others belong; the role of each cluster."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.importer.model import ImportRequest, LeftObject, LiveObject, ObservedContexts
from reconciler.kueue.conversion import SERVER_MADE, to_canonical
from reconciler.kueue.kinds import GROUP, KINDS
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest, ref_of
from reconciler.snapshot.model import ClusterObjects, KindKey
from reconciler.spec.enums import Role
from reconciler.spec.selectors import DOMAIN, LAST_APPLIED, PART_OF
from reconciler.state.claimants import claimant

POLICY_GROUP = "control.kubestellar.io"
MASTER_QUEUE: KindKey = ("vk.io", "MasterQueue")
# Everything that a fleet can hold. Workloads and jobs are what runs in it.
IMPORTED: tuple[KindKey, ...] = (
    *((GROUP, kind.name) for kind in KINDS if kind.name != "Workload"),
    *((POLICY_GROUP, kind) for kind in ("BindingPolicy", "StatusCollector", "CustomTransform")),
    MASTER_QUEUE,
)
# Labels and annotations by which tools find what they wrote: in git they would bind the object to two owners.
_MARKS = (
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "helm.sh/",
    "applyset.kubernetes.io/",
    DOMAIN,
)
_MARKS_OF_TOOLS = frozenset(("app.kubernetes.io/managed-by", "app.kubernetes.io/instance", LAST_APPLIED))


def collect(seen: ObservedContexts, request: ImportRequest) -> tuple[tuple[LiveObject, ...], tuple[LeftObject, ...]]:
    """Return what is imported, and what is left with its owner, in the order of clusters and kinds."""
    taken: list[LiveObject] = []
    left: list[LeftObject] = []
    for cluster in seen.reachable:
        for found in live_objects(cluster):
            why = _why_left(found, request)
            if why is None:
                taken.append(found)
            else:
                left.append(why)
    return tuple(taken), tuple(left)


def live_objects(cluster: ClusterObjects) -> Iterator[LiveObject]:
    for key in IMPORTED:
        for live in cluster.of(*key):
            yield LiveObject(ref_of(cluster.name, live), live, _current(live))


def _current(live: Manifest) -> Manifest:
    """The object without what servers and tools wrote, in Kueue's newest API version."""
    canonical = to_canonical({name: value for name, value in live.items() if name != "status"}).manifest
    metadata = {name: value for name, value in canonical["metadata"].items() if name not in SERVER_MADE}
    metadata = {name: value for name, value in metadata.items() if name not in {"ownerReferences", "finalizers"}}
    for part in ("labels", "annotations"):
        kept = {key: text for key, text in as_map(metadata.pop(part, {})).items() if not is_mark(key)}
        metadata |= {part: kept} if kept else {}
    return {**canonical, "metadata": metadata}


def is_mark(key: str) -> bool:
    return key.startswith(_MARKS) or key in _MARKS_OF_TOOLS


def _why_left(found: LiveObject, request: ImportRequest) -> LeftObject | None:
    metadata = found.live["metadata"]
    if metadata.get("deletionTimestamp"):
        return LeftObject(found.ref, "it is being deleted")
    if fleet := as_text(as_map(metadata.get("labels")).get(PART_OF)):
        return LeftObject(found.ref, "it belongs to a fleet or an ApplySet already", fleet)
    for owner in as_list(metadata.get("ownerReferences")):
        who = f"{as_text(at(owner, 'kind'))} {as_text(at(owner, 'name'))}"
        return LeftObject(found.ref, f"{who} makes it", who)
    tool = claimant(found.live)
    if tool and not request.takes_claimed:
        return LeftObject(found.ref, f"{tool} writes it", tool)
    return None


@dataclass(frozen=True, slots=True)
class FoundRoles:
    """The roles, the cluster of each MultiKueueCluster by its manager and name, and what could not be recognized."""

    roles: Mapping[ClusterName, Role]
    members: Mapping[tuple[ClusterName, str], ClusterName]
    notes: tuple[str, ...] = ()

    @property
    def managers(self) -> tuple[ClusterName, ...]:
        return tuple(name for name, role in self.roles.items() if role is Role.MANAGER)

    def workers_of(self, manager: ClusterName) -> tuple[ClusterName, ...]:
        return tuple(dict.fromkeys(cluster for (of, _), cluster in self.members.items() if of == manager))


def find_roles(seen: ObservedContexts) -> FoundRoles:
    """Recognize the roles; of several fleets in one kubeconfig each has its manager."""
    managers = [cluster for cluster in seen.reachable if cluster.of(GROUP, "MultiKueueConfig")]
    roles = {cluster.name: Role.MANAGER if cluster in managers else Role.STANDALONE for cluster in seen.reachable}
    others = [cluster for cluster in seen.reachable if cluster not in managers]
    members: dict[tuple[ClusterName, str], ClusterName] = {}
    notes: list[str] = []
    for manager in managers:
        unknown: list[str] = []
        for entry in manager.of(GROUP, "MultiKueueCluster"):
            name = as_text(at(entry, "metadata", "name"))
            found = _member(name, manager, others, seen)
            if found is None:
                unknown.append(name)
            else:
                members[manager.name, name] = found
                roles[found] = Role.WORKER
        notes += _notes(manager, others, unknown, roles)
    return FoundRoles(roles, members, tuple(notes))


def _member(
    name: str, manager: ClusterObjects, others: list[ClusterObjects], seen: ObservedContexts
) -> ClusterName | None:
    """The cluster of a MultiKueueCluster: by the address or certificate authority in its Secret, or by its name."""
    credential = seen.credentials.get((manager.name, name))
    endpoint = credential.endpoint if credential else None
    servers = {other.name: seen.servers[other.name] for other in others if other.name in seen.servers}
    if endpoint is not None:
        by_address = [known for known, own in servers.items() if own.server.rstrip("/") == endpoint.server.rstrip("/")]
        by_authority = [known for known, own in servers.items() if own.ca and own.ca.strip() == endpoint.ca.strip()]
        for found in (by_address, by_authority):
            if len(found) == 1:
                return found[0]
    return next((other.name for other in others if name in (other.name, seen.contexts[other.name])), None)


def _notes(
    manager: ClusterObjects,
    others: list[ClusterObjects],
    unknown: list[str],
    roles: dict[ClusterName, Role],
) -> Iterator[str]:
    if unknown:
        names = ", ".join(unknown)
        yield (
            f"{manager.name}: no context is recognized as the cluster of MultiKueueCluster {names}: add its --context, "
            "or set the role of its Cluster to worker in clusters.yaml"
        )
    submits = {_address(entry) for entry in manager.of(GROUP, "LocalQueue")}
    for other in others:
        if roles[other.name] is Role.STANDALONE and unknown:
            shared = submits & {_address(entry) for entry in other.of(GROUP, "LocalQueue")}
            if shared:
                # MultiKueue finds the queue of a job on a worker by its namespace and name.
                roles[other.name] = Role.WORKER
                yield f"{other.name}: is a worker, because it has the same LocalQueues as {manager.name}"


def _address(entry: object) -> tuple[str, str]:
    return as_text(at(entry, "metadata", "namespace")), as_text(at(entry, "metadata", "name"))
