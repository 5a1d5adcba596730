"""Looks at one cluster: one LIST per kind, in parallel. What could not be seen is a gap, never an empty list."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.objects import ClusterName, Gap, Manifest, Ref, without_status_owners
from reconciler.ownership.applyset import MEMBER_LABEL, SetName, kind_key, kind_text, read_parent
from reconciler.ports import ApiKind, ClusterPort
from reconciler.prediction import ClusterView, KindKey

IDENTITY = "/api/v1/namespaces/kube-system"
PARALLEL = 8  # questions at a time
FORBIDDEN = 403
_KUEUE_VERSIONS = ("v1beta2", "v1beta1", "v1alpha1")


class Seen(NamedTuple):
    """The objects of a kind; `gap` is why they were not seen, where somebody needs to know."""

    kind: KindKey
    live: Mapping[Ref, Manifest]
    is_listed: bool = True
    gap: Gap | None = None


def greet(port: ClusterPort, set_name: SetName) -> ClusterView:
    """Which cluster this is, what it serves and what the fleet left there; nothing yet of what it holds."""
    try:
        with ThreadPoolExecutor(3) as pool:
            identity, kinds = pool.submit(port.get, IDENTITY), pool.submit(port.discover)
            parent = pool.submit(port.find, set_name.path)
        uid, served = _uid(port, identity.result()), _by_kind(kinds.result())
        inventory = read_parent(parent.result())
    except ClusterError as error:
        return ClusterView(port.cluster, set_name, gaps=(Gap(port.cluster, "the cluster", error.problem),))
    return ClusterView(port.cluster, set_name, uid, served, inventory=inventory)


def _uid(port: ClusterPort, identity: Manifest) -> str:
    uid = (identity.get("metadata") or {}).get("uid")
    if not uid:
        raise ClusterError(port.cluster, f"GET {IDENTITY}: the answer has no uid, so it is not an API server's")
    return str(uid)


def look(
    port: ClusterPort, greeted: ClusterView, wanted: Iterable[Ref], others: frozenset[KindKey] = frozenset()
) -> ClusterView:
    """Everything of the fleet on a cluster, and everything that stands where the fleet wants something."""
    if not greeted.is_reachable:
        return greeted
    with ThreadPoolExecutor(PARALLEL) as pool:
        return finish_look(greeted, start_look(pool, port, greeted, wanted, others))


def start_look(
    pool: Executor,
    port: ClusterPort,
    greeted: ClusterView,
    wanted: Iterable[Ref],
    others: frozenset[KindKey] = frozenset(),
) -> list[Future[Seen]]:
    """One question for each kind; who does something meanwhile can take each answer when it comes.

    `others` are kinds that are worth knowing also where the fleet has none of them.
    """
    served, inventory = greeted.served, greeted.inventory
    by_kind: dict[KindKey, list[Ref]] = {kind_key(text): [] for text in (inventory.kinds if inventory else ())}
    for ref in wanted:
        by_kind.setdefault((ref.group, ref.kind), []).append(ref)
    jobs = [(served[key][0], tuple(found)) for key, found in sorted(by_kind.items()) if key in served]
    known = inventory.namespaces if inventory else frozenset()
    more = [served[key][0] for key in sorted(others - by_kind.keys()) if key in served]
    return [
        *(pool.submit(_look_at_kind, port, greeted.set_name, kind, found, known) for kind, found in jobs),
        *(pool.submit(_look_beside, port, greeted.set_name, kind) for kind in more),
    ]


def finish_look(greeted: ClusterView, answers: Iterable[Future[Seen]]) -> ClusterView:
    seen = [answer.result() for answer in answers]
    live = {ref: manifest for one in seen for ref, manifest in one.live.items()}
    listed = frozenset(one.kind for one in seen if one.is_listed)
    return replace(greeted, live=live, gaps=tuple(one.gap for one in seen if one.gap), listed=listed)


def _look_beside(port: ClusterPort, set_name: SetName, kind: ApiKind) -> Seen:
    """At what is no business of the fleet's own objects: whoever may not see it can do all his work."""
    return _look_at_kind(port, set_name, kind, (), frozenset())._replace(gap=None)


def _look_at_kind(
    port: ClusterPort, set_name: SetName, kind: ApiKind, wanted: tuple[Ref, ...], known: frozenset[str]
) -> Seen:
    """All objects of a Kueue kind; of other kinds the members of the fleet, and what has the name of a wanted one."""
    key = (kind.group, kind.kind)
    try:
        if kind.group == KUEUE_GROUP:
            return Seen(key, _refs(port.cluster, kind, port.list(kind.collection())))
        members = _refs(port.cluster, kind, _members(port, set_name, kind, wanted, known))
        others = _find_each(port, kind, [ref for ref in wanted if ref not in members])
    except ClusterError as error:
        what = kind_text(Ref(port.cluster, kind.group, kind.kind, "", ""))
        return Seen(key, {}, is_listed=False, gap=Gap(port.cluster, what, error.problem))
    return Seen(key, {**members, **others})


def _members(
    port: ClusterPort, set_name: SetName, kind: ApiKind, wanted: tuple[Ref, ...], known: frozenset[str]
) -> list[Manifest]:
    """What carries the label of the fleet. Not everybody may list Secrets and the like in all namespaces."""
    selector = f"{MEMBER_LABEL}={set_name.id}"
    try:
        return list(port.list(kind.collection(), selector))
    except ClusterError as error:
        if error.status != FORBIDDEN or not kind.is_namespaced:
            raise
    return _members_by_namespace(port, kind, selector, {ref.namespace for ref in wanted}, {set_name.namespace, *known})


def _members_by_namespace(
    port: ClusterPort, kind: ApiKind, selector: str, wanted: set[str], possible: set[str]
) -> list[Manifest]:
    """Where the kind is wanted, and where it may be left: the fleet's own namespace, and all that it has used.

    Of the latter some may be forbidden, because this kind was never there; all of them would be no look at all.
    """
    found: list[Manifest] = []
    denied: list[ClusterError] = []
    for name in sorted(wanted | possible):
        try:
            found += port.list(kind.collection(name), selector)
        except ClusterError as error:
            if error.status != FORBIDDEN or name in wanted:
                raise
            denied.append(error)
    if len(denied) == len(wanted | possible):
        raise denied[0]
    return found


def _find_each(port: ClusterPort, kind: ApiKind, wanted: list[Ref]) -> Mapping[Ref, Manifest]:
    find: Callable[[Ref], Manifest | None] = lambda ref: port.find(kind.path(ref.namespace, ref.name))  # noqa: E731
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
    """Items of a list do not say what they are; those that a watch told do."""
    if (manifest.get("kind"), manifest.get("apiVersion")) == (kind.kind, kind.api_version):
        return manifest
    return {**without_status_owners(manifest), "apiVersion": kind.api_version, "kind": kind.kind}


def _by_kind(kinds: Iterable[ApiKind]) -> Mapping[KindKey, tuple[ApiKind, ...]]:
    """The versions of each kind, the one to use first: the newest that kfleet knows of Kueue, else the server's own.

    A version of Kueue that kfleet does not know comes last: it would not know how to write it.
    """
    found: dict[KindKey, list[ApiKind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.kind), []).append(kind)
    return {key: tuple(sorted(known, key=_preference)) for key, known in found.items()}


def _preference(kind: ApiKind) -> int:
    if kind.group != KUEUE_GROUP:
        return 0
    return _KUEUE_VERSIONS.index(kind.version) if kind.version in _KUEUE_VERSIONS else len(_KUEUE_VERSIONS)
