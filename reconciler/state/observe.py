"""Observes a cluster: its identity, inventory and live objects, and the kinds that a delete depends on."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.references import REFERRERS
from reconciler.kueue.workloads import is_opening
from reconciler.objects import IDENTITY, ApiKind, ClusterName, Gap, Manifest, Ref, without_status_owners
from reconciler.render.model import DesiredObject
from reconciler.render.running import begins_to_evict, drops_flavor, keep_used_flavors, with_evicted
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.state.applyset import (
    ID_LABEL,
    MEMBER_LABEL,
    Inventory,
    SetName,
    fleet_of,
    is_member,
    kind_key,
    kind_text,
    read_digests,
    read_parent,
)
from reconciler.state.model import ClusterView, KindKey, SharedServers, find_shared_servers

WORKLOADS: KindKey = (GROUP, "Workload")
LOCAL_QUEUES: KindKey = (GROUP, "LocalQueue")
PARALLEL = 8  # concurrent requests
_KUEUE_VERSIONS = ("v1beta2", "v1beta1", "v1alpha1")


def needed_kinds(view: ClusterView, wanted: Iterable[DesiredObject]) -> frozenset[KindKey]:
    """The kinds that may refer to objects, or to flavors of a queue, that the fleet no longer desires."""
    kept, own = {entry.ref: entry for entry in wanted}, view.set_name.id
    going = {ref.kind for ref, live in view.live.items() if ref not in kept and is_member(own, live)}
    kinds = frozenset((GROUP, kind) for gone in going for kind in REFERRERS.get(gone, ()))
    queues = (entry for ref, entry in kept.items() if ref.kind == "ClusterQueue")
    is_asking = any(_asks_for_workloads(entry, view.live.get(entry.ref)) for entry in queues)
    return kinds | {WORKLOADS, LOCAL_QUEUES} if is_asking else kinds


def mind_workloads(view: ClusterView, objects: Iterable[DesiredObject]) -> dict[Ref, DesiredObject]:
    """The desired objects that differ from the spec because of running workloads."""
    is_seen = WORKLOADS in view.listed or WORKLOADS not in view.served
    wanted = tuple(objects)
    kept = {entry.ref: entry for entry in keep_used_flavors(wanted, view.live, is_seen=is_seen)}
    evicting = with_evicted((kept.get(entry.ref, entry) for entry in wanted), view.live)
    return kept | {entry.ref: entry for entry in evicting}


def has_opening_queues(view: ClusterView, objects: Iterable[DesiredObject]) -> bool:
    """Whether queues of the cluster resume. The manager's workloads then decide whether they may."""
    queues = (entry for entry in objects if entry.ref.kind == "ClusterQueue")
    return any(is_opening(view.live.get(entry.ref), entry.manifest) for entry in queues)


def _asks_for_workloads(entry: DesiredObject, live: Manifest | None) -> bool:
    return drops_flavor(entry, live) or begins_to_evict(entry, live) or is_opening(live, entry.manifest)


class Seen(NamedTuple):
    """The objects of a kind. `gap` is why they could not be listed, if a decision depends on them."""

    kind: KindKey
    live: Mapping[Ref, Manifest]
    is_listed: bool = True
    gap: Gap | None = None


def probe(client: ClusterClient, set_name: SetName, *, is_manager: bool = False) -> ClusterView:
    """Read the identity, the served kinds and the inventory of a cluster, without its objects."""
    try:
        with ThreadPoolExecutor(4) as pool:
            identity, kinds = pool.submit(client.get, IDENTITY), pool.submit(client.discover)
            inventory = pool.submit(read_inventory, client, set_name, is_manager=is_manager)
        uid, served = _uid(client, identity.result()), by_kind(kinds.result())
        known = inventory.result()
    except ClusterError as error:
        return ClusterView(client.cluster, set_name, gaps=(Gap(client.cluster, "the cluster", error.problem),))
    return ClusterView(client.cluster, set_name, uid, served, inventory=known)


def read_inventory(client: ClusterClient, set_name: SetName, *, is_manager: bool) -> Inventory | None:
    """The inventory of the fleet on a cluster. The manager's also has the workers' addresses and their digests."""
    inventory = read_parent(client.find(set_name.path))
    if inventory is None or not (is_manager and inventory.addresses):
        return inventory
    return replace(inventory, digests=read_digests(client.find(set_name.namespace_path), set_name))


