"""From the ledger to what the desired objects stand on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.capacity.ledger import Rules, effective_timeout, one_period
from reconciler.capacity.message import flavor_name
from reconciler.capacity.model import CapacityObservation, Entry, Ledger, SourceKey
from reconciler.capacity.sources import is_at
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.quantity import ZERO, Quantity
from reconciler.snapshot.model import Amounts, Capacities, FlavorKey, Freshness, Pool, PoolKey, Usage
from reconciler.spec.model import FleetSpec

CLUSTER_QUEUE, COHORT = "ClusterQueue", "Cohort"
Objects = Iterable[tuple[Ref, Manifest]]


def count_capacities(spec: FleetSpec, ledger: Ledger) -> Capacities:
    """The capacity of every flavor that is observed: its nodes, its ClusterMetrics, or the sum of its pools."""
    found: dict[FlavorKey, Amounts] = {
        entry.source.place: entry.granted for entry in ledger.entries if isinstance(entry.source.place, FlavorKey)
    }
    pools = count_pools(ledger)
    for flavor in spec.flavors:
        asked = flavor.capacity.nats
        own = [pool for pool in pools if asked is not None and is_at(asked, pool.place) and asked.has(pool.place.name)]
        for cluster in spec.selected(flavor.clusters) if own else ():
            found[FlavorKey(cluster.name, flavor.name)] = _sum(own)
    return found


def count_pools(ledger: Ledger) -> tuple[Pool, ...]:
    return tuple(
        Pool(place, entry.granted, entry.last.labels, entry.last.taints, entry.freshness)
        for entry in ledger.entries
        if isinstance(place := entry.source.place, PoolKey)
    )


def _sum(pools: list[Pool]) -> Amounts:
    names = dict.fromkeys(name for pool in pools for name in pool.amounts)
    return {name: sum((pool.amounts.get(name, ZERO) for pool in pools), ZERO) for name in names}


@dataclass(frozen=True, slots=True, order=True)
class _Share:
    """Something that queues of one cohort have together; a queue without a cohort has it alone."""

    cluster: ClusterName
    owner: str
    flavor: str
    name: str


def find_silent(ledger: Ledger) -> Iterator[str]:
    for entry in ledger.entries:
        if entry.freshness is Freshness.STALE:
            yield f"{entry.source}: not seen since {_since(entry)}: its quota is 0 until it is seen again"


def find_unobserved(ledger: Ledger, look: CapacityObservation, rules: Rules) -> Iterator[str]:
    """What was not observed this time and counts as before: a missing observation makes nothing smaller."""
    seen = {sample.source for sample in look.samples}
    for entry in ledger.entries:
        if entry.source in seen or entry.freshness is Freshness.STALE:
            continue
        place = entry.source.place
        if not isinstance(place, PoolKey):
            yield f"{entry.source}: not observed since {_since(entry)}: its capacity stays as it was last seen"
        elif place.bus in look.listened:
            yield from _why_not_silent(entry, look.now, look.listened[place.bus], rules)


def _why_not_silent(entry: Entry, now: datetime, listened: timedelta, rules: Rules) -> Iterator[str]:
    """Why a pool past its timeout is not silent yet: this process has not listened for that long."""
    timeout = effective_timeout(entry.last, rules.timeouts[entry.source])
    if now - entry.last.seen_at > timeout and listened >= one_period(entry.last.period):
        unheard = f"not seen since {_since(entry)}, nor in {listened.total_seconds():.0f} s of listening"
        needed = f"it was listened for over {timeout.total_seconds():.0f} s (--observe-for, or kfleet run)"
        yield f"{entry.source}: {unheard}: its capacity stays until {needed}"


def _since(entry: Entry) -> str:
    return entry.last.seen_at.isoformat(timespec="seconds")


def find_overcommit(objects: Iterable[tuple[Ref, Manifest]], usage: Usage) -> Iterator[str]:
    """Where workloads hold more than the new quotas of a whole cohort, and who may preempt them for that."""
    known = [(ref, manifest) for ref, manifest in objects if ref.kind in {CLUSTER_QUEUE, COHORT}]
    roots = _roots(known)
    owner_of = {(ref.cluster, ref.name): roots[ref] for ref, _ in known if ref.kind == CLUSTER_QUEUE}
    used: dict[_Share, Quantity] = {}
    for place, amounts in usage.items():
        owner = owner_of.get((place.cluster, place.queue))
        for name, amount in amounts.items() if owner is not None else ():
            if amount > ZERO:
                share = _Share(place.cluster, owner or "", place.flavor, name)
                used[share] = used.get(share, ZERO) + amount
    owners = {(share.cluster, share.owner) for share in used}
    quotas: dict[_Share, Quantity] = {}
    for ref, manifest in known:
        for share, nominal in _quotas(ref, manifest, roots[ref]) if (ref.cluster, roots[ref]) in owners else ():
            quotas[share] = quotas.get(share, ZERO) + nominal
    for share, amount in sorted(used.items()):
        quota = quotas.get(share, ZERO)
        if amount > quota:
            in_use = f"flavor {share.flavor}: {amount} {share.name} are in use, the quota is {quota}"
            effect = _effect([ref.name for ref, one in known if _may_preempt(ref, one, share, roots[ref])])
            yield f"{share.cluster}: {share.owner}: {in_use}: {effect}"


def _may_preempt(ref: Ref, queue: Manifest, share: _Share, owner: str) -> bool:
    """Kueue's default for both is Never. What a queue uses above its nominal quota counts as borrowed."""
    policies = (at(queue, "spec", "preemption", name) for name in ("reclaimWithinCohort", "withinClusterQueue"))
    is_there = ref.kind == CLUSTER_QUEUE and (ref.cluster, owner) == (share.cluster, share.owner)
    return is_there and any(policy not in {None, "Never"} for policy in policies)


