"""Which objects observations have a say in, and what the spec alone says about those.

So that a plan can tell a quota that follows the capacity from one that somebody changed in git.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import orjson

from reconciler.desired.compute import compute_desired, observed_objects
from reconciler.desired.leaving import still_here
from reconciler.desired.model import Desired, DesiredObject
from reconciler.objects import Manifest, Ref
from reconciler.observed import Capacities, FlavorPlace, Observations
from reconciler.quantity import NANO, Quantity
from reconciler.spec.choices import CapacitySource
from reconciler.spec.model import FleetSpec

# Shares of this are different wherever their percentages are.
REFERENCE = Quantity(10**12 * NANO)


def compute_observed(spec: FleetSpec, seen: Observations) -> Desired:
    """The desired objects, those that observations decide marked with what the spec alone says of them."""
    desired, plain = compute_desired(spec, seen), _without_sights(spec, seen)
    if plain == seen:
        return desired
    said = observed_objects(spec, plain, still_here(spec, plain.leavers))
    by_spec = {entry.ref: entry.manifest for entry in (*said.queues, *said.masters)}
    masters = {master.name: _digest(master.document.value.get("spec")) for master in spec.master_queues}
    return replace(desired, objects=tuple(_marked(entry, by_spec, masters) for entry in desired.objects))


def _without_sights(spec: FleetSpec, seen: Observations) -> Observations:
    """The same look, had it seen what it always sees: everything has as much as everything else."""
    is_measured = bool(seen.capacities) or seen.pools is not None
    names = sorted({name for pool in seen.pools or () for name in pool.amounts})
    pools = seen.pools and tuple(replace(pool, amounts=dict.fromkeys(names, REFERENCE)) for pool in seen.pools)
    capacities = reference(spec) if is_measured else seen.capacities
    return replace(seen, capacities=capacities, pools=pools, links=None, leavers=None, policy_shape=None)


def reference(spec: FleetSpec, amount: Quantity = REFERENCE) -> Capacities:
    """The same capacity for everything that is observed."""
    names = {name for queue in spec.queues for entry in queue.quota for name in entry.resources}
    return {
        FlavorPlace(cluster.name, flavor.name): dict.fromkeys(sorted(names), amount)
        for flavor in spec.flavors
        if flavor.capacity.source is not CapacitySource.STATIC
        for cluster in spec.selected(flavor.clusters)
    }


def _marked(entry: DesiredObject, by_spec: Mapping[Ref, Manifest], masters: Mapping[str, str]) -> DesiredObject:
    said = by_spec.get(entry.ref)
    if entry.document.kind == "MasterQueue":
        return replace(entry, origin=masters[entry.document.name], by_spec=said)
    if said is None or said == entry.manifest:
        return entry
    return replace(entry, origin=_digest(said), by_spec=said)


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
