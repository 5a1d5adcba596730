"""How many flavors and resources a queue takes, and who is left out where more of them were announced.

Decision: flavors and resources that the queue already has stay; a new pool or resource is left out and reported. If the
queue were refused instead, any pool that starts to announce itself would stop every write to its cluster.

So that a cluster can be taken over from kueue-nats, a lost ledger rebuilt and a bus moved, without a pool losing its
quota or its place among the flavors only because it has not spoken yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconciler.capacity.ledger import is_at, pool_source
from reconciler.capacity.message import POOL_ANNOTATION, POOL_KEY, flavor_name, problem_of_pool
from reconciler.capacity.model import Sample, SourceKey
from reconciler.capacity.quota import Quota
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at, quantity_at
from reconciler.kueue.rules.kinds import MOST_QUOTAS
from reconciler.kueue.structure import largest_count
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import ZERO, Quantity
from reconciler.render.model import DesiredObject, desired_object, kueue_manifest, offline_api
from reconciler.render.queues import resource_groups
from reconciler.snapshot.model import Amounts, Freshness, Pool
from reconciler.spec.enums import CapacityPolicy
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.nats import NOMINAL_DEFAULTS, MasterFlavor, MasterQueue

FLAVORS, RESOURCES = "spec.resourceGroups[].flavors", "spec.resourceGroups[].coveredResources"
MOST_NAMED = 5
MEND = "narrow pools or poolRegExp, or divide the MasterQueue"
STOP_POLICIES = {"Stop": "Hold", "StopAndHold": "HoldAndDrain"}
HOSTNAME = "kubernetes.io/hostname"
OWN_TAINT, OWN_EFFECT = "virtual-node.interlink/no-schedule", "NoSchedule"


@dataclass(frozen=True, slots=True)
class FlavorLimits:
    """What one group of a queue takes: so many flavors, so many resources, and not all of both together."""

    flavors: int
    resources: int

    def takes(self, flavors: int, resources: int) -> bool:
        return flavors <= self.flavors and resources <= self.resources and flavors * resources <= MOST_QUOTAS


@dataclass(frozen=True, slots=True)
class CandidateFlavor:
    """A flavor by its name, with the resources that it brings; one that the spec names `is_declared`."""

    name: str
    amounts: Amounts
    is_declared: bool


@dataclass(frozen=True, slots=True)
class FittedFlavors:
    resources: frozenset[str]
    left_out: tuple[str, ...]
    left_resources: tuple[str, ...]


def flavor_limits(clusters: Iterable[Cluster]) -> FlavorLimits:
    """The room that there is on every one of the clusters."""
    versions = [offline_api(cluster).version for cluster in clusters]
    flavors, resources = (
        min((largest_count("ClusterQueue", path, version) or MOST_QUOTAS for version in versions), default=MOST_QUOTAS)
        for path in (FLAVORS, RESOURCES)
    )
    return FlavorLimits(flavors, resources)


def fit_flavors(room: FlavorLimits, resources: Iterable[str], candidates: Iterable[CandidateFlavor]) -> FittedFlavors:
    """Candidate flavors in the order in which they were first seen; `resources` are those that the spec names."""
    covered, count = set(resources), 0
    left: list[str] = []
    left_resources: dict[str, None] = {}
    for candidate in candidates:
        if not candidate.is_declared and not room.takes(count + 1, len(covered)):
            left.append(candidate.name)
            continue
        count += 1
        for name in candidate.amounts:
            if name in covered or room.takes(count, len(covered) + 1):
                covered.add(name)
            else:
                left_resources[name] = None
    return FittedFlavors(frozenset(covered), tuple(left), tuple(left_resources))


def left_out_text(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"left out, because one queue of Kueue cannot hold all of them: {shown}; {MEND}"


@dataclass(frozen=True, slots=True)
class MasterObjects:
    objects: tuple[DesiredObject, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class _Offer:
    """One flavor of a master queue: a pool, or (without one) a local flavor."""

    entry: MasterFlavor
    name: str
    nominal: Amounts
    pool: Pool | None = None


@dataclass(frozen=True, slots=True)
class _Chosen:
    usable: tuple[_Offer, ...]
    refused: Mapping[str, str]
    covered: tuple[str, ...] = ()


def master_queue_objects(
    spec: FleetSpec, pools: tuple[Pool, ...] | None, unlisted: frozenset[ClusterName] = frozenset()
) -> MasterObjects:
    """The objects of every MasterQueue. Without `pools` no message bus was heard, which is a gap.

    On `unlisted` clusters the pools of the live queues are unknown.
    """
    objects: list[DesiredObject] = []
    gaps: list[Gap] = []
    taken: set[str] = set()
    for master in spec.master_queues:
        clusters = spec.targeted(master.targets)
        chosen = _fitted(master, _choose(_offers(master, pools or ()), taken), pools or (), flavor_limits(clusters))
        taken |= {offer.name for offer in chosen.usable if offer.pool is not None}
        unknown = {"its pools": "not observed"} if pools is None and any(entry.nats for entry in master.flavors) else {}
        for cluster in clusters:
            where = f"MasterQueue {master.name}"
            gaps += [Gap(cluster.name, f"{where}: {what}", why) for what, why in {**unknown, **chosen.refused}.items()]
            unseen = "the pools of the live queues could not be listed" if cluster.name in unlisted else ""
            objects += (
                replace(desired_object(cluster, manifest, master.document, *notes), unseen=unseen)
                for manifest, notes in _manifests(master, chosen, spec.fleet.policy.capacity)
            )
    return MasterObjects(tuple(objects), tuple(gaps))


def is_asked_pool(spec: FleetSpec, live: Manifest) -> bool:
    """Whether a live object is the flavor of a pool that some MasterQueue asks for, known or not."""
    pool = pool_of(live) if live["kind"] == "ResourceFlavor" else ""
    return any(
        entry.nats.has(pool) and live["metadata"]["name"] == flavor_name(master.name, entry.name, pool)
        for master in (spec.master_queues if pool else ())
        for entry in master.flavors
        if entry.nats is not None
    )


def _offers(master: MasterQueue, pools: tuple[Pool, ...]) -> Iterator[_Offer]:
    for entry in master.flavors:
        if entry.is_local:
            yield _Offer(entry, entry.name, entry.nominal_quota or {})
        for pool in pools if entry.nats is not None else ():
            if entry.nats is not None and is_at(entry.nats, pool.place) and entry.nats.has(pool.place.name):
                name = flavor_name(master.name, entry.name, pool.place.name)
                yield _Offer(entry, name, _bounded(pool.amounts, entry.nominal_quota or {}), pool)


def _bounded(published: Amounts, most: Amounts) -> Amounts:
    return {name: min(amount, most.get(name, amount)) for name, amount in published.items()}


def _choose(offers: Iterable[_Offer], taken: set[str]) -> _Chosen:
    """A flavor stands once in a queue, and a pool's flavor belongs to one queue."""
    usable: dict[str, _Offer] = {}
    refused: dict[str, str] = {}
    for offer in offers:
        why = _refusal(offer, taken | usable.keys())
        if why and offer.pool is not None:
            refused[f"pool {offer.pool.place.name}"] = why
        else:
            usable.setdefault(offer.name, offer)
    return _Chosen(tuple(usable.values()), refused)