def _effect(preempting: list[str]) -> str:
    waits = "nothing is admitted until it fits again"
    if not preempting:
        return f"{waits}, and nothing is evicted: no queue of the fleet there may preempt"
    return f"{waits}, unless by preemption: {', '.join(sorted(preempting))} may preempt what runs there"


def _roots(known: list[tuple[Ref, Manifest]]) -> Mapping[Ref, str]:
    """The top of the tree that a queue or a cohort hangs in, in words."""
    parents = {
        (ref.cluster, ref.name): as_text(at(manifest, "spec", "parentName"))
        for ref, manifest in known
        if ref.kind == COHORT
    }
    found = {}
    for ref, manifest in known:
        name = as_text(at(manifest, "spec", "cohortName")) if ref.kind == CLUSTER_QUEUE else ref.name
        seen: set[str] = set()
        while name and name not in seen and parents.get((ref.cluster, name)):
            seen.add(name)
            name = parents[ref.cluster, name]
        found[ref] = f"cohort {name}" if name else f"queue {ref.name}"
    return found


def _quotas(ref: Ref, manifest: Manifest, owner: str) -> Iterator[tuple[_Share, Quantity]]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for one in as_list(at(flavor, "resources")):
                share = _Share(ref.cluster, owner, as_text(at(flavor, "name")), as_text(at(one, "name")))
                yield share, quantity_at(at(one, "nominalQuota")) or ZERO


def quotas_of(spec: FleetSpec, source: SourceKey, objects: Objects) -> tuple[str, ...]:
    """`hub/ClusterQueue/pools: pools-nats-cnaf: cpu 8, memory 64Gi` for every queue with quota of the source."""
    places = frozenset(flavors_of_source(spec, source))
    return tuple(
        f"{ref}: {name}: {_quota_text(flavor)}"
        for ref, manifest in objects
        if ref.kind == "ClusterQueue"
        for group in as_list(at(manifest, "spec", "resourceGroups"))
        for flavor in as_list(at(group, "flavors"))
        if FlavorKey(ref.cluster, name := as_text(at(flavor, "name"))) in places
    )


def flavors_of_source(spec: FleetSpec, source: SourceKey) -> Iterator[FlavorKey]:
    place = source.place
    if isinstance(place, PoolKey):
        yield from _flavors_of_pool(spec, place)
    else:
        yield place


def _flavors_of_pool(spec: FleetSpec, place: PoolKey) -> Iterator[FlavorKey]:
    for master in spec.master_queues:
        for entry in master.flavors:
            if entry.nats is not None and is_at(entry.nats, place) and entry.nats.has(place.name):
                for cluster in spec.targeted(master.targets):
                    yield FlavorKey(cluster.name, flavor_name(master.name, entry.name, place.name))
    for flavor in spec.flavors:
        pools = flavor.capacity.nats
        if pools is not None and is_at(pools, place) and pools.has(place.name):
            for cluster in spec.selected(flavor.clusters):
                yield FlavorKey(cluster.name, flavor.name)


def _quota_text(flavor: Manifest) -> str:
    quotas = ((as_text(at(one, "name")), at(one, "nominalQuota")) for one in as_list(at(flavor, "resources")))
    return ", ".join(f"{name} {quota}" for name, quota in quotas)