def _uid(client: ClusterClient, identity: Manifest) -> str:
    uid = (identity.get("metadata") or {}).get("uid")
    if not uid:
        raise ClusterError(client.cluster, f"GET {IDENTITY}: the answer has no uid, so this is not an API server")
    return str(uid)


def look(
    client: ClusterClient, probed: ClusterView, wanted: Iterable[Ref], others: frozenset[KindKey] = frozenset()
) -> ClusterView:
    """Observe all members of the fleet on a cluster, and all objects with the name of a desired one."""
    if not probed.is_reachable:
        return probed
    with ThreadPoolExecutor(PARALLEL) as pool:
        return finish_look(probed, start_look(pool, client, probed, wanted, others))


def start_look(
    pool: Executor,
    client: ClusterClient,
    probed: ClusterView,
    wanted: Iterable[Ref],
    others: frozenset[KindKey] = frozenset(),
) -> list[Future[Seen]]:
    """Start one list request per kind; the caller collects the answers as they arrive.

    `others` are kinds to list even if the fleet has no objects of them.
    """
    served, inventory = probed.served, probed.inventory
    by_kind: dict[KindKey, list[Ref]] = {kind_key(text): [] for text in (inventory.kinds if inventory else ())}
    for ref in wanted:
        by_kind.setdefault((ref.group, ref.kind), []).append(ref)
    jobs = [(served[key][0], tuple(found)) for key, found in sorted(by_kind.items()) if key in served]
    known = inventory.namespaces if inventory else frozenset()
    more = [served[key][0] for key in sorted(others - by_kind.keys()) if key in served]
    return [
        *(pool.submit(_look_at_kind, client, probed.set_name, kind, found, known) for kind, found in jobs),
        *(pool.submit(_look_beside, client, probed.set_name, kind) for kind in more),
    ]


def finish_look(probed: ClusterView, answers: Iterable[Future[Seen]]) -> ClusterView:
    seen = [answer.result() for answer in answers]
    live = {ref: manifest for one in seen for ref, manifest in one.live.items()}
    listed = frozenset(one.kind for one in seen if one.is_listed)
    return replace(probed, live=live, gaps=tuple(one.gap for one in seen if one.gap), listed=listed)


def look_further(client: ClusterClient, view: ClusterView, needed: Iterable[KindKey]) -> ClusterView:
    """Add kinds that a decision depends on and that are not listed yet. A kind that cannot be listed is a gap."""
    kinds = [view.served[key][0] for key in sorted(needed) if key in view.served and key not in view.listed]
    if not kinds:
        return view
    with ThreadPoolExecutor(PARALLEL) as pool:
        seen = [*pool.map(lambda kind: _look_at_kind(client, view.set_name, kind, (), frozenset()), kinds)]
    return replace(
        view,
        live={**view.live, **{ref: manifest for one in seen for ref, manifest in one.live.items()}},
        gaps=(*view.gaps, *(one.gap for one in seen if one.gap)),
        listed=view.listed | {one.kind for one in seen if one.is_listed},
    )


def with_owners(client: ClusterClient, view: ClusterView, wanted: Iterable[Ref]) -> ClusterView:
    """Add the names of other fleets that own desired objects. The request is made only if there are such objects."""
    labels = (view.live[ref]["metadata"].get("labels") or {} for ref in wanted if ref in view.live)
    if not {label[MEMBER_LABEL] for label in labels if MEMBER_LABEL in label} - {view.set_name.id}:
        return view
    try:
        parents = list(client.list(f"{view.set_name.namespace_path}/configmaps", ID_LABEL))
    except ClusterError:
        # Messages then use the ids of their ApplySets.
        return view
    names = {entry["metadata"]["labels"][ID_LABEL]: entry["metadata"]["name"] for entry in parents}
    return replace(view, fleets={owner: fleet_of(name) for owner, name in names.items() if fleet_of(name)})


def _look_beside(client: ClusterClient, set_name: SetName, kind: ApiKind) -> Seen:
    """List a kind that the fleet's own objects do not depend on. Without permission there is no gap."""
    return _look_at_kind(client, set_name, kind, (), frozenset())._replace(gap=None)


def _look_at_kind(
    client: ClusterClient, set_name: SetName, kind: ApiKind, wanted: tuple[Ref, ...], known: frozenset[str]
) -> Seen:
    """All objects of a Kueue kind; of other kinds the fleet's members, and objects with the name of a desired one."""
    key = (kind.group, kind.kind)
    try:
        if kind.group == GROUP:
            return Seen(key, _refs(client.cluster, kind, client.list(kind.collection())))
        members = _refs(client.cluster, kind, _members(client, set_name, kind, wanted, known))
        others = _find_each(client, kind, [ref for ref in wanted if ref not in members])
    except ClusterError as error:
        what = kind_text(Ref(client.cluster, kind.group, kind.kind, "", ""))
        return Seen(key, {}, is_listed=False, gap=Gap(client.cluster, what, error.problem, kind=key))
    return Seen(key, {**members, **others})