def _refusal(offer: _Offer, taken: set[str]) -> str:
    if offer.pool is None:
        return ""
    if problem := problem_of_pool(offer.pool.place.name):
        return f"jobs cannot be sent to the pool: its name {problem}"
    return f"there is a flavor {offer.name} already; rename an entry of the MasterQueue" if offer.name in taken else ""


def _fitted(master: MasterQueue, chosen: _Chosen, pools: tuple[Pool, ...], room: FlavorLimits) -> _Chosen:
    """What a queue has room for. Pools stand in the order in which they were met."""
    if master.template is None:
        return chosen
    limits = (lending.limits for entry in master.flavors for lending in entry.lend_to)
    said = (entry.nominal_quota or {} for entry in master.flavors)
    named = {name for amounts in (NOMINAL_DEFAULTS, *limits, *said) for name in amounts}
    position = {pool.place: number for number, pool in enumerate(pools)}
    ordered = sorted(chosen.usable, key=lambda offer: position[offer.pool.place] if offer.pool is not None else -1)
    candidates = (CandidateFlavor(offer.name, offer.nominal, is_declared=offer.pool is None) for offer in ordered)
    fitted = fit_flavors(room, named, candidates)
    pools_left = tuple(one.pool.place.name for one in ordered if one.pool and one.name in fitted.left_out)
    left = {
        f"some {what}": left_out_text(names)
        for what, names in (("pools", pools_left), ("resources of its pools", fitted.left_resources))
        if names
    }
    return _Chosen(
        tuple(offer for offer in chosen.usable if offer.name not in fitted.left_out),
        {**chosen.refused, **left},
        (*NOMINAL_DEFAULTS, *sorted(fitted.resources - NOMINAL_DEFAULTS.keys())),
    )


def _manifests(
    master: MasterQueue, chosen: _Chosen, policy: CapacityPolicy
) -> Iterator[tuple[Manifest, tuple[str, ...]]]:
    offers, covered = chosen.usable, chosen.covered
    for offer in offers:
        if offer.pool is not None:
            note = ("the pool is silent",) if offer.pool.freshness is Freshness.STALE else ()
            yield _resource_flavor(offer.entry, offer.name, offer.pool, policy), note
    if master.template is None:
        return
    quotas = [Quota(offer.name, _covering(offer.nominal, covered), {}, {}) for offer in offers]
    yield _cluster_queue(master, master.name, quotas)
    for branch, entries in _branches(master).items():
        borrowed = [
            Quota(offer.name, _covering({}, covered), entries[offer.entry.name], {})
            for offer in offers
            if offer.entry.name in entries
        ]
        yield _cluster_queue(master, branch, borrowed)


def _covering(amounts: Amounts, covered: tuple[str, ...]) -> Amounts:
    return {name: amounts.get(name, ZERO) for name in covered}


def _branches(master: MasterQueue) -> Mapping[str, Mapping[str, Amounts]]:
    """What each branch may borrow, by entry; of two limits for the same the smaller one holds."""
    found: dict[str, dict[str, dict[str, Quantity]]] = {}
    for entry in master.flavors:
        if entry.nats is None and not entry.is_local:
            continue
        for lending in entry.lend_to:
            limits = found.setdefault(lending.queue, {}).setdefault(entry.name, {})
            for name, limit in lending.limits.items():
                limits[name] = min(limit, limits.get(name, limit))
    return found


def _cluster_queue(master: MasterQueue, name: str, quotas: list[Quota]) -> tuple[Manifest, tuple[str, ...]]:
    template = dict(master.template or {})
    stop_policy = STOP_POLICIES.get(template["stopPolicy"], template["stopPolicy"])
    is_idle = not quotas
    content: dict[str, Any] = {**template, "stopPolicy": "Hold" if is_idle and stop_policy == "None" else stop_policy}
    # The template speaks the words of v1beta1; the quotas are canonical already, and many.
    old = {"apiVersion": f"{GROUP}/v1beta1", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": content}
    manifest = to_canonical(old).manifest
    if is_idle:
        return manifest, ("on hold: no pool of it is known",)
    return {**manifest, "spec": {**manifest["spec"], "resourceGroups": resource_groups(quotas)}}, ()


def _resource_flavor(entry: MasterFlavor, name: str, pool: Pool, policy: CapacityPolicy) -> Manifest:
    node = entry.nats.virtual_node if entry.nats is not None else ""
    content: dict[str, Any] = {"nodeLabels": {HOSTNAME: node}} if node else {}
    content["nodeTaints"] = [
        {"key": OWN_TAINT, "value": "true", "effect": OWN_EFFECT},
        *(dict(taint) for taint in pool.taints if not is_own_taint(taint)),
    ]
    content["tolerations"] = [{"key": POOL_KEY, "value": pool.place.name, "effect": "NoSchedule"}]
    manifest = kueue_manifest("ResourceFlavor", name, content)
    # What a pool said long ago may not be allowed any more.
    labels = {key: value for key, value in pool.labels.items() if policy.allows_label(key)}
    if labels:
        manifest["metadata"]["labels"] = labels
    if not name.endswith(f"-{pool.place.name}"):
        manifest["metadata"]["annotations"] = {POOL_ANNOTATION: pool.place.name}
    return manifest


def recall_pools(
    master: MasterQueue, queues: Iterable[Manifest], flavors: Iterable[Manifest], used: frozenset[str], now: datetime
) -> tuple[Sample, ...]:
    """The pools of a MasterQueue in the order in which its live ClusterQueue tries them.

    One with nothing to give is recalled only where workloads still use it (`used`, by flavor): otherwise a pool that
    was just dropped would come back by a list that is a moment old.
    """
    queue = next((one for one in queues if at(one, "metadata", "name") == master.name), {})
    live = {as_text(at(flavor, "metadata", "name")): flavor for flavor in flavors}
    found: dict[SourceKey, Sample] = {}
    for name, quotas in _quotas(queue):
        if name not in used and not any(amount > ZERO for amount in quotas.values()):
            continue
        for entry in master.flavors:
            sample = _recalled(master, entry, live.get(name, {}), quotas, now)
            if sample is not None:
                found.setdefault(sample.source, sample)
    return tuple(found.values())


def _quotas(queue: Manifest) -> Iterator[tuple[str, Amounts]]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            amounts = {
                as_text(at(one, "name")): quantity_at(at(one, "nominalQuota")) or ZERO
                for one in as_list(at(flavor, "resources"))
            }
            yield as_text(at(flavor, "name")), amounts


def _recalled(
    master: MasterQueue, entry: MasterFlavor, flavor: Manifest, quotas: Amounts, now: datetime
) -> Sample | None:
    pool = pool_of(flavor)
    is_own = at(flavor, "metadata", "name") == flavor_name(master.name, entry.name, pool)
    if not pool or not is_own or entry.nats is None or not entry.nats.has(pool):
        return None
    labels: Mapping[str, str] = {
        key: as_text(value)
        for key, value in as_map(at(flavor, "metadata", "labels")).items()
        if not key.startswith("applyset.kubernetes.io/")
    }
    taints = tuple(taint for taint in map(as_map, as_list(at(flavor, "spec", "nodeTaints"))) if not is_own_taint(taint))
    return Sample(pool_source(entry.nats, pool), now, quotas, labels, taints)


def is_own_taint(taint: Mapping[str, Any]) -> bool:
    """Whether this is the taint that every pool's flavor has; a pool may add one of the same key and another effect."""
    return (taint.get("key"), taint.get("effect")) == (OWN_TAINT, OWN_EFFECT)


def pool_of(flavor: Manifest) -> str:
    """The pool that a live ResourceFlavor stands for; empty where it stands for none."""
    annotated = as_text(at(flavor, "metadata", "annotations", POOL_ANNOTATION))
    tolerations = map(as_map, as_list(at(flavor, "spec", "tolerations")))
    routed = (as_text(one.get("value")) for one in tolerations if one.get("key") == POOL_KEY)
    return annotated or next(routed, "")