def _members(
    client: ClusterClient, set_name: SetName, kind: ApiKind, wanted: tuple[Ref, ...], known: frozenset[str]
) -> list[Manifest]:
    """Objects with the fleet's label. kfleet may lack permission to list a kind (Secrets) in all namespaces."""
    selector = f"{MEMBER_LABEL}={set_name.id}"
    try:
        return list(client.list(kind.collection(), selector))
    except ClusterError as error:
        if not (error.is_forbidden and kind.is_namespaced):
            raise
    return _members_by_namespace(
        client, kind, selector, {ref.namespace for ref in wanted}, {set_name.namespace, *known}
    )


def _members_by_namespace(
    client: ClusterClient, kind: ApiKind, selector: str, wanted: set[str], possible: set[str]
) -> list[Manifest]:
    """List the kind in the `wanted` namespaces, and in the `possible` ones: its own, and all of the inventory.

    Some of the latter may be forbidden, because this kind was never there. If all are forbidden, nothing was observed.
    """
    found: list[Manifest] = []
    denied: list[ClusterError] = []
    for name in sorted(wanted | possible):
        try:
            found += client.list(kind.collection(name), selector)
        except ClusterError as error:
            if not error.is_forbidden or name in wanted:
                raise
            denied.append(error)
    if len(denied) == len(wanted | possible):
        raise denied[0]
    return found


def _find_each(client: ClusterClient, kind: ApiKind, wanted: list[Ref]) -> Mapping[Ref, Manifest]:
    find: Callable[[Ref], Manifest | None] = lambda ref: client.find(kind.path(ref.namespace, ref.name))  # noqa: E731
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = zip(wanted, pool.map(find, wanted), strict=True)
        return {ref: _with_type(manifest, kind) for ref, manifest in found if manifest is not None}


def _refs(cluster: ClusterName, kind: ApiKind, manifests: Iterable[Manifest]) -> dict[Ref, Manifest]:
    return {
        Ref(cluster, kind.group, kind.kind, entry["metadata"].get("namespace", ""), entry["metadata"]["name"]): (
            _with_type(entry, kind)
        )
        for entry in manifests
    }


def _with_type(manifest: Manifest, kind: ApiKind) -> Manifest:
    """Add kind and apiVersion: items of a list lack them, objects of a watch have them."""
    if (manifest.get("kind"), manifest.get("apiVersion")) == (kind.kind, kind.api_version):
        return manifest
    return {**without_status_owners(manifest), "apiVersion": kind.api_version, "kind": kind.kind}


def by_kind(kinds: Iterable[ApiKind]) -> Mapping[KindKey, tuple[ApiKind, ...]]:
    """The versions of each kind in order of preference: for Kueue the newest that kfleet knows, else the server's.

    Unknown versions of Kueue come last, because kfleet cannot write them.
    """
    found: dict[KindKey, list[ApiKind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.kind), []).append(kind)
    return {key: tuple(sorted(known, key=_preference)) for key, known in found.items()}


def _preference(kind: ApiKind) -> int:
    if kind.group != GROUP:
        return 0
    return _KUEUE_VERSIONS.index(kind.version) if kind.version in _KUEUE_VERSIONS else len(_KUEUE_VERSIONS)


@dataclass(frozen=True, slots=True)
class Probe:
    """The probes of a run. They are made once, so that all stages use the same answers."""

    views: Mapping[ClusterName, ClusterView]
    shared: SharedServers


def probe_clusters(
    spec: FleetSpec, removed: tuple[Cluster, ...], clients: Mapping[ClusterName, ClusterClient]
) -> Probe:
    clusters = [cluster for cluster in (*spec.clusters, *removed) if cluster.name in clients]

    def ask(cluster: Cluster) -> ClusterView:
        set_name = SetName(spec.fleet.name, cluster.kueue.namespace)
        return probe(clients[cluster.name], set_name, is_manager=cluster is spec.manager)

    with ThreadPoolExecutor(max(len(clusters), 1)) as pool:
        views = {view.name: view for view in pool.map(ask, clusters)}
    return Probe(views, find_shared_servers(spec, views.values()))
